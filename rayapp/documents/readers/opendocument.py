"""Texts of OpenDocument: odt."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from lxml import etree

from rayapp.documents.readers.found import Found, Order
from rayapp.documents.readers.markup import Cell, attribute, child, grid, local, span
from rayapp.documents.readers.package import Package, office_names
from rayapp.documents.records import Block, text_block
from rayapp.documents.rules.kinds import broken, encrypted
from rayapp.documents.rules.tables import table_blocks

_MANIFEST = "META-INF/manifest.xml"
# Elements that only hold others.
_HOLDERS = frozenset(
    {"section", "index-body", "table-of-content", "index-title", "illustration-index",
     "bibliography", "alphabetical-index", "list-header", "list-item", "text-box", "note-body",
     "numbered-paragraph", "frame"}
)  # fmt: skip
# Elements that hold rows of the same table.
_ROW_HOLDERS = frozenset({"table-header-rows", "table-rows", "table-row-group"})
_NO_TEXT = frozenset({"annotation", "tracked-changes", "deletion", "ruby-text", "bookmark"})


def read(data: bytes, order: Order) -> Found:
    package = Package(data)
    if _MANIFEST in package and b"encryption-data" in package.bytes_of(_MANIFEST):
        raise encrypted()
    text = child(child(package.xml("content.xml"), "body"), "text")
    if text is None:
        raise broken()
    document = _Document(next(text.iter("{*}soft-page-break"), None) is not None)
    found = Found((), *office_names(data, order.kind))
    found.blocks = _counted(document, text, found)
    return found


def _counted(document: "_Document", text: etree._Element, found: Found) -> Iterator[Block]:
    yield from document.blocks(text, 0)
    found.pages = document.page if document.paged else None


@dataclass(slots=True)
class _Text:
    parts: list[str] = field(default_factory=list)
    hanging: list[etree._Element] = field(default_factory=list)


@dataclass(slots=True)
class _Document:
    paged: bool
    page: int = 1

    def blocks(self, parent: etree._Element, depth: int) -> Iterator[Block]:
        """`depth`: in how many lists it stands."""
        for element in parent:
            name = local(element)
            if name in ("p", "h"):
                yield from self._paragraph(element, depth)
            elif name == "list":
                yield from self.blocks(element, depth + 1)
            elif name == "table":
                yield from self._table(element)
            elif name == "soft-page-break":
                self.page += 1
            elif name in _HOLDERS:
                yield from self.blocks(element, depth)

    def _paragraph(self, paragraph: etree._Element, depth: int) -> Iterator[Block]:
        text = _Text()
        page = self.page if self.paged else None
        self._collect(paragraph, text)
        level = 0
        if local(paragraph) == "h":
            stated = attribute(paragraph, "outline-level") or "1"
            level = max(int(stated), 1) if stated.isdigit() else 1
        yield text_block("".join(text.parts), level, depth, page)
        for hanging in text.hanging:
            yield from self.blocks(hanging, 0)

    def _collect(self, element: etree._Element, text: _Text) -> None:
        text.parts.append(element.text or "")
        for inner in element:
            name = local(inner)
            if name in ("s", "tab"):
                text.parts.append(" ")
            elif name == "line-break":
                text.parts.append("\n")
            elif name == "soft-page-break":
                self.page += 1
            elif name == "note":
                text.hanging += [body for body in inner if local(body) == "note-body"]
            elif name == "frame":
                text.hanging.append(inner)
            elif name and name not in _NO_TEXT:
                self._collect(inner, text)
            text.parts.append(inner.tail or "")

    def _table(self, table: etree._Element) -> Iterator[Block]:
        page = self.page if self.paged else None
        rows = list(_rows(table))
        if all(len([c for c in row if local(c) == "table-cell"]) < 2 for row in rows):
            for row in rows:  # a frame around text
                for cell in row:
                    yield from self.blocks(cell, 0)
            return
        heads = len(list(takewhile(_is_head, rows)))
        cells = [list(self._cells(row)) for row in rows]
        yield from table_blocks(grid(cells, heads), page, heads)

    def _cells(self, row: etree._Element) -> Iterator[Cell]:
        for cell in row:
            if local(cell) != "table-cell":
                continue
            text = " ".join(block.text for block in self.blocks(cell, 0))
            columns, rows, repeated = (
                span(attribute(cell, f"number-{name}"))
                for name in ("columns-spanned", "rows-spanned", "columns-repeated")
            )
            for _ in range(repeated):
                yield Cell(text, columns, rows)


def _is_head(row: etree._Element) -> bool:
    return local(row.getparent()) == "table-header-rows"


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    """Its own: those of tables within its cells are theirs."""
    for part in table:
        name = local(part)
        if name == "table-row":
            yield part
        elif name in _ROW_HOLDERS:
            yield from _rows(part)
