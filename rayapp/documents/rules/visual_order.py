"""The reading order of a line that was taken from a page, where Hebrew stands as it is drawn.

A page holds glyphs and places. From left to right, a Hebrew line is its letters backwards, with
numbers and Latin words forwards between them, and brackets drawn turned round. This undoes the
Unicode bidirectional algorithm (UAX 9) for one line without explicit marks.
"""

import re
import unicodedata
from collections.abc import Sequence

_MIRRORED = str.maketrans("()[]{}<>«»‹›⟨⟩", ")(][}{><»«›‹⟩⟨")
_RIGHT = "[\u0590-\u05ff\ufb1d-\ufb4f\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]"
_RIGHT_LETTER = re.compile(_RIGHT)
_LEFT_LETTER = re.compile("[A-Za-z\u00aa\u00b5\u00ba\u00c0-\u024f\u0370-\u052f]")
# A number as it is drawn: signs and separators stay inside it, so do a per cent and a currency.
_NUMBER = r"[#%$€£¥₪]*\d+(?:[.,:/+\-]\d+)*[#%‰°$€£¥₪]*"
_LEFT = r"A-Za-z\u00aa\u00b5\u00ba\u00c0-\u024f\u0370-\u052f"
# From the first Latin letter, or a number that touches it, to the last one or the last digit.
_LEFT_RUN = re.compile(rf"(?:{_NUMBER})?[{_LEFT}](?:.*(?:[{_LEFT}]|\d[%‰°$€£¥₪]*))?")
_NUMBER_RUN = re.compile(_NUMBER)
# Brackets that look away from their word: some programs draw those beside Latin words unturned.
_CLOSES = re.compile(r"(?<=[\w.!?\"'״׳])[(\[](?=[\s.,;:!?]|$)")
_OPENS = re.compile(r"(?:(?<=\s)|(?<=^))[)\]](?=\w)")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
# In a document of the one script, a line belongs to the other from this share of its letters on.
_OTHER_SHARE = 0.85


def is_right_to_left(text: str, document: bool | None = None) -> bool:
    """Whether a line runs from right to left: by its letters, and by those of its document."""
    right, left = len(_RIGHT_LETTER.findall(text)), len(_LEFT_LETTER.findall(text))
    if not right:
        return False
    if document is None:
        return right >= left
    other = left if document else right
    return (other < _OTHER_SHARE * (right + left)) is document


def reading_order(drawn: Sequence[str], right_to_left: bool) -> str:
    """The line as it is read.

    Args:
        drawn: characters from left to right, each with the points that belong to it.
        right_to_left: how the line runs, see `is_right_to_left`.
    """
    if not right_to_left:
        return "".join(_islands(drawn))
    text = "".join(_backwards(drawn))
    return _OPENS.sub(_turned, _CLOSES.sub(_turned, text))


def _turned(bracket: re.Match[str]) -> str:
    return bracket.group().translate(_MIRRORED)


def _backwards(drawn: Sequence[str]) -> list[str]:
    """A piece that runs from right to left: letters backwards, what runs forwards as it is."""
    text = "".join(unit[0] for unit in drawn)
    forwards = _forward_runs(text)
    read: list[str] = []
    at = len(drawn)
    for start, end in reversed(forwards):
        read += (unit.translate(_MIRRORED) for unit in reversed(drawn[end:at]))
        read += drawn[start:end]
        at = start
    read += (unit.translate(_MIRRORED) for unit in reversed(drawn[:at]))
    return read


def _forward_runs(text: str) -> list[tuple[int, int]]:
    """Where a line from right to left holds words or numbers that run from left to right."""
    runs: list[tuple[int, int]] = []
    start = 0
    for part in re.split(f"({_RIGHT}+)", text):
        if part and not _RIGHT_LETTER.match(part):
            runs += _runs_between(part, start)
        start += len(part)
    return runs


def _runs_between(text: str, offset: int) -> list[tuple[int, int]]:
    """The same of a piece without letters that run from right to left."""
    words = _LEFT_RUN.search(text)
    if words is None:
        return [(offset + m.start(), offset + m.end()) for m in _NUMBER_RUN.finditer(text)]
    start, end = words.span()
    while end < len(text) and _closes(text[start:end], text[end]):
        end += 1
    return [
        *_runs_between(text[:start], offset),
        (offset + start, offset + end),
        *_runs_between(text[end:], offset + end),
    ]


def _closes(text: str, bracket: str) -> bool:
    """Whether a bracket closes one that stands open in the text."""
    return any(
        bracket == closing and text.count(opening) > text.count(closing)
        for opening, closing in _PAIRS.items()
    )


def _islands(drawn: Sequence[str]) -> list[str]:
    """A line from left to right: pieces from its first to its last Hebrew letter are backwards."""
    text = "".join(unit[0] for unit in drawn)
    read: list[str] = []
    at = 0
    for island in re.finditer(rf"{_RIGHT}(?:[^{_LEFT}]*{_RIGHT})?", text):
        read += drawn[at : island.start()]
        read += _backwards(drawn[island.start() : island.end()])
        at = island.end()
    return [*read, *drawn[at:]]


def composed(text: str) -> str:
    """Hebrew letters drawn with their point as letter and point, Latin ligatures as letters."""
    if text.isascii():
        return text
    text = "".join(
        unicodedata.normalize("NFKC", c) if "\ufb00" <= c <= "\ufb4f" else c for c in text
    )
    return unicodedata.normalize("NFC", text)
