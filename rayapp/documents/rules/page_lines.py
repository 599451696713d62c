"""Paragraphs and headings of pages that are lines with a size and a place, as in a PDF."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rayapp.documents.records import Block, BlockKind, text_block

# A heading is larger than the text by this factor; smaller differences are other fonts.
HEADING_SIZE = 1.15
# A size that has more of the text than this share is not that of headings.
HEADING_SHARE = 0.15
# What has more lines is no heading.
HEADING_LINES = 3
# What is longer is no heading, characters.
HEADING_LENGTH = 200
MAX_LEVELS = 6
# A gap larger than the usual one by this factor sets a paragraph apart.
PARAGRAPH_GAP = 1.3
# A line that ends a sentence and leaves this share of the width ends its paragraph; one that
# leaves this other share is a line of its own: of a poem, an address, a table.
SENTENCE_SHORT, OWN_LINE_SHORT = 0.9, 0.7
# From so many pages on, a first or last line that stands on this share of them is no text.
RUNNING_PAGES, RUNNING_SHARE = 5, 0.5
_SENTENCE_END = re.compile(r"[.!?:…׃][\"'”״)\]]*$")
_ITEM = re.compile(r"(?:[•●▪‣◦○∙·*–—-]|\(?(?:\d{1,3}|[א-ת]|[a-zA-Z])[.)])\s")
# A word of two parts that goes on in the next line.
_CUT_WORD = re.compile(r"[^\W\d_][-־]$")
_DIGITS = re.compile(r"\d+")
_NUMBER_ALONE = re.compile(r"\W{0,3}\d{1,4}(?:[ /–-]{1,3}\d{1,4})?\W{0,3}")
# That are tried in every combination; of more, each of the last ones by itself.
MOST_NUMBERS = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page.

    Attributes:
        text: as it is read.
        page: from 1.
        size: height of its letters; any unit, the same as that of the places.
        y, end_y: base line of its first and its last character, growing upwards: a reader that
            joins a word that was cut makes one line of two.
        left, right: its ends.
    """

    text: str
    page: int
    size: float
    y: float
    end_y: float
    left: float
    right: float


def without_running_titles(lines: Sequence[Line], pages: int) -> list[Line]:
    """The lines without page numbers, headers and footers: what ends or starts most pages."""
    if pages < RUNNING_PAGES:
        return list(lines)
    edges: dict[int, tuple[Line, Line]] = {}
    for line in lines:
        high, low = edges.get(line.page, (line, line))
        edges[line.page] = (line if line.y > high.y else high, line if line.y < low.y else low)
    counts = Counter(
        (at, key) for pair in edges.values() for at in (0, 1) for key in _running(pair[at])
    )
    running = {key for key, count in counts.items() if count > RUNNING_SHARE * pages}
    dropped = {
        id(pair[at])
        for pair in edges.values()
        for at in (0, 1)
        if (pair[0] is not pair[1] or _NUMBER_ALONE.fullmatch(pair[at].text))
        and any((at, key) in running for key in _running(pair[at]))
    }
    return [line for line in lines if id(line) not in dropped]


def _running(line: Line) -> set[str]:
    """What it has in common with that of other pages: its words, and each number that counts the
    pages, by how far it is from theirs. Other numbers are text: sums, dates, ids."""
    if _NUMBER_ALONE.fullmatch(line.text):
        return {_DIGITS.sub("#", line.text)}
    found = list(_DIGITS.finditer(line.text))
    if len(found) > MOST_NUMBERS:
        return {line.text} | {
            f"{line.text[: one.start()]}#{int(one[0][:9]) - line.page}{line.text[one.end() :]}"
            for one in found[-MOST_NUMBERS:]
        }
    parts = _DIGITS.split(line.text)
    numbers = [one[0] for one in found]
    either = [(one, f"#{int(one[:9]) - line.page}") for one in numbers]
    return {
        "".join(itertools.chain.from_iterable(zip(parts, (*chosen, ""), strict=True)))
        for chosen in itertools.product(*either)
    }


def blocks_of(
    lines: Sequence[Line], outline: Mapping[tuple[int, str], int] | None = None
) -> Iterator[Block]:
    """Headings and paragraphs.

    Args:
        lines: in reading order.
        outline: level of the headings that the file itself names, by page and `heading_key`.
    """
    if not lines:
        return
    levels = _levels(lines)
    gap = _usual_gap(lines)
    outline = outline or {}
    # Of the longest line.
    widths = {
        page: max(line.right - line.left for line in group)
        for page, group in _by_page(lines).items()
    }
    open_lines: list[Line] = []
    open_level = 0
    for line in lines:
        level = outline.get((line.page, heading_key(line.text)), 0) or _level(line, levels)
        last = open_lines[-1] if open_lines else None
        if last is not None and (
            level != open_level
            or _starts_anew(last, line, gap)
            or (not level and _has_ended(last, line, widths[last.page]))
        ):
            yield _block(open_lines, open_level, widths[last.page])
            open_lines = []
        open_lines.append(line)
        open_level = level
    yield _block(open_lines, open_level, widths[open_lines[-1].page])


def heading_key(text: str) -> str:
    """What a heading on its page and in the outline of the file have in common."""
    return "".join(c for c in text.casefold() if c.isalnum())


def _levels(lines: Sequence[Line]) -> dict[float, int]:
    """Level of each size that is larger than the text's, the largest first."""
    letters: Counter[float] = Counter()
    for line in lines:
        letters[round(line.size, 1)] += len(line.text)
    body = letters.most_common(1)[0][0]
    most = HEADING_SHARE * letters.total()
    larger = sorted(
        (size for size, n in letters.items() if size >= HEADING_SIZE * body and n <= most),
        reverse=True,
    )
    return {size: min(rank, MAX_LEVELS) for rank, size in enumerate(larger, 1)}


def _level(line: Line, levels: Mapping[float, int]) -> int:
    has_words = len(line.text) <= HEADING_LENGTH and any(c.isalpha() for c in line.text)
    return levels.get(round(line.size, 1), 0) if has_words else 0


def _usual_gap(lines: Sequence[Line]) -> float:
    """From base line to base line, in sizes."""
    gaps = [
        (last.end_y - line.y) / line.size
        for last, line in itertools.pairwise(lines)
        if last.page == line.page and 0 < last.end_y - line.y < 4 * line.size
    ]
    return median(gaps) if gaps else 1.2


def _by_page(lines: Iterable[Line]) -> dict[int, list[Line]]:
    pages: dict[int, list[Line]] = {}
    for line in lines:
        pages.setdefault(line.page, []).append(line)
    return pages


def _starts_anew(last: Line, line: Line, gap: float) -> bool:
    below = last.end_y - line.y
    return (
        line.page != last.page
        or below < -line.size / 2
        or below > PARAGRAPH_GAP * gap * max(line.size, last.size)
    )


def _has_ended(last: Line, line: Line, width: float) -> bool:
    if _ITEM.match(line.text):
        return True
    short = last.right - last.left < SENTENCE_SHORT * width
    return short and _SENTENCE_END.search(last.text) is not None


def _block(lines: Sequence[Line], level: int, width: float) -> Block:
    page = lines[0].page
    if level and len(lines) <= HEADING_LINES:
        return Block(BlockKind.HEADING, " ".join(line.text for line in lines), level, page)
    text = lines[0].text
    for last, line in itertools.pairwise(lines):
        own = last.right - last.left < OWN_LINE_SHORT * width
        between = "" if _CUT_WORD.search(text) else "\n" if own else " "
        text += between + line.text
    return text_block(text, 0, int(_ITEM.match(text) is not None), page)
