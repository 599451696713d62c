"""What a gateway does to an answer before it trusts it: thinking aloud, form, JSON, risks."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rayapp.inference.chat.rules.hijack import hijack_of
from rayapp.inference.chat.rules.tolerant_json import json_values, parse_json, refuse_constant
from rayapp.text.hostile import injection_kinds


def json_text(value: Any) -> str:
    """One line, letters of every script as they are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))


def is_json(text: str, *kinds: type) -> bool:
    """True for strict JSON whose value is of one of `kinds`."""
    try:
        return isinstance(json.loads(text, parse_constant=refuse_constant), kinds)
    except (ValueError, RecursionError):
        return False


OPEN, CLOSE = "<think>", "</think>"
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Thinking:
    """Blocks of a text. `inner` are the spans of what is thought, `outer` those with their tags.

    unopened: the text begins within a block, as when the prompt opened it. unclosed: where the
    last block begins that never ends.
    """

    inner: tuple[Span, ...] = ()
    outer: tuple[Span, ...] = ()
    unopened: bool = False
    unclosed: int | None = None


def find_thinking(text: str, skip: Sequence[Span] = ()) -> Thinking:
    """The blocks of `text`. Tags within the spans `skip`, in order, are text."""
    inner: list[Span] = []
    outer: list[Span] = []
    opened: Span | None = None
    unopened = False
    for start, end, closes in _tags(text, skip):
        if closes and opened is None and not outer:
            unopened = True
            opened = (0, 0)
        if closes and opened is not None:
            inner.append((opened[1], start))
            outer.append((opened[0], end))
            opened = None
        elif not closes and opened is None:
            opened = (start, end)
    return Thinking(
        inner=tuple(inner),
        outer=tuple(outer),
        unopened=unopened,
        unclosed=None if opened is None else opened[0],
    )


def split_thinking(text: str) -> tuple[str, str]:
    """(answer, thinking) of a text; an unclosed block reaches to its end."""
    found = find_thinking(text)
    inner, outer = list(found.inner), list(found.outer)
    if found.unclosed is not None:
        tag = _TAG.match(text, found.unclosed)
        inner.append((tag.end() if tag else found.unclosed, len(text)))
        outer.append((found.unclosed, len(text)))
    thought = "\n".join(text[start:end].strip() for start, end in inner)
    return without(text, outer).strip(), thought.strip()


def without(text: str, spans: Sequence[Span]) -> str:
    """`text` without `spans`, which are in order and do not overlap."""
    parts, at = [], 0
    for start, end in spans:
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])


def _tags(text: str, skip: Sequence[Span]) -> list[tuple[int, int, bool]]:
    tags, position = [], 0
    for tag in _TAG.finditer(text):
        while position < len(skip) and skip[position][1] <= tag.start():
            position += 1
        if position < len(skip) and skip[position][0] <= tag.start():
            continue
        tags.append((tag.start(), tag.end(), bool(tag.group(1))))
    return tags


FindingKind = Literal[
    "think_unclosed",
    "think_unopened",
    "tool_call_in_text",
    "tool_call_dropped",
    "tool_arguments_repaired",
    "legacy_tool_tag",
    "json_repaired",
    "json_missing",
    "memory_marker",
    "injection",
    "hijack",
]

# Calls of one answer; models in a loop write hundreds.
MAX_TOOL_CALLS = 32
# Further passes over what was mended; each takes something away, and two were the most seen.
MAX_AGAIN = 4
# Stands where something was taken out of a line. It is part of no tag, marker or JSON, so that
# what was apart cannot become one by being moved together.
GAP = "…"

_LEGACY = re.compile(r"</?(?:tool_call|function_call|invoke)\b[^<>\n]{0,200}>", re.IGNORECASE)
# Frames, tags and line heads by which memories are put before a model.
_MARKER = re.compile(
    r"═{3,}[^═\n<>{}]{0,120}═{3,}"
    r"|</?(?:memory_context|known_context|memory_item)\b[^<>\n]{0,200}>"
    r"|\[\d{1,3}\] ?\[[a-z_]{2,20}:[A-Za-z0-9._:@-]{1,128}\]",
    re.IGNORECASE,
)
_FENCE_BEFORE = re.compile(r"```[\w+-]*[ \t]*\r?\n?[ \t]*\Z")
_FENCE_AFTER = re.compile(r"\s*```")
# Longest head of a fence.
_FENCE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Finding:
    """`detail` names the rule or the place, never what the answer says."""

    kind: FindingKind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedResponse:
    """`text` keeps its closed `<think>` blocks; `answer` is the text without them."""

    text: str
    answer: str
    thinking: str
    tool_calls: tuple[dict[str, Any], ...]
    changed: bool
    findings: tuple[Finding, ...]


def check_response(
    text: str, tool_calls: Sequence[Any] = (), *, expect_json: bool = False, question: str = ""
) -> CheckedResponse:
    """The answer with its form mended. Nothing is lost that could not be read; whether it obeys
    somebody else is a finding (`hijack`), which the question may excuse.

    expect_json: the answer should be JSON and nothing else; then `text` and `answer` are that.
    Up to `MAX_CHARS` of a text are searched for calls and JSON.
    """
    checked = _check(text, tool_calls, expect_json=expect_json)
    for _ in range(MAX_AGAIN):
        again = _check(checked.text, checked.tool_calls, expect_json=expect_json)
        if (again.text, again.tool_calls) == (checked.text, checked.tool_calls):
            break
        # What was mended reads as something new, such as JSON that turns out to be a call.
        found = dict.fromkeys((*checked.findings, *again.findings))
        thinking = checked.thinking or again.thinking
        checked = replace(again, thinking=thinking, changed=True, findings=tuple(found))
    hijacked = hijack_of(checked.answer, question)
    if hijacked is None:
        return checked
    return replace(checked, findings=(*checked.findings, Finding("hijack", hijacked)))


def _check(text: str, tool_calls: Sequence[Any], *, expect_json: bool) -> CheckedResponse:
    given = list(tool_calls)
    findings: list[Finding] = []
    if expect_json and is_json(text, dict, list) and not _call_spans(text):
        # Tags and markers within its strings are data.
        body, answer, thinking = text, text, ""
        found: list[Any] = []
    else:
        body, found = _pull(text, findings)
        body = _without_markers(body, findings)
        answer, thinking = split_thinking(body)
        if expect_json:
            body, answer = _json_only(body, answer, findings)
    calls = _calls([*given, *found], findings)
    findings += [Finding("legacy_tool_tag", "text")] if _LEGACY.search(body) else []
    findings += [Finding("injection", kind) for kind in injection_kinds(body)]
    return CheckedResponse(
        text=body,
        answer=answer,
        thinking=thinking,
        tool_calls=tuple(calls),
        changed=body != text or calls != given,
        findings=tuple(findings),
    )


def _pull(text: str, findings: list[Finding]) -> tuple[str, list[Any]]:
    """The text with its blocks closed and without tool calls, and those calls."""
    spans = _call_spans(text)
    thinking = find_thinking(text, [span for span, _ in spans])
    # What a model only thinks of calling is no call.
    real = [(span, calls) for span, calls in spans if not _within(span[0], thinking)]
    head = ""
    if thinking.unopened:
        head = OPEN
        findings.append(Finding("think_unopened", "the block is opened at the start"))
    close_at = _close_at(text, thinking, [span for span, _ in real])
    parts, at, closed = [head], 0, False
    if close_at is not None:
        findings.append(Finding("think_unclosed", "the block is closed"))
    for (start, end), _ in [*real, ((len(text), len(text)), [])]:
        if close_at is not None and close_at <= start:
            parts += [text[at:close_at], CLOSE]
            at, close_at, closed = close_at, None, True
        # Behind the end that we set, a further tag would open a block anew.
        parts.append(_TAG.sub(GAP, text[at:start]) if closed else text[at:start])
        parts.append(GAP if end > start else "")
        at = end
    if real:
        findings.append(Finding("tool_call_in_text", "moved to tool_calls"))
    whole = "".join(parts)
    tidy = _tidy(whole) if real else whole
    # Without the gap, what stood on its two sides may read as something new.
    stable = not real or (
        not _call_spans(tidy) and split_thinking(whole)[1] == split_thinking(tidy)[1]
    )
    return (tidy if stable else whole), [call for _, calls in real for call in calls]


def _tidy(text: str) -> str:
    """Lines that only hold a gap go."""
    lines = text.split("\n")
    return "\n".join(line for line in lines if line.strip() != GAP).replace(CLOSE + GAP, CLOSE)


def _within(at: int, thinking: Thinking) -> bool:
    return any(start <= at < end for start, end in thinking.inner)


def _close_at(text: str, thinking: Thinking, calls: Sequence[Span]) -> int | None:
    """Where an unclosed block ends: before the first call, else with the text."""
    if thinking.unclosed is None:
        return None
    after = [start for start, _ in calls if start > thinking.unclosed]
    legacy = _LEGACY.search(text, thinking.unclosed)
    if legacy is not None:
        after.append(legacy.start())
    return min(after, default=len(text))


def _call_spans(text: str) -> list[tuple[Span, list[Any]]]:
    """Where objects with `tool_calls` stand, fences included, and the calls."""
    if "tool_calls" not in text:
        return []
    spans: list[tuple[Span, list[Any]]] = []
    for one in json_values(text, keep_cut=True, most=None):
        calls = one.value.get("tool_calls") if isinstance(one.value, dict) else None
        if not isinstance(calls, list):
            continue
        before = _FENCE_BEFORE.search(text, max(0, one.start - _FENCE_CHARS), one.start)
        after = _FENCE_AFTER.match(text, one.end)
        fenced = before is not None and after is not None
        start = before.start() if fenced and before else one.start
        spans.append(((start, after.end() if fenced and after else one.end), calls))
    return spans


def _without_markers(text: str, findings: list[Finding]) -> str:
    """Echoes of the frame in which memories were given; the text of a memory stays."""
    if _MARKER.search(text) is None:
        return text
    findings.append(Finding("memory_marker", "removed"))
    lines = []
    for line in text.split("\n"):
        plain = _MARKER.sub(GAP, line)
        if plain != line:
            plain = plain.lstrip(f"{GAP} \t-*•")
            if not plain.strip(f"{GAP} \t"):
                continue
        lines.append(plain)
    tidy = "\n".join(lines)
    stable = len(_call_spans(tidy)) == len(_call_spans(text))
    return tidy if stable else _MARKER.sub(GAP, text)


def _calls(given: Sequence[Any], findings: list[Finding]) -> list[dict[str, Any]]:
    """Calls in the one shape, each once, at most `MAX_TOOL_CALLS`."""
    made: list[dict[str, Any]] = []
    for position, call in enumerate(given):
        shaped = _call(call, position, findings)
        if shaped is None or len(made) == MAX_TOOL_CALLS:
            findings.append(Finding("tool_call_dropped", f"tool_calls.{position}"))
        elif shaped not in made:
            made.append(shaped)
    return made


def _call(call: Any, position: int, findings: list[Finding]) -> dict[str, Any] | None:
    if not isinstance(call, Mapping):
        return None
    # Models leave the wrapper out: {"name": …, "arguments": …}.
    function = call.get("function", call)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name.strip():
        return None
    arguments, repaired = _arguments(function.get("arguments"))
    if repaired:
        findings.append(Finding("tool_arguments_repaired", f"tool_calls.{position}"))
    identity = call.get("id")
    return {
        "id": identity if isinstance(identity, str) and identity else f"call_{position + 1}",
        "type": "function",
        "function": {"name": name.strip(), "arguments": arguments},
    }


def _arguments(value: Any) -> tuple[str, bool]:
    """(JSON object as text, repaired). What cannot be read is no argument at all."""
    if isinstance(value, Mapping):
        return json_text(dict(value)), False
    if isinstance(value, str) and is_json(value, dict):
        return value, False
    found = parse_json(value, keep_cut=True) if isinstance(value, str) else None
    if found is None or not isinstance(found.value, dict):
        return "{}", value not in (None, "")
    return json_text(found.value), True


def _json_only(body: str, answer: str, findings: list[Finding]) -> tuple[str, str]:
    """(text, answer): the JSON of the answer twice, or both as they are when there is none."""
    found = parse_json(answer, keep_cut=True)
    if found is None:
        findings.append(Finding("json_missing", "text"))
        return body, answer
    text = json_text(found.value)
    if text != body:
        findings.append(Finding("json_repaired", ", ".join(found.repairs)))
    return text, text
