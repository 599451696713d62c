"""Presentations of PowerPoint: pptx. A slide is a page, its title a heading."""

from collections.abc import Iterator

from lxml import etree

from rayapp.core.errors import TooLarge
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.readers.markup import Cell, attribute, child, grid, local, span
from rayapp.documents.readers.package import Package, office_names
from rayapp.documents.records import Block, BlockKind
from rayapp.documents.rules.tables import table_blocks

_TITLES = frozenset({"title", "ctrTitle"})
# Placeholders that say the same on every slide.
_RUNNING = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
_PRESENTATION = "ppt/presentation.xml"


def read(data: bytes, order: Order) -> Found:
    package = Package(data)
    links = package.linked(_PRESENTATION)
    slides = [
        part
        for slide in package.xml(_PRESENTATION).iter("{*}sldId")
        for key, value in slide.attrib.items()
        # A slide has a number of its own beside the id of its link, both called "id".
        if str(key).startswith("{") and (part := links.get(str(value))) and part in package
    ]
    if len(slides) > order.max_pages:
        raise TooLarge(
            f"The file has {len(slides):,} slides, {order.max_pages:,} are allowed; "
            "cut it into parts."
        )
    found = Found((), *office_names(data, order.kind), len(slides))
    found.blocks = _blocks(package, slides, found)
    return found


def _blocks(package: Package, slides: list[str], found: Found) -> Iterator[Block]:
    for number, part in enumerate(slides, 1):
        shown = False
        for block in _slide(package, part, number):
            shown = shown or bool(block.text.strip())
            yield block
        if not shown:
            found.pages_without_text.append(number)


def _slide(package: Package, part: str, number: int) -> Iterator[Block]:
    """Its title first, wherever it stands; then the rest, the notes of the speaker last."""
    links = package.linked(part)
    shapes = list(_shapes(package.xml(part)))
    for shape in sorted(shapes, key=lambda shape: _placeholder(shape) not in _TITLES):
        yield from _shape(package, shape, links, number)
    for name in links.values():
        if "/notesSlides/" in name and name in package:
            for shape in _shapes(package.xml(name)):
                if _placeholder(shape) == "body":
                    yield from _texts(shape, BlockKind.PARAGRAPH, number)


def _shapes(root: etree._Element) -> Iterator[etree._Element]:
    """Those that hold text or a table, of groups too."""
    return (shape for shape in root.iter("{*}sp", "{*}graphicFrame"))


def _placeholder(shape: etree._Element) -> str | None:
    """What a shape stands for; empty for text of the slide, None for a shape of its own."""
    mark = next(shape.iter("{*}ph"), None)
    return None if mark is None else attribute(mark, "type") or ""


def _shape(
    package: Package, shape: etree._Element, links: dict[str, str], number: int
) -> Iterator[Block]:
    kind = _placeholder(shape)
    if kind in _RUNNING:
        return
    table = next(shape.iter("{*}tbl"), None)
    if table is not None:
        yield from table_blocks(grid(_rows(table)), number)
    elif kind in _TITLES:
        text = " ".join(_text(paragraph) for paragraph in shape.iter("{*}p"))
        yield Block(BlockKind.HEADING, text, 1, number)
    else:
        listed = kind in ("", "body", "obj")
        yield from _texts(shape, BlockKind.LIST_ITEM if listed else BlockKind.PARAGRAPH, number)
        yield from _diagram(package, shape, links, number)


def _texts(shape: etree._Element, kind: BlockKind, number: int) -> Iterator[Block]:
    paragraphs = list(shape.iter("{*}p"))
    if len(paragraphs) == 1:
        kind = BlockKind.PARAGRAPH
    for paragraph in paragraphs:
        depth = attribute(child(paragraph, "pPr"), "lvl") or "0"
        level = int(depth) + 1 if kind is BlockKind.LIST_ITEM and depth.isdigit() else 0
        yield Block(kind, _text(paragraph), level, number)


def _diagram(
    package: Package, shape: etree._Element, links: dict[str, str], number: int
) -> Iterator[Block]:
    """The words of a drawn scheme, which stand in a part of their own."""
    for mark in shape.iter("{*}relIds"):
        part = links.get(attribute(mark, "dm") or "")
        if part is not None and part in package:
            yield from _texts(package.xml(part), BlockKind.PARAGRAPH, number)


def _text(paragraph: etree._Element) -> str:
    parts: list[str] = []
    for element in paragraph.iter():
        name = local(element)
        if name == "t":
            parts.append(element.text or "")
        elif name == "br":
            parts.append("\n")
        elif name == "tab":
            parts.append(" ")
    return "".join(parts)


def _rows(table: etree._Element) -> list[list[Cell]]:
    return [
        [_cell(cell) for cell in row if local(cell) == "tc" and not _is_covered(cell)]
        for row in table.iter("{*}tr")
    ]


def _is_covered(cell: etree._Element) -> bool:
    return any(attribute(cell, name) in ("1", "true") for name in ("hMerge", "vMerge"))


def _cell(cell: etree._Element) -> Cell:
    columns, rows = (span(attribute(cell, name)) for name in ("gridSpan", "rowSpan"))
    return Cell(" ".join(_text(paragraph) for paragraph in cell.iter("{*}p")), columns, rows)
