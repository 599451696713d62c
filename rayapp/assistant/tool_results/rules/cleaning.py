"""Makes a tool's raw output a text that can be stored and read. Pure."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from rayapp.core.errors import InvalidInput

# Colours and cursor moves of terminals.
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,30}[ -/]{0,3}[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\))")
# Control characters but tab and newline, lone surrogates, and what no reader sees: zero-width
# characters would hide a secret from its pattern, Unicode tags would carry an unseen instruction.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u00ad\u200b\u2060-\u2064\ufeff\ufff9-\uffff"
    "\U000e0000-\U000e007f]"
)
_BREAK = re.compile("\r\n?|[\u0085\u2028\u2029]")
_DATA_URI = re.compile(
    r"data:(?P<mime>[a-z]{1,20}/[a-z0-9.+-]{1,60})(?:;[a-z0-9=-]{1,40}){0,3};base64,"
    r"[A-Za-z0-9+/=_-]*",
    re.IGNORECASE,
)
# A run that no word, path or hash reaches: SHA-512 in hex has 128 characters.
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{200,}={0,2}")
# The same broken into lines, as mail and PEM do.
_BLOB_LINES = re.compile(
    r"(?<![^\n])(?:[A-Za-z0-9+/]{60,76}\n){3,}[A-Za-z0-9+/]{0,76}={0,2}(?=\n|\Z)"
)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<rest>[\s/][^<>]*)?>")
_COMMENT = re.compile(r"<!(?:--)?[^<>]*>")
# Names that a text about programs does not hold by chance.
_PAGE_TAG = re.compile(
    "html|head|body|div|span|p|table|tr|td|th|ul|ol|li|script|style|h[1-6]|section|article"
    "|header|footer|nav|main|form|a|br|img|strong|em"
)
# Three tags are a page or a piece of one; one may be an example in a sentence.
_FEWEST_TAGS = 3
_HIDDEN_TAGS = frozenset({"script", "style", "noscript", "template", "svg"})
# What a head holds; any other tag begins the body, whose `<body>` many pages leave out.
_HEAD_TAGS = frozenset(
    {"head", "title", "meta", "link", "base", "script", "style", "noscript", "template"}
)
_INLINE_TAGS = frozenset(
    {"a", "b", "i", "em", "strong", "span", "code", "u", "small", "sub", "sup"}
)
_SPACES = re.compile(r"[ \t\u00a0]{2,}")
# Tried from the first space of a run only: from each of them the work would grow with its square.
_SPACE_AT_END = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]+(?=\n|\Z)")
_EMPTY_LINES = re.compile(r"\n{3,}")


def as_text(output: Any) -> str:
    """A string as it is; MCP content blocks as their texts; any other JSON as JSON.

    Raises:
        InvalidInput: nested too deeply.
    """
    if isinstance(output, str):
        return output
    blocks = output.get("content") if isinstance(output, dict) else output
    if isinstance(blocks, list) and blocks and all(map(_is_block, blocks)):
        return "\n\n".join(_block_text(block) for block in blocks)
    try:
        return json.dumps(output, ensure_ascii=False)
    except RecursionError:
        raise InvalidInput("The output is nested too deeply; send it as a text.") from None


def clean(text: str) -> str:
    """Without terminal codes, unseen characters, binary data, markup and heaps of spaces."""
    text = _UNSEEN.sub("", _ANSI.sub("", _BREAK.sub("\n", text)))
    text = _DATA_URI.sub(lambda match: f"[binary data: {match['mime'].lower()}]", text)
    text = _BLOB_LINES.sub(_blob, text)
    text = _BLOB.sub(_blob, text)
    if _is_markup(text):
        text = _UNSEEN.sub("", _without_markup(text))
    text = _SPACES.sub(" ", _SPACE_AT_END.sub("", text))
    return _EMPTY_LINES.sub("\n\n", text).strip()


def _is_block(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("type"), str)


def _block_text(block: dict[str, Any]) -> str:
    if isinstance(block.get("text"), str):
        return str(block["text"])
    inner = block.get("resource")
    if isinstance(inner, dict) and isinstance(inner.get("text"), str):
        return str(inner["text"])
    return f"[{block.get('mimeType') or block['type']}]"


def _blob(match: re.Match[str]) -> str:
    """Upper case, lower case and digits together: encoded bytes. Anything else stays."""
    found = match[0]
    encoded = all(re.search(kind, found) for kind in ("[A-Z]", "[a-z]", "[0-9]"))
    hexadecimal = not re.search("[^0-9A-Fa-f\n]", found)
    return f"[binary data: {len(found)} characters]" if encoded or hexadecimal else found


def _is_markup(text: str) -> bool:
    found = 0
    for match in _TAG.finditer(text):
        found += _PAGE_TAG.fullmatch(match["name"].lower()) is not None
        if found >= _FEWEST_TAGS:
            return True
    return False


def _without_markup(text: str) -> str:
    """What stands between the tags, but for the head, scripts and styles."""
    text = _COMMENT.sub("", text)
    lines = html.unescape("".join(_shown(text))).splitlines()
    return "\n".join(line.strip() for line in lines)


def _shown(text: str) -> Iterator[str]:
    """One walk over the tags. What is hidden to the very end was never closed, so it is shown."""
    hidden: str | None = None
    in_head = False
    position = hidden_from = 0
    for match in _TAG.finditer(text):
        name, ends = match["name"].lower(), bool(match["end"])
        opens = not ends and not (match["rest"] or "").endswith("/")
        shown = hidden is None and not in_head
        if hidden is not None:
            hidden = None if ends and name == hidden else hidden
        elif in_head and ((ends and name == "head") or name not in _HEAD_TAGS):
            in_head = False
        if shown:
            yield text[position : match.start()]
            hidden_from = match.end()
            in_head = opens and name == "head"
        if hidden is None and opens and name in _HIDDEN_TAGS:
            hidden = name
        if hidden is None and not in_head:
            yield "" if name in _INLINE_TAGS else "\n"
        position = match.end()
    if hidden is not None or in_head:
        yield _TAG.sub("\n", text[hidden_from:])
    else:
        yield text[position:]
