"""What is HTML or becomes it: pages, e-books, Markdown. Scripts are left out."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

import yaml
from lxml import etree
from lxml.html import defs
from markdown_it import MarkdownIt
from markdown_it.token import Token

from rayapp.documents.readers.decoding import decode
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.readers.markup import Cell, child, grid, local, span
from rayapp.documents.readers.package import Package, path_from
from rayapp.documents.records import Block, BlockKind, text_block
from rayapp.documents.rules.kinds import Kind, broken, encrypted
from rayapp.documents.rules.tables import table_blocks

# The encoding that a page or a letter names.
STATED = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([\w:.-]+)", re.I)
_HEAD_BYTES = 4_096
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
     "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header",
     "hr", "html", "legend", "li", "main", "optgroup", "option", "p", "pre", "search", "section",
     "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", *_LISTS, *_HEADINGS}
)  # fmt: skip
# Programs, drawings, what leads elsewhere: no text of the page.
_LEFT_OUT = frozenset(
    {"script", "style", "head", "template", "svg", "iframe", "object", "embed", "nav", "noscript",
     "canvas", "audio", "video", "math-annotation", "button", "select", "textarea"}
)  # fmt: skip
# Of Markdown: tags that are text where prose names them. As tags they would take with them what
# follows: those that GFM disallows, and those above but for pictures and sound.
_SWALLOWS = re.compile(
    "<(?=(script|style|head|template|iframe|object|nav|noscript|button|select|textarea|title|xmp"
    "|noembed|noframes|plaintext)(?![\\w-]))",
    re.I,
)
_NAMED = re.compile(r"<([a-z][\w-]*)>", re.I)
_HTML_NAMES = frozenset(defs.tags) | {"picture", "dialog", "nobr", "data", "search", "main", "slot"}
_CLOSED = re.compile(r"</([a-z]+)", re.I)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_FRONT = re.compile(r"\A---[^\S\n]*\n(.*?)\n(?:---|\.\.\.)[^\S\n]*\n", re.S)
_CONTAINER, _LOCKS = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES_OF_BOOKS = ("application/xhtml+xml", "text/html", "application/xml")


def read(data: bytes, order: Order) -> Found:
    readers = {Kind.HTML: _read_html, Kind.MD: _read_markdown, Kind.EPUB: _read_book}
    return readers[order.kind](data)


def _read_html(data: bytes) -> Found:
    root = _parse(_decoded(data))
    if root is None:
        return Found(())
    title = next(root.iter("title"), None)
    authors = (
        meta.get("content")
        for meta in root.iter("meta")
        if (meta.get("name") or "").lower() in ("author", "dc.creator", "dcterms.creator")
    )
    stated = None if title is None else "".join(map(str, title.itertext()))
    return Found(html_blocks(root), stated, next(authors, None))


def _decoded(data: bytes) -> str:
    stated = STATED.search(data[:_HEAD_BYTES])
    return decode(data, stated.group(1).decode("ascii") if stated else None)


def _parse(text: str) -> etree._Element | None:
    """The root; None where there is none."""
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True
    )
    try:
        root: etree._Element | None = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        return None
    return root


def page_blocks(text: str) -> Iterator[Block]:
    """Of a page as text; none where there is nothing."""
    root = _parse(text)
    return html_blocks(root) if root is not None else iter(())


def html_blocks(root: etree._Element) -> Iterator[Block]:
    """The text of a page by its headings, paragraphs, items, code and rows."""
    page = _Page()
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = local(element)
        if event == "start":
            if _is_left_out(element, name):
                walk.skip_subtree()
            elif name == "table" and (rows := _table_rows(element)):
                yield from page.flush()
                for caption in element.iterchildren("caption"):
                    yield from html_blocks_within(caption)
                heads = len(list(takewhile(_is_head, element.iter("tr"))))
                yield from table_blocks(grid(rows, heads), heads=heads)
                walk.skip_subtree()
            else:
                yield from page.start(name)
                page.add(element.text)
        else:
            yield from page.end(name)
            page.add(element.tail)
    yield from page.flush()


class _Page:
    """The text since the last block ended, and where it stands."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._open: list[str] = []

    def add(self, text: str | None) -> None:
        if text:
            # Line ends of the source are spaces, but for those of code.
            self._parts.append(text if "pre" in self._open else " ".join(_split(text)))

    def start(self, name: str) -> Iterator[Block]:
        if name == "br":
            self._parts.append("\n")
        elif name in _BLOCKS:
            yield from self.flush()
            self._open.append(name)

    def end(self, name: str) -> Iterator[Block]:
        if name in _BLOCKS and name in self._open:
            yield from self.flush()
            while self._open and self._open.pop() != name:
                pass

    def flush(self) -> Iterator[Block]:
        text = "".join(self._parts)
        self._parts.clear()
        if text.strip():
            yield self._block(text)

    def _block(self, text: str) -> Block:
        heading = next((_HEADINGS[name] for name in reversed(self._open) if name in _HEADINGS), 0)
        if "pre" in self._open and not heading:
            return Block(BlockKind.CODE, text)
        depth = max(sum(name in _LISTS for name in self._open), 1) if "li" in self._open else 0
        return text_block(text, heading, depth)


def _split(text: str) -> list[str]:
    """Words, with an empty one where the text starts or ends with space."""
    return re.split(r"\s+", text)


def _is_left_out(element: etree._Element, name: str) -> bool:
    return (
        name in _LEFT_OUT
        or not name
        or element.get("hidden") is not None
        or _HIDDEN.search(element.get("style") or "") is not None
    )


def _table_rows(table: etree._Element) -> list[list[Cell]] | None:
    """None for a table that only lays out a page: others in it, or a single column."""
    if next(table.iterdescendants("table"), None) is not None:
        return None
    rows = [
        [_cell(cell) for cell in row if local(cell) in ("td", "th")] for row in table.iter("tr")
    ]
    return rows if max(map(len, rows), default=0) > 1 else None


def _is_head(row: etree._Element) -> bool:
    """Whether it holds names alone, but for a corner without any."""
    cells = [
        cell for cell in row if local(cell) == "th" or "".join(map(str, cell.itertext())).strip()
    ]
    return local(row.getparent()) == "thead" or {local(cell) for cell in cells} == {"th"}


def _cell(cell: etree._Element) -> Cell:
    text = " ".join(block.text for block in html_blocks_within(cell))
    return Cell(text, span(cell.get("colspan")), span(cell.get("rowspan")))


def html_blocks_within(element: etree._Element) -> Iterator[Block]:
    """Of an element, without what follows it."""
    tail, element.tail = element.tail, None
    yield from html_blocks(element)
    element.tail = tail


def _read_markdown(data: bytes) -> Found:
    text = decode(data).replace("\r\n", "\n")
    front = _FRONT.match(text)
    told = _front_matter(front.group(1)) if front else None
    page = _markdown().render(text[front.end() if front and told is not None else 0 :])
    title, author = (
        str(told[key]) if told and told.get(key) else None for key in ("title", "author")
    )
    return Found(page_blocks(f"<body>{page}</body>"), title, author)


def _front_matter(text: str) -> dict[str, object] | None:
    """None for what stands between two lines and says nothing of the document."""
    try:
        told = _yaml(text)
    except (yaml.YAMLError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _yaml(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except ValueError:  # a day that there is not, 2024-02-30: all of it as words
        return yaml.load(text, Loader=yaml.BaseLoader)


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable("table")
    markdown.add_render_rule("html_inline", _inline_html)
    markdown.add_render_rule("html_block", _html_of_block)
    return markdown


def _inline_html(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    html = tokens[at].content
    name = _NAMED.fullmatch(html)
    if name is not None and name[1].lower() not in _HTML_NAMES:
        return html.replace("<", "&lt;")  # `Vec<String>`, `<your-name>`: words
    return _SWALLOWS.sub("&lt;", html)


def _html_of_block(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    """A program that is there whole stays one."""
    html = tokens[at].content
    closed = {name.lower() for name in _CLOSED.findall(html)}
    return _SWALLOWS.sub(lambda tag: "<" if tag[1].lower() in closed else "&lt;", html)


def _read_book(data: bytes) -> Found:
    package = Package(data)
    named = next(package.xml(_CONTAINER).iter("{*}rootfile"), None)
    part = named.get("full-path") if named is not None else None
    if not part or part not in package:
        raise broken()
    book = package.xml(part)
    items = {
        item.get("id"): path_from(part, item.get("href") or "")
        for item in book.iter("{*}item")
        if item.get("media-type") in _PAGES_OF_BOOKS
    }
    chapters = [
        items[place.get("idref")]
        for place in book.iter("{*}itemref")
        if place.get("idref") in items and place.get("linear") != "no"
    ]
    _refuse_locked(package, chapters)
    told = child(book, "metadata")
    title, author = (
        None if told is None else told.findtext(f"{{*}}{name}") for name in ("title", "creator")
    )
    return Found(_chapters(package, chapters), title, author)


def _refuse_locked(package: Package, chapters: list[str]) -> None:
    """Fonts may be locked; a book whose text is cannot be read."""
    if _LOCKS in package:
        for mark in package.xml(_LOCKS).iter("{*}CipherReference"):
            if path_from("", mark.get("URI") or "") in chapters:
                raise encrypted()


def _chapters(package: Package, chapters: list[str]) -> Iterator[Block]:
    for part in chapters:
        if part in package:
            yield from page_blocks(_decoded(package.bytes_of(part)))
