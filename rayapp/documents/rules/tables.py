"""Rows of a table as texts that can be found and read alone: each value with its column."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from rayapp.documents.records import Block, BlockKind

Row = Sequence[str]
# The names of the columns stand among so many first rows, or the table has none.
HEAD_ROWS = 20
# A row of names fills this share of the columns; what stands above it is a title.
NAMED_SHARE = 0.6
# What is longer names no column, characters: each row would repeat it.
NAME_LENGTH = 120
# What is longer is no number, characters.
NUMBER_LENGTH = 40
_NUMBER = re.compile(r"[-+−(]?[\d.,:/\s%$€£₪-]*\d[\d.,:/\s%$€£₪)-]*")


def table_blocks(rows: Iterable[Row], page: int | None = None) -> Iterator[Block]:
    """A block per row that shows something. Of a table without names the values alone."""
    rows = (_tidy(row) for row in rows)
    shown = (row for row in rows if any(row))
    first = list(islice(shown, HEAD_ROWS))
    at = _names_at(first)
    if at is None:
        yield from (_unnamed(row, page) for row in chain(first, shown))
        return
    for row in first[:at]:
        yield Block(BlockKind.PARAGRAPH, " ".join(filter(None, row)), page=page)
    names = first[at]
    columns = tuple(filter(None, names))
    if not (body := first[at + 1 :]):
        yield _unnamed(names, page)
    for row in chain(body, shown):
        yield Block(BlockKind.TABLE_ROW, row_text(names, row), page=page, columns=columns)


def row_text(names: Row, row: Row) -> str:
    """ "Column: value; Column: value" of the values that are there."""
    named = [*names, *[""] * (len(row) - len(names))]
    pairs = zip(named, row, strict=False)
    return "; ".join(f"{name}: {value}" if name else value for name, value in pairs if value)


def _names_at(rows: Sequence[Row]) -> int | None:
    """Which row holds the names: the first that fills the table, unless a number or a
    long text is in it."""
    width = max((len(_filled(row)) for row in rows), default=0)
    if width < 2 or len(rows) < 2:
        return None
    for at, row in enumerate(rows):
        filled = _filled(row)
        if len(filled) >= max(2, NAMED_SHARE * width):
            return at if all(map(_may_be_name, filled)) else None
    return None


def _filled(row: Row) -> list[str]:
    return [value for value in row if value]


def _may_be_name(value: str) -> bool:
    return len(value) <= NAME_LENGTH and not _is_number(value)


def _is_number(value: str) -> bool:
    return len(value) <= NUMBER_LENGTH and _NUMBER.fullmatch(value) is not None


def _tidy(row: Row) -> list[str]:
    return [" ".join(value.split()) for value in row]


def _unnamed(row: Row, page: int | None) -> Block:
    return Block(BlockKind.TABLE_ROW, "; ".join(filter(None, row)), page=page)
