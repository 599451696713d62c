"""PDF, page by page, through pdfium.

It finds the lines; the order of a line that holds Hebrew is made anew from where its letters
stand, because pdfium leaves brackets, numbers and points of such lines out of their places.
"""

import ctypes
import heapq
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from rayapp.core.errors import TooLarge
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.records import Block, BlockKind
from rayapp.documents.rules.kinds import broken, encrypted
from rayapp.documents.rules.page_lines import Line, blocks_of, heading_key, without_running_titles
from rayapp.documents.rules.visual_order import composed, is_right_to_left, reading_order

_HEBREW = re.compile("[\u0590-\u05ff\ufb1d-\ufb4f\u0600-\u06ff\ufb50-\ufdff\ufe70-\ufefc]")
_NEWLINES = re.compile(r"[\r\n]+")
# What pdfium puts where a word was cut at the end of its line.
_CUT = str.maketrans("", "", "\x02\ufffe\u00ad\x00")
# The halves of a character outside the basic plane: two to pdfium, which turns them round in lines
# from right to left.
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])|([\udc00-\udfff])([\ud800-\udbff])")
# A gap of this share of the height of the letters separates words where no space was drawn.
_WORD_GAP = 0.1
# Names that programs give where nobody gave one.
_NO_TITLE = re.compile(r"untitled|document\d*|anonymous|unspecified", re.I)
_PROGRAM_TITLE = re.compile(r"^Microsoft \w+ - |\.(?:docx?|pptx?|xlsx?|indd|pdf)$", re.I)
# Pages are drawn for text recognition with so many dots per point: 200 per inch.
_OCR_SCALE = 200 / 72
_OCR_PAGE_S = 30
# Lines that say in which direction a document runs.
_SAMPLE_LINES = 1_000


def read(data: bytes, order: Order) -> Found:
    try:
        document = pdfium.PdfDocument(data)
        document.init_forms()
    except pdfium.PdfiumError as error:
        raise (encrypted() if "assword" in str(error) else broken()) from error
    pages = len(document)
    if pages > order.max_pages:
        raise TooLarge(
            f"The file has {pages:,} pages, {order.max_pages:,} are allowed; cut it into parts.",
            details={"pages": pages, "limit": order.max_pages},
        )
    told = document.get_metadata_dict()
    found = Found((), _title(told.get("Title")), _author(told.get("Author")), pages)
    found.blocks = _blocks(document, found, order)
    return found


def _title(text: str | None) -> str | None:
    text = _PROGRAM_TITLE.sub("", text or "").strip()
    return None if _NO_TITLE.fullmatch(text) else text or None


def _author(text: str | None) -> str | None:
    return None if _NO_TITLE.fullmatch(text or "") else text


def _blocks(document: pdfium.PdfDocument, found: Found, order: Order) -> Iterator[Block]:
    drawn: list[_Drawn] = []
    recognised: list[Block] = []
    for number in range(1, (found.pages or 0) + 1):
        lines = _drawn_lines(document, number)
        drawn += lines
        if not lines:
            found.pages_without_text.append(number)
            if order.ocr:
                recognised += _recognised(document, number)
    right_to_left = is_right_to_left("".join(one.line.text for one in drawn[:_SAMPLE_LINES]))
    lines_read = [one.read(right_to_left) for one in drawn]
    kept = without_running_titles(lines_read, found.pages or 0)
    blocks = blocks_of(kept, _outline(document))
    yield from _by_page(blocks, recognised)


def _by_page(blocks: Iterator[Block], recognised: list[Block]) -> Iterator[Block]:
    """Both, in the order of their pages."""
    return heapq.merge(blocks, recognised, key=lambda block: block.page or 0)


def _outline(document: pdfium.PdfDocument) -> dict[tuple[int, str], int]:
    """The headings that the file itself names, by page and key."""
    found: dict[tuple[int, str], int] = {}
    for entry in document.get_toc(max_depth=6):
        place = entry.get_dest()
        index = place.get_index() if place is not None else None
        key = heading_key(entry.get_title())
        if index is not None and key:
            found.setdefault((index + 1, key), entry.level + 1)
    return found


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A line as pdfium gives it, and for Hebrew its characters from left to right."""

    line: Line
    units: tuple[str, ...] = ()

    def read(self, document_right_to_left: bool) -> Line:
        text = self.line.text
        if self.units:
            backwards = is_right_to_left(text, document_right_to_left)
            text = reading_order(self.units, backwards)
        return replace(self.line, text=composed(text))


def _drawn_lines(document: pdfium.PdfDocument, number: int) -> list[_Drawn]:
    """Of one page; none where it cannot be opened or shows no text."""
    try:
        page = _with_values(document, number)
        text_page = page.get_textpage()
    except pdfium.PdfiumError:
        return []
    try:
        return list(_lines(_PageText(text_page), number))
    finally:
        text_page.close()
        page.close()


def _with_values(document: pdfium.PdfDocument, number: int) -> pdfium.PdfPage:
    """The page, what is filled in its forms on it: pdfium gives text of the page itself alone.

    Values stand after the other text, where pdfium draws them. Raises PdfiumError.
    """
    page = document[number - 1]
    if document.formenv is None:
        return page
    # What cannot be drawn onto the page leaves it as it was.
    pdfium_c.FPDFPage_Flatten(page, pdfium_c.FLAT_NORMALDISPLAY)
    page.close()
    return document[number - 1]


def _lines(page: "_PageText", number: int) -> Iterator[_Drawn]:
    start = 0
    for part in _NEWLINES.finditer(page.text + "\n"):
        for first, end in page.level_runs(start, part.start()):
            line = page.line(first, end, number)
            if line is not None:
                yield line
        start = part.end()


class _PageText:
    """The characters of a page and their places. Lengths are points, from the lower left."""

    def __init__(self, text_page: pdfium.PdfTextPage) -> None:
        self._page = text_page
        count = text_page.count_chars()
        text = text_page.get_text_range() if count else ""
        if len(text) != count:  # characters outside the basic plane are two to pdfium
            text = "".join(
                chr(pdfium_c.FPDFText_GetUnicode(text_page, at) or 0x20) for at in range(count)
            )
        self.text = text
        self._box = [ctypes.c_double() for _ in range(4)]
        self._loose = pdfium_c.FS_RECTF()

    def level_runs(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A line of Hebrew where it stays on one base line: of two that nearly touch, such as a
        heading and the text below it, pdfium makes one."""
        if _HEBREW.search(self.text, start, end):
            height = size = 0.0
            for at in range(start, end):
                if self.text[at].isspace():
                    continue
                base = self._base(at)
                if size and abs(base - height) > size / 2:
                    yield start, at
                    start, size = at, 0.0
                if not size:
                    bottom, top = self._cell(at)[2:]
                    height, size = base, top - bottom
        yield start, end

    def line(self, start: int, end: int, page: int) -> _Drawn | None:
        """The characters from start to end; None where they show nothing."""
        text = self.text[start:end]
        shown = [at for at, c in enumerate(text, start) if not c.isspace()]
        if not shown:
            return None
        bottom, top = self._cell(shown[len(shown) // 2])[2:]
        size = max(top - bottom, 0.1)
        first, last = self._cell(shown[0]), self._cell(shown[-1])
        line = Line(
            text=_joined(text.translate(_CUT).strip()),
            page=page,
            size=size,
            y=self._base(shown[0]),
            end_y=self._base(shown[-1]),
            left=min(first[0], last[0]),
            right=max(first[1], last[1]),
        )
        return _Drawn(line, self._units(start, end, size) if _HEBREW.search(text) else ())

    def _cell(self, at: int) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the place that the font gives to a character."""
        pdfium_c.FPDFText_GetLooseCharBox(self._page, at, self._loose)
        cell = self._loose
        return cell.left, cell.right, cell.bottom, cell.top

    def _middle(self, at: int) -> float:
        """Of the ink, from left to right: points have no place of their own."""
        left, right, bottom, top = self._box
        pdfium_c.FPDFText_GetCharBox(self._page, at, left, right, bottom, top)
        return (left.value + right.value) / 2

    def _base(self, at: int) -> float:
        """Height of the base line."""
        x, y = self._box[:2]
        pdfium_c.FPDFText_GetCharOrigin(self._page, at, x, y)
        return y.value

    def _units(self, start: int, end: int, size: float) -> tuple[str, ...]:
        """The characters from left to right, points with their letter; none where the line is
        not level: what is drawn at a slant keeps the order of pdfium."""
        letters: list[_Unit] = []
        points: list[tuple[float, _Unit]] = []
        spaces: list[float] = []
        for at in range(start, end):
            c = self.text[at]
            left, right, bottom, top = self._cell(at)
            if unicodedata.combining(c):
                points.append((self._middle(at), _Unit(left, right, bottom, c)))
            elif not c.isspace():
                if letters and _PAIR.fullmatch(letters[-1].text + c):
                    letters[-1].text = _joined(letters[-1].text + c)
                elif c.translate(_CUT):
                    letters.append(_Unit(left, right, bottom, c))
            elif top - bottom > size / 2:  # others pdfium adds, wherever it noticed a gap
                spaces.append((left + right) / 2)
        if not letters or max(u.bottom for u in letters) - min(u.bottom for u in letters) > size:
            return ()
        letters.sort(key=lambda unit: unit.left + unit.right)
        _put_points(letters, points)
        return tuple(_with_spaces(letters, sorted(spaces), _WORD_GAP * size))


def _joined(text: str) -> str:
    """With the halves of each character outside the basic plane as one."""
    return _PAIR.sub(_whole, text)


def _whole(pair: re.Match[str]) -> str:
    halves = (pair[1] + pair[2]) if pair[1] else (pair[4] + pair[3])
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


@dataclass(slots=True)
class _Unit:
    left: float
    right: float
    bottom: float
    text: str


def _put_points(letters: list[_Unit], points: list[tuple[float, _Unit]]) -> None:
    """Each to the letter that it stands under or over, which then is as wide as both: of a letter
    that is drawn with its point in one, pdfium gives each of them a half."""
    for place, point in points:
        nearest = min(letters, key=lambda unit: max(unit.left - place, place - unit.right, 0.0))
        nearest.text += point.text
        nearest.left = min(nearest.left, point.left)
        nearest.right = max(nearest.right, point.right)


def _with_spaces(letters: list[_Unit], spaces: list[float], gap: float) -> Iterator[str]:
    """Between two letters one space where one was drawn, or where they stand apart."""
    at = 0
    for unit, following in zip(letters, [*letters[1:], None], strict=True):
        yield unit.text
        if following is None:
            return
        middle, end = (unit.left + unit.right) / 2, (following.left + following.right) / 2
        while at < len(spaces) and spaces[at] <= middle:
            at += 1
        if (at < len(spaces) and spaces[at] < end) or following.left - unit.right > gap:
            yield " "


def _recognised(document: pdfium.PdfDocument, number: int) -> Iterator[Block]:
    """What `tesseract` reads on a page; nothing where it is not installed."""
    bitmap = document[number - 1].render(scale=_OCR_SCALE, grayscale=True)
    dots, stride = bytes(bitmap.buffer), bitmap.stride
    rows = (dots[row * stride : row * stride + bitmap.width] for row in range(bitmap.height))
    picture = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(rows)
    try:
        done = subprocess.run(
            ["tesseract", "stdin", "stdout", "-l", "heb+eng"],
            input=picture,
            capture_output=True,
            timeout=_OCR_PAGE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return
    for part in done.stdout.decode("utf-8", "replace").split("\n\n"):
        yield Block(BlockKind.PARAGRAPH, part, page=number)
