"""Documents of Word: docx.

The tree is walked here because libraries leave out what stands in content controls, text boxes,
notes and tracked insertions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from lxml import etree

from rayapp.documents.readers.found import Found, Order
from rayapp.documents.readers.markup import Cell, attribute, child, grid, local, span
from rayapp.documents.readers.package import Package, office_names
from rayapp.documents.records import Block, text_block
from rayapp.documents.rules.kinds import broken
from rayapp.documents.rules.tables import table_blocks

# Elements that only wrap others, of paragraphs and of runs.
_WRAPPERS = frozenset(
    {"sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml", "hyperlink", "fldSimple", "r",
     "oMathPara", "ruby", "rubyBase", "dir", "bdo"}
)  # fmt: skip
# What stands before a part of a formula; those of several characters are in brackets.
_SIGNS = {"num": "", "den": "/", "sup": "^", "sub": "_", "deg": "", "rad": "√"}
_CHARACTERS = {"tab": " ", "cr": "\n", "noBreakHyphen": "-", "ptab": " "}
# Bases of a style are followed so far: a broken file can make them a circle.
_MAX_BASES = 20
_NO_OUTLINE = 9
# Notes by their ids, for each kind of them.
_Notes = dict[str, dict[str, etree._Element]]
_HEADINGS = {"title": 1, "subtitle": 2, **{f"heading {n}": n for n in range(1, 10)}}


def read(data: bytes, order: Order) -> Found:
    package = Package(data)
    part = package.main_part("word/document.xml")
    body = child(package.xml(part), "body")
    if body is None:
        raise broken()
    links = {name.rpartition("/")[2]: name for name in package.linked(part).values()}
    document = _Document(
        _styles(package, links.get("styles.xml")),
        {kind: _notes(package, links.get(f"{kind}s.xml")) for kind in ("footnote", "endnote")},
        rendered=next(body.iter("{*}lastRenderedPageBreak"), None) is not None,
    )
    found = Found((), *office_names(data, order.kind))
    found.blocks = _counted(document, body, found)
    return found


def _counted(document: "_Document", body: etree._Element, found: Found) -> Iterator[Block]:
    yield from document.blocks(body)
    if document.page > 1 or document.rendered:
        found.pages = document.page


@dataclass(frozen=True, slots=True)
class _Style:
    heading: int
    listed: bool


def _styles(package: Package, part: str | None) -> dict[str, _Style]:
    if part is None or part not in package:
        return {}
    found = {
        attribute(style, "styleId") or "": style
        for style in package.xml(part)
        if local(style) == "style"
    }
    return {key: _style(style, found) for key, style in found.items()}


def _style(style: etree._Element | None, others: dict[str, etree._Element]) -> _Style:
    """With what it takes from those it is based on."""
    heading, listed, outlined = 0, False, False
    for _ in range(_MAX_BASES):
        if style is None:
            break
        name = (attribute(child(style, "name"), "val") or "").lower()
        level = _outline(child(style, "pPr"))
        if not outlined and level is not None:
            heading, outlined = level, True
        heading = heading or (0 if outlined else _HEADINGS.get(name, 0))
        listed = listed or name.startswith("list") or _number(child(style, "pPr")) is not None
        style = others.get(attribute(child(style, "basedOn"), "val") or "")
    return _Style(heading, listed)


def _outline(properties: etree._Element | None) -> int | None:
    """Level of a heading, 0 for text; None where nothing is said."""
    value = attribute(child(properties, "outlineLvl"), "val")
    if value is None or not value.isdigit():
        return None
    return 0 if int(value) >= _NO_OUTLINE else int(value) + 1


def _number(properties: etree._Element | None) -> int | None:
    """Depth of a list item from 1."""
    numbering = child(properties, "numPr")
    if numbering is None or attribute(child(numbering, "numId"), "val") in (None, "0"):
        return None
    depth = attribute(child(numbering, "ilvl"), "val") or "0"
    return int(depth) + 1 if depth.isdigit() else 1


def _notes(package: Package, part: str | None) -> dict[str, etree._Element]:
    if part is None or part not in package:
        return {}
    return {attribute(note, "id") or "": note for note in package.xml(part)}


@dataclass(slots=True)
class _Text:
    """Of a paragraph: its text, the page it starts on, and what hangs on it."""

    parts: list[str] = field(default_factory=list)
    page: int | None = None
    hanging: list[etree._Element] = field(default_factory=list)


def _hang(element: etree._Element, name: str, text: _Text, notes: _Notes) -> None:
    """Notes and text boxes follow the paragraph that they hang on."""
    if name in ("footnoteReference", "endnoteReference"):
        note = notes[name.removesuffix("Reference")].get(attribute(element, "id") or "")
        text.hanging += [] if note is None else [note]
    elif name in ("AlternateContent", "drawing", "pict", "object"):
        text.hanging += _boxes(element)


def _boxes(drawing: etree._Element) -> list[etree._Element]:
    """The text boxes of a drawing, in groups too; of one that is there twice, for new and for old
    programs, those of the first that has some."""
    if local(drawing) == "txbxContent":
        return [drawing]
    parts = [_boxes(part) for part in drawing]
    if local(drawing) == "AlternateContent":
        return next(filter(None, parts), [])
    return [box for part in parts for box in part]


def _formula(element: etree._Element) -> str:
    """In one line: a fraction as a/b, powers as a^b, each of several characters in brackets."""
    name = local(element)
    if name == "t":
        return element.text or ""
    text = "".join(_formula(part) for part in element if local(part) not in ("del", "moveFrom"))
    if not text or (name not in _SIGNS and name != "d"):
        return text
    bare = name != "d" and (text.isalnum() or name == "rad")
    return _SIGNS.get(name, "") + (text if bare else f"({text})")


class _Document:
    def __init__(self, styles: dict[str, _Style], notes: _Notes, rendered: bool) -> None:
        self._styles, self._notes = styles, notes
        self.rendered = rendered
        self.page = 1

    def blocks(self, parent: etree._Element) -> Iterator[Block]:
        for element in parent:
            name = local(element)
            if name == "p":
                yield from self._paragraph(element)
            elif name == "tbl":
                yield from self._table(element)
            elif name in _WRAPPERS:
                yield from self.blocks(element)

    def _paragraph(self, paragraph: etree._Element) -> Iterator[Block]:
        text = _Text()
        self._collect(paragraph, text)
        properties = child(paragraph, "pPr")
        style = self._styles.get(attribute(child(properties, "pStyle"), "val") or "")
        page = text.page if self.rendered or self.page > 1 else None
        outline = _outline(properties)
        heading = outline if outline is not None else style.heading if style else 0
        depth = _number(properties) or int(style.listed if style else False)
        yield text_block("".join(text.parts), heading, depth, page)
        for hanging in text.hanging:
            yield from self.blocks(hanging)

    def _collect(self, parent: etree._Element, text: _Text) -> None:
        for element in parent:
            name = local(element)
            if name == "t":
                text.page = text.page or self.page
                text.parts.append(element.text or "")
            elif name == "oMath":
                text.page = text.page or self.page
                text.parts.append(_formula(element))
            elif name in _CHARACTERS:
                text.parts.append(_CHARACTERS[name])
            elif name in _WRAPPERS:
                self._collect(element, text)
            elif name in ("br", "lastRenderedPageBreak"):
                self._break(element, name, text)
            else:
                _hang(element, name, text, self._notes)

    def _break(self, element: etree._Element, name: str, text: _Text) -> None:
        if name == "lastRenderedPageBreak":
            self.page += 1
        elif attribute(element, "type") != "page":
            text.parts.append("\n")
        elif not self.rendered:
            self.page += 1

    def _table(self, table: etree._Element) -> Iterator[Block]:
        start = self.page
        rows = list(_parts(table, "tr"))
        cells = [list(_parts(row, "tc")) for row in rows]
        if max((len(row) for row in cells), default=0) < 2:  # a frame around text
            for row in cells:
                for cell in row:
                    yield from self.blocks(cell)
            return
        said: dict[int, str] = {}
        values = [self._row(row, said) for row in cells]
        heads = len(list(takewhile(_is_head, rows)))
        yield from table_blocks(grid(values, heads), start if self.rendered else None, heads)

    def _row(self, cells: list[etree._Element], said: dict[int, str]) -> list[Cell]:
        """`said`: what the cells above say, for those that go on below them."""
        found: list[Cell] = []
        at = 0
        for cell in cells:
            properties = child(cell, "tcPr")
            columns = span(attribute(child(properties, "gridSpan"), "val"))
            merged = child(properties, "vMerge")
            if merged is not None and attribute(merged, "val") != "restart":
                text = said.get(at, "")
            else:
                text = " ".join(block.text for block in self.blocks(cell))
            said[at] = text
            found.append(Cell(text, columns))
            at += columns
        return found


def _is_head(row: etree._Element) -> bool:
    """Whether it stands at the top of each page that the table goes on to."""
    mark = child(child(row, "trPr"), "tblHeader")
    return mark is not None and attribute(mark, "val") not in ("0", "false", "off")


def _parts(of: etree._Element, name: str) -> Iterator[etree._Element]:
    """Rows of a table (`tr`) or cells of a row (`tc`), those in wrappers too."""
    for element in of:
        found = local(element)
        if found == name:
            yield element
        elif found in _WRAPPERS:
            yield from _parts(element, name)
