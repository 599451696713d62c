"""Rows of a table as texts that can be found and read alone: each value with its column."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise

from semantic_text_splitter import TextSplitter

from rayapp.documents.records import Block, BlockKind
from rayapp.text.passages import LONGEST

Row = Sequence[str]
# The names of the columns stand among so many first rows, or the table has none.
HEAD_ROWS = 20
# A row of names fills this share of the columns; what stands above it is a title.
NAMED_SHARE = 0.6
# What is longer names no column, characters: each row would repeat it.
NAME_LENGTH = 120
# What is longer is no number, characters.
NUMBER_LENGTH = 40
# A longer row is several, so that no passage holds values without their row and column, characters.
# Each begins with the texts that the row begins with, as far as they fit.
ROW_LENGTH, KEY_LENGTH = LONGEST, 160
_NUMBER = re.compile(r"[-+−(]?[\d.,:/\s%$€£₪-]*\d[\d.,:/\s%$€£₪)-]*")
# Numbers that may name a column: a whole one, and a day, month, season, hour or range of several.
_WHOLE = re.compile(r"\d{1,4}")
_SEVERAL = re.compile(r"\d{1,4}(?:\s*[-–/:]\s*\d{1,4})+|\d{1,2}\.\d{1,2}\.\d{2,4}")
_YEARS = range(1900, 2101)
# So many whole numbers in equal steps count something; two are a step anyhow.
COUNTED = 3


def table_blocks(rows: Iterable[Row], page: int | None = None, heads: int = 0) -> Iterator[Block]:
    """Blocks of each row that shows something. Of a table without names the values alone.

    `heads`: how many first rows hold names, as the file states; 0 where it states none.
    """
    rows = (_tidy(row) for row in rows)
    stated = [row for row in islice(rows, heads) if any(row)]
    shown = (row for row in rows if any(row))
    first = [*stated, *islice(shown, HEAD_ROWS)]
    start, end = _head(first, len(stated))
    if start == end:
        yield from (_unnamed(row, page) for row in chain(first, shown))
        return
    for row in first[:start]:
        yield Block(BlockKind.PARAGRAPH, " ".join(_distinct(row)), page=page)
    names = _names(first[start:end])
    columns = tuple(filter(None, names))
    if not (body := first[end:]):
        yield _unnamed(names, page)
    for row in chain(body, shown):
        for text in _row_texts(names, row):
            yield Block(BlockKind.TABLE_ROW, text, page=page, columns=columns)


def row_text(names: Row, row: Row) -> str:
    """ "Column: value; Column: value" of the values that are there."""
    return "; ".join(_pair(name, value) for name, value in _pairs(names, row))


def _pairs(names: Row, row: Row) -> Iterator[tuple[str, str]]:
    named = [*names, *[""] * (len(row) - len(names))]
    return ((name, value) for name, value in zip(named, row, strict=False) if value)


def _pair(name: str, value: str) -> str:
    return f"{name}: {value}" if name else value


def _row_texts(names: Row, row: Row) -> Iterator[str]:
    """One, or of a long row several that begin alike."""
    text = row_text(names, row)
    if len(text) <= ROW_LENGTH:
        yield text
        return
    pairs = list(_pairs(names, row))
    key = _key(pairs)
    begin = "".join(f"{pair}; " for pair in key)
    held: list[str] = []
    for pair in _short_pairs(pairs[len(key) :], ROW_LENGTH - len(begin)):
        if held and len(begin) + len("; ".join([*held, pair])) > ROW_LENGTH:
            yield begin + "; ".join(held)
            held.clear()
        held.append(pair)
    yield begin + "; ".join(held)


def _key(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """What tells a row from the others: its first value, and the texts after it."""
    key: list[str] = []
    for name, value in pairs:
        pair = _pair(name, value)
        if (key and _is_number(value)) or sum(map(len, key)) + len(pair) > KEY_LENGTH:
            break
        key.append(pair)
    return key


def _short_pairs(pairs: Iterable[tuple[str, str]], room: int) -> Iterator[str]:
    """A value that is longer than the room is several of one name."""
    for name, value in pairs:
        if len(_pair(name, value)) <= room:
            yield _pair(name, value)
        else:
            splitter = TextSplitter(room - len(_pair(name, "")))
            yield from (_pair(name, part) for part in splitter.chunks(value))


def _head(rows: Sequence[Row], stated: int) -> tuple[int, int]:
    """Where the rows of names begin and end, equal where there are none.

    Those that are stated, else the first that fills the table, unless a long text is in it or a
    number that names nothing.
    """
    width = max((len(_filled(row)) for row in rows), default=0)
    if width < 2 or len(rows) < 2:
        return 0, 0
    # What says one thing over all columns is a title.
    begin = next((at for at in range(stated) if len(_distinct(rows[at])) > 1), stated)
    if begin < stated < len(rows):
        return begin, stated
    for at, row in enumerate(rows):
        filled, below = _filled(row), rows[at + 1 :]
        parted = _is_parted(row, below)
        full = len(filled) >= max(2, NAMED_SHARE * width) or (parted and not row[0])
        if full and len(_distinct(row)) > 1:
            return (at, at + 1 + parted) if _are_names(row, below) else (0, 0)
    return 0, 0


def _is_parted(row: Row, below: Sequence[Row]) -> bool:
    """Whether the next row parts names that stand over several columns: it has a text in each of
    these, nothing new in the others, and numbers stand below."""
    if len(below) < 2:
        return False
    over, parts = _spread(row, len(below[0])), below[0]
    several = {
        at
        for left, right in pairwise(range(len(over)))
        for at in (left, right)
        if over[left] and over[left] == over[right]
    }
    fits = all(
        (at in several and bool(part) and not _is_number(part))
        or (at not in several and part in ("", over[at]))
        for at, part in enumerate(parts)
    )
    return fits and any(
        _is_number(value) for line in below[1:] for at, value in enumerate(line) if at in several
    )


def _spread(row: Row, width: int) -> list[str]:
    """With a name that stands in the first of its columns in all of them."""
    spread: list[str] = []
    for name in _padded(row, width):
        spread.append(name or (spread[-1] if spread else ""))
    return spread


def _padded(row: Row, width: int) -> list[str]:
    return [*row, *[""] * (width - len(row))]


def _names(rows: Sequence[Row]) -> list[str]:
    """Of each column: what the rows say above each other."""
    width = max(map(len, rows))
    *upper, last = (_padded(row, width) for row in rows)
    spread = [_spread(row, width) for row in upper]
    return [
        _shortened(" ".join(_distinct([*(row[at] for row in (spread if name else upper)), name])))
        for at, name in enumerate(last)
    ]


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1].rstrip() + "…"


def _are_names(row: Row, below: Sequence[Row]) -> bool:
    """Texts, or numbers that name columns, which those of most rows below would not."""
    if any(len(value) > NAME_LENGTH for value in row):
        return False
    if not any(map(_is_number, row)):
        return True
    return _has_labels(row) and 2 * sum(map(_has_labels, below)) <= len(below)


def _has_labels(row: Row) -> bool:
    """Whether its numbers are in order and of a kind that names columns."""
    filled = _filled(row)
    numbers = [value for value in filled if _is_number(value)]
    parts = [_parts(value) for value in numbers]
    if len(filled) < 3 and len(numbers) < 2:
        return False  # of two columns: a name and its value
    # A day may be written from either end.
    if not all(parts) or not (_in_order(parts) or _in_order([part[::-1] for part in parts])):
        return False
    if all(len(part) > 1 for part in parts):
        return len(parts) > 1
    wholes = [part[0] for part in parts if len(part) == 1]
    if len(wholes) < len(parts):
        return False
    steps = {after - before for before, after in pairwise(wholes)}
    counts = len(wholes) >= COUNTED and len(steps) == 1
    return all(one in _YEARS for one in wholes) or (counts and not _is_number(row[0]))


def _parts(number: str) -> tuple[int, ...]:
    """The whole numbers of one that may name a column; none of another."""
    may_name = _WHOLE.fullmatch(number) or _SEVERAL.fullmatch(number)
    return tuple(map(int, re.findall(r"\d+", number))) if may_name else ()


def _in_order(values: Sequence[tuple[int, ...]]) -> bool:
    """Up or down, and not all the same."""
    rising = sorted(values)
    return list(values) in (rising, rising[::-1]) and (len(values) < 2 or rising[0] != rising[-1])


def _filled(row: Row) -> list[str]:
    return [value for value in row if value]


def _distinct(row: Row) -> list[str]:
    return list(dict.fromkeys(_filled(row)))


def _is_number(value: str) -> bool:
    return len(value) <= NUMBER_LENGTH and _NUMBER.fullmatch(value) is not None


def _tidy(row: Row) -> list[str]:
    return [" ".join(value.split()) for value in row]


def _unnamed(row: Row, page: int | None) -> Block:
    return Block(BlockKind.TABLE_ROW, "; ".join(filter(None, row)), page=page)
