"""What readers of XML share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lxml import etree

from rayapp.documents.rules.tables import Row


@dataclass(frozen=True, slots=True)
class Cell:
    """Of a table: how many columns and rows it covers."""

    text: str
    columns: int = 1
    rows: int = 1


# What a file may say of one cell; more columns than these no table has.
MAX_SPAN = 1_000


def local(element: etree._Element) -> str:
    """The name of an element without its namespace; empty for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: etree._Element | None, name: str) -> str | None:
    """By its name in whichever namespace: two editions of a format differ in nothing else."""
    if element is None:
        return None
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return None


def child(element: etree._Element | None, name: str) -> etree._Element | None:
    if element is None:
        return None
    return next((found for found in element if local(found) == name), None)


def span(value: str | None) -> int:
    """How many columns or rows a cell says that it covers."""
    stated = value is not None and value.isascii() and value.isdigit()
    return min(max(int(value), 1), MAX_SPAN) if value is not None and stated else 1


def grid(rows: Sequence[Sequence[Cell]], heads: int = 0) -> Iterator[Row]:
    """Rows with a value in each column. A cell over several rows says the same in each; one over
    several columns names each of them in the first rows, and stands in the first of them below.

    `heads`: how many of the rows hold names, as the file states.
    """
    pending: dict[int, tuple[int, str]] = {}
    for number, row in enumerate(rows):
        values: list[str] = []
        for cell in row:
            _put_pending(values, pending)
            for extra in range(min(cell.columns, MAX_SPAN)):
                text = cell.text if extra == 0 or number < max(heads, 1) else ""
                if cell.rows > 1:
                    pending[len(values)] = (cell.rows - 1, text)
                values.append(text)
        _put_pending(values, pending)
        yield values


def _put_pending(values: list[str], pending: dict[int, tuple[int, str]]) -> None:
    while len(values) in pending:
        left, text = pending.pop(len(values))
        if left > 1:
            pending[len(values)] = (left - 1, text)
        values.append(text)
