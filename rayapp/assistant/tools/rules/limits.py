"""What a model reads of a long tool result: its beginning, and that it was cut. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from rayapp.assistant.tools.rules.table import ToolRow, row_of
from rayapp.graphs.rules.directives import Side
from rayapp.inference.rules import OTHER_CHARS_PER_TOKEN, estimate_tokens

_CUT: Mapping[Side, str] = {
    "en": "[Cut here: this result was longer than {tokens} tokens. Ask the tool for less, or for "
    "the part that is missing.]",
    "he": "[נחתך כאן: התוצאה ארוכה מ-{tokens} אסימונים. יש לבקש מהכלי פחות, או את החלק החסר.]",
}
# Share of a text that may be given up so that it ends with a whole line, or a whole word.
WHOLE_LINES = 0.75
RESULTS = ("tool", "function")


def cut_text(text: str, tokens: int, side: Side) -> str:
    """`text`, or its beginning and a sentence that says so, in at most `tokens` tokens; the
    sentence stands in any case."""
    if len(text) <= tokens or estimate_tokens(text) <= tokens:
        return text
    note = _CUT[side].format(tokens=tokens)
    room = tokens - estimate_tokens(f"\n{note}")
    low, high = 0, min(len(text), max(0, int(room * OTHER_CHARS_PER_TOKEN)))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= room else (low, middle - 1)
    return "\n".join(filter(None, (_whole(text[:low]), note)))


def limited_results(
    messages: Sequence[Mapping[str, Any]], table: Mapping[str, ToolRow], side: Side
) -> list[dict[str, Any]]:
    """Messages of a chat, each result of a tool within what the table gives its tool."""
    names: dict[str, str] = {}
    limited = []
    for one in messages:
        names |= _calls(one)
        if one.get("role") in RESULTS and "content" in one:
            name = names.get(str(one.get("tool_call_id"))) or str(one.get("name") or "")
            tokens = row_of(name, table).tokens
            one = {**one, "content": _limited(one["content"], tokens, side)}
        limited.append(dict(one))
    return limited


def _calls(message: Mapping[str, Any]) -> dict[str, str]:
    """Names of the tools that a message calls, by the ids of the calls."""
    calls = message.get("tool_calls")
    found = {}
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found[str(call.get("id"))] = str(function.get("name") or "")
    return found


def _limited(content: Any, tokens: int, side: Side) -> Any:
    """A text, or parts of which those with text share the tokens in their order. After the one that
    is cut the others with text go: a sentence for each would be longer than the result."""
    if isinstance(content, str):
        return cut_text(content, tokens, side)
    if not isinstance(content, list):
        return content
    parts, cut = [], False
    for part in content:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            if cut:
                continue
            shown = cut_text(text, tokens, side)
            cut = shown != text
            tokens = max(0, tokens - estimate_tokens(shown))
            part = {**part, "text": shown}
        parts.append(part)
    return parts


def _whole(text: str) -> str:
    for mark in ("\n", " "):
        end = text.rfind(mark)
        if end >= len(text) * WHOLE_LINES:
            return text[:end].rstrip()
    return text
