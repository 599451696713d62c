"""`<think>` blocks of model answers: where they are, and what is left without them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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


def without_tags(text: str, gap: str) -> str:
    """`text` with `gap` for each tag."""
    return _TAG.sub(gap, text)


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
