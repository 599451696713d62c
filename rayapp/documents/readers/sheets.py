"""Sheets: xlsx, xls and ods through calamine; csv and tsv."""

import csv
import datetime
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import python_calamine as calamine

from rayapp.documents.readers.decoding import decode
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.readers.package import office_names
from rayapp.documents.records import Block, BlockKind
from rayapp.documents.rules.kinds import Kind, broken, encrypted
from rayapp.documents.rules.tables import table_blocks

# What may separate the values of a csv, the usual one first.
DELIMITERS = ",;\t|"
# Lines that say which of them it is.
SAMPLE_LINES = 50
# Whole numbers below it are themselves in a cell.
EXACT = 2**53
# Of one value; without it the library refuses what is longer than 131,072 characters.
MAX_VALUE = 10_000_000


def read(data: bytes, order: Order) -> Found:
    if order.kind in (Kind.CSV, Kind.TSV):
        return Found(table_blocks(_values(decode(data), order.kind)))
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    except calamine.PasswordError as error:
        raise encrypted() from error
    except calamine.CalamineError as error:
        raise broken() from error
    title, author = (None, None) if order.kind is Kind.XLS else office_names(data, order.kind)
    return Found(_sheets(book), title, author)


def _sheets(book: calamine.CalamineWorkbook) -> Iterator[Block]:
    """A heading with the name of each sheet that shows something, then its rows."""
    for sheet in book.sheets_metadata:
        if sheet.typ != calamine.SheetTypeEnum.WorkSheet:
            continue
        try:
            rows = book.get_sheet_by_name(sheet.name)
        except calamine.CalamineError as error:
            raise broken() from error
        blocks = table_blocks([_text(value) for value in row] for row in rows.iter_rows())
        first = next(blocks, None)
        if first is not None:
            yield Block(BlockKind.HEADING, sheet.name, level=1)
            yield first
            yield from blocks


def _text(value: object) -> str:
    """As a reader of the sheet would write it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        # A number of an order has 16 digits, all of which the cell holds.
        whole = value.is_integer() and abs(value) < EXACT
        return str(int(value)) if whole else f"{value:.15g}"
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "minutes")
    return str(value)


def _values(text: str, kind: Kind) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_VALUE)
    delimiter = "\t" if kind is Kind.TSV else None
    first, _, rest = text.partition("\n")
    if first.strip().lower().startswith("sep=") and len(first.strip()) == len("sep=,"):
        delimiter, text = first.strip()[-1], rest
    # Not `splitlines`: what else it takes for the end of a line stands within values.
    sample = list(islice(io.StringIO(text, newline=""), SAMPLE_LINES))
    delimiter = delimiter or _delimiter(sample)
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except csv.Error as error:
        raise broken() from error


def _delimiter(lines: Iterable[str]) -> str:
    """What gives most lines the same number of values, and more than one."""

    def agreement(delimiter: str) -> tuple[int, int]:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        return (count, width) if width > 1 else (0, 0)

    return max(DELIMITERS, key=agreement)
