"""A copy of a text for patterns to look at: escapes read, dashes and spaces alike. Pure.

What a pattern finds in the copy is replaced in the text as it came.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# Soft hyphen, zero-width characters and marks of direction: nobody sees them within a key.
_UNSEEN_CHARS = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_DASH_CHARS = "\u05be\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_SPACE_CHARS = "\u00a0\u2000-\u200a\u202f\u205f\u3000"
# A run of backslashes counts as one escape: JSON within JSON doubles them.
_FOLD = re.compile(
    r"(?<!\\)\\++(?:u001[bB]\[[0-9;]{0,20}[A-Za-z]|u[0-9A-Fa-f]{4}|[nrtbf\"'/])"
    f"|[{_UNSEEN_CHARS}]+|[{_DASH_CHARS}{_SPACE_CHARS}]"
)
_UNSEEN = re.compile(f"[{_UNSEEN_CHARS}]")
_DASH = re.compile(f"[{_DASH_CHARS}]")
_ESCAPED = {"n": "\n", "r": "\n", "t": "\t", "b": " ", "f": " "}
# An escape of four digits: `u` and these.
_CODE_POINT_CHARS = 5


@dataclass(frozen=True, slots=True)
class Folded:
    """`seen` is what patterns look at. `raw`: what each of its characters stands for in the
    text, None when it is the text."""

    seen: str
    raw: tuple[str, ...] | None

    @property
    def text(self) -> str:
        return self.seen if self.raw is None else "".join(self.raw)

    def replaced(self, spans: Sequence[tuple[int, int]], mark: str) -> Folded:
        """With `mark` in the place of every span of `seen`; these are in order and apart."""
        seen: list[str] = []
        raw: list[str] = []
        at = 0
        for first, last in [*spans, (len(self.seen), len(self.seen))]:
            seen.append(self.seen[at:first])
            if self.raw is not None:
                raw.extend(self.raw[at:first])
            if last > first:
                seen.append(mark)
                raw.extend(mark)
            at = last
        return Folded("".join(seen), None if self.raw is None else tuple(raw))


def has_unseen(text: str) -> bool:
    return _UNSEEN.search(text) is not None


def fold(text: str, unseen: str = "") -> Folded:
    """The copy; a run of characters that nobody sees becomes `unseen` in it."""
    seen: list[str] = []
    starts: list[int] = []
    at = 0
    for match in _FOLD.finditer(text):
        seen.append(text[at : match.start()])
        starts.extend(range(at, match.start()))
        one = _folded(match[0], unseen)
        if one:
            seen.append(one)
            starts.append(match.start())
        at = match.end()
    if not at:
        return Folded(text, None)
    seen.append(text[at:])
    starts.extend(range(at, len(text)))
    if starts:
        starts[0] = 0
    raw = tuple(text[first:last] for first, last in pairwise([*starts, len(text)]))
    return Folded("".join(seen), raw)


def _folded(found: str, unseen: str) -> str:
    """One character, or `unseen`."""
    if found[0] == "\\":
        escape = found.lstrip("\\")
        if len(escape) > _CODE_POINT_CHARS:  # a colour
            return unseen
        if len(escape) == 1:
            return _ESCAPED.get(escape, escape)
        found = chr(int(escape[1:], 16))
    if _UNSEEN.match(found):
        return unseen
    if _DASH.match(found):
        return "-"
    return " " if found.isspace() and found != "\n" else found
