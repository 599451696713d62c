"""Makes text that others wrote safe to stand inside a prompt: one line that forges nothing. Pure.

The reader is a language model, and programs with patterns of their own, so what could pass for a
mark of the block is changed in sight (`<` becomes `‹`), and only what nobody sees is left out.
Applied twice it changes nothing more. Every pattern is linear: a memory may be 100,000 characters.
"""

from __future__ import annotations

import re
import unicodedata

# Stands for the line breaks of a text.
LINE_BREAK = "⏎"
# A text of which nothing is left to be seen.
NOTHING = "…"
UNKNOWN_ID = "_"
# Rounds of the rules before all marks are taken at once. Texts that people write need two.
MOST_ROUNDS = 8

_BREAKS = re.compile("(?<![ \t])[ \t]*+[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\\s*+")
# Joiners change what an emoji or a Persian word is, and only stand between such characters.
_JOINERS = "\u200c\u200d"
_BESIDE = f"[^\x00-\x7f\\s{_JOINERS}]"
_LOOSE_JOINER = re.compile(f"(?<!{_BESIDE})[{_JOINERS}]|[{_JOINERS}](?!{_BESIDE})")
_SPACES = re.compile(r"\s+")
# Control, format (bidi, zero-width) and surrogate characters.
_DROPPED = frozenset({"Cc", "Cf", "Cs"})
# Invisible characters that can carry a text of their own: tags, the variation selectors beyond
# those that choose how an emoji looks, and what is no character.
_HIDDEN = re.compile("[\U000e0000-\U000e0fff\ufdd0-\ufdef\ufffe\uffff]")

# Twins of the marks that tags, lines and headers are made of.
_TWINS = {
    **dict.fromkeys("＜﹤〈《⟨⟪❮❰", "<"),
    **dict.fromkeys("＞﹥〉》⟩⟫❯❱", ">"),
    **dict.fromkeys("［﹝【〔〖〚⟦⁅❲", "["),
    **dict.fromkeys("］﹞】〕〗〛⟧⁆❳", "]"),
    **dict.fromkeys("：﹕ː꞉∶", ":"),
    **dict.fromkeys("＊﹡∗⁎", "*"),
    **dict.fromkeys("═━╍╌┅┉〓", "="),
    "／": "/",
    "｜": "|",
}
# A tag: an angle before a letter, or before the marks that open one. `x < 5` and `a <= b` stay.
_TAG = re.compile(r"<(?=[\s/!?|\[%$#@&\\\"'`{(<]{0,8}[^\W\d]|\s?[/!?|<\[%\\])([^<>]*+)(>?)")
# A memory line: a tier's name and a colon in brackets, and the position in front of such a mark.
_TIERS = (
    r"working|history|patterns?|books?|documents?|memory[ _-]?bank|data[ _-]?gov[\w -]{0,20}"
    r"|system|memory|mem"
)
_MARK = re.compile(rf"\[(\s?(?:{_TIERS})\s?:[^\[\]]*+)(\]?)", re.IGNORECASE)
_POSITION = re.compile(r"\[(\s?\d++\s?)(\])(?=\s?[\[(]\s?[^\W\d][\w -]{0,40}:)")
# Tags in square brackets, as some models are taught to read them.
_ROLE = re.compile(
    r"\[(\s?/?\s?(?:INST|SYS|SYSTEM|USER|ASSISTANT|TOOL|TOOL_CALLS|INSTRUCTIONS?|END)\s?)(\])",
    re.IGNORECASE,
)
# A bold label with a colon is how the block heads its sections, a double rule its ends.
_BOLD_LABEL = re.compile(r"(?<!\*)\*{2,}+([^*\s][^*]{0,200}?:\s?)\*{2,}+")
_BOLD_NAME = re.compile(r"(?<!\*)\*{2,}+([^*\s][^*]{0,200}+)\*{2,}+(?=\s?:)")
_RULED = re.compile(r"(?<!=)={3,}+([^=]{1,200}+)={3,}+")
_ID = re.compile(r"[^A-Za-z0-9._:@-]")


def escape_text(text: str) -> str:
    """The text as one line, whole and readable, that cannot be taken for a part of the block."""
    line = _visible(_BREAKS.sub(f" {LINE_BREAK} ", text)).strip(f" {LINE_BREAK}")
    for _ in range(MOST_ROUNDS):
        settled = _without_marks(line)
        if settled == line:
            return line or NOTHING
        line = settled
    return line.translate(_ALL_MARKS)


def escape_id(memory_id: str) -> str:
    """An id that ends where its bracket does. Ids of the store come back as they are."""
    return _ID.sub("_", memory_id) or UNKNOWN_ID


def cut_line(text: str, limit: int) -> str:
    """At most `limit` characters of the escaped text, cut at a word; an ellipsis says so."""
    line = escape_text(text)
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    whole = head.rpartition(" ")[0] if " " in head else head
    return (whole or head) + "…"


def _visible(text: str) -> str:
    """Without control, direction and other invisible characters; blanks of all kinds are one."""
    plain = _HIDDEN.sub("", text).translate(_PLAIN)
    return _SPACES.sub(" ", _LOOSE_JOINER.sub("", plain))


def _without_marks(line: str) -> str:
    """One round: a rule may open what another one closes."""
    line = _RULED.sub(r"==\1==", line)
    line = _TAG.sub(lambda m: f"‹{m[1]}{'›' if m[2] else ''}", line)
    for mark in (_POSITION, _MARK, _ROLE):
        line = mark.sub(lambda m: f"({m[1]}{')' if m[2] else ''}", line)
    # Other bold words and `2**3` keep their stars.
    return _BOLD_NAME.sub(r"*\1*", _BOLD_LABEL.sub(r"*\1*", line))


class _Plain(dict[int, str]):
    """A translation table that learns a character when it first meets it."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        dropped = unicodedata.category(char) in _DROPPED and char not in _JOINERS
        self[code] = char if not dropped or char.isspace() else ""
        return self[code]


_PLAIN = _Plain({ord(char): plain for char, plain in _TWINS.items()})
_ALL_MARKS = str.maketrans("<>[]*=", "‹›()·-")
