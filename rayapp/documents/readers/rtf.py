"""RTF: the words of a Word document of old, with its headings, tables and pages.

Libraries for it give the text alone.
"""

import re
from dataclasses import dataclass, field, replace

from rayapp.documents.readers.decoding import codec_of
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.readers.markup import Cell, grid
from rayapp.documents.records import Block, text_block
from rayapp.documents.rules.kinds import broken
from rayapp.documents.rules.tables import table_blocks

# Characters by their numbers with a question mark each, a control word with its number, bytes,
# a control symbol, a brace, or plain bytes.
_TOKEN = re.compile(
    rb"((?:\\u-?\d{1,5} ?\?)+)|\\([a-z]{1,32})(-?\d{1,10})?[ ]?|((?:\\'[0-9a-f]{2})+)"
    rb"|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)",
    re.I,
)
_CHARACTER = re.compile(rb"\\u(-?\d+)")
# Groups whose words are not those of the document, beside those marked with an asterisk.
_ASIDE = frozenset(
    {"fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "headerl", "headerr",
     "headerf", "footer", "footerl", "footerr", "footerf", "datafield", "themedata", "fldinst",
     "listtable", "listoverridetable", "rsidtbl", "generator", "xmlnstbl", "mmathPr", "nonshppict",
     "colorschememapping", "latentstyles", "datastore", "revtbl", "pntext", "listtext", "bkmkstart",
     "bkmkend", "annotation", "atnid", "atnauthor", "private", "filetbl"}
)  # fmt: skip
# Groups around the words of a text box that is no part of a header or the like.
_SHAPES = frozenset({None, "shpinst", "shpgrp"})
_CHARACTERS = {
    "tab": " ", "line": "\n", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
    "endash": "–", "emdash": "—", "bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip
_SYMBOLS = {"~": "\u00a0", "_": "-", "{": "{", "}": "}", "\\": "\\"}
# Encodings by the number that a font gives for its alphabet.
_ALPHABETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
# The same by the word that a document begins with.
_ALPHABETS_OF_OLD = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_NO_OUTLINE = 9
_HEADING = re.compile(r"heading (\d)$", re.I)
# Groups within groups; a file with more is no letter.
_MAX_DEPTH = 1_000


@dataclass(slots=True)
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    outline: int = _NO_OUTLINE
    style: int | None = None
    listed: bool = False
    in_table: bool = False


# A paragraph and a table that are not at their end, by its cells, its rows and how many are heads.
_Open = tuple[_Paragraph, list[Cell], list[list[Cell]], int]


@dataclass(slots=True)
class _Group:
    """What holds until its brace closes. `deleted`: the words are gone, a program that tracks
    changes keeps them. `around`: of a text box, what it stands in."""

    aside: str | None = None
    skip: int = 1
    encoding: str | None = None
    deleted: bool = False
    starred: bool = False
    around: _Open | None = None


def read(data: bytes, order: Order) -> Found:
    document = _Rtf(data)
    document.run()
    paged = document.page > 1
    return Found(
        (block if paged else replace(block, page=None) for block in document.blocks),
        document.info.get("title"),
        document.info.get("author"),
        document.page if paged else None,
    )


class _Rtf:
    """Reads the tokens one by one. `blocks`, `info` and `page` are what was found."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.blocks: list[Block] = []
        self.info: dict[str, str] = {}
        self.page = 1
        self._groups = [_Group()]
        self._encoding = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = self._default_font = 0
        self._levels: dict[int, int] = {}
        self._style: int | None = None
        self._aside_text: list[str] = []
        self._bytes = bytearray()
        self._to_skip = 0
        self._high = 0
        self._paragraph = _Paragraph()
        self._cells: list[Cell] = []
        self._rows: list[list[Cell]] = []
        self._heads = 0  # of the rows, those at the top that stand on each page of the table

    def run(self) -> None:
        for token in _TOKEN.finditer(self._data):
            characters, word, number, codes, symbol, brace, text = token.groups()
            if codes is not None:
                self._plain(bytes.fromhex(codes.decode("ascii").replace("\\'", "")))
            elif characters is not None:
                self._flush()
                self._characters(characters)
            elif text is not None:
                self._plain(text)
            elif word is not None:
                self._flush()
                self._word(word.decode("ascii"), int(number) if number else None)
            elif symbol is not None:
                self._flush()
                self._symbol(symbol.decode("latin-1"))
            elif brace is not None:
                self._flush()
                self._brace(brace == b"{")
        self._flush()
        while len(self._groups) > 1:  # of a file that was cut
            self._brace(opens=False)
        self._end_paragraph()
        self._end_table()

    def _brace(self, opens: bool) -> None:
        group = self._groups[-1]
        self._to_skip = 0
        if opens:
            if len(self._groups) > _MAX_DEPTH:
                raise broken()
            self._groups.append(_Group(group.aside, group.skip, group.encoding, group.deleted))
            return
        if len(self._groups) == 1:
            return
        self._groups.pop()
        if group.aside and self._aside_text:
            self._end_aside(group.aside)
        if group.around:
            self._end_box(group.around)

    def _begin_box(self) -> None:
        """Its paragraphs come before the one that it hangs on."""
        group = self._groups[-1]
        group.aside = None
        group.around = self._paragraph, self._cells, self._rows, self._heads
        self._paragraph, self._cells, self._rows, self._heads = _Paragraph(), [], [], 0

    def _end_box(self, around: _Open) -> None:
        self._end_paragraph()
        self._end_table()
        self._paragraph, self._cells, self._rows, self._heads = around

    def _end_aside(self, name: str) -> None:
        """The words of a group that is no text: a style by its name, the title, the author."""
        text = "".join(self._aside_text).strip()
        if self._groups[-1].aside != name or name == "stylesheet":
            self._aside_text.clear()
        if name in ("title", "author"):
            self.info[name] = text
        elif name == "stylesheet" and self._style is not None:
            heading = _HEADING.search(text.rstrip(";"))
            if heading:
                self._levels[self._style] = int(heading.group(1))
            self._style = None

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._groups[-1].starred = True
        elif symbol in "\r\n":
            self._word("par", None)
        elif symbol in _SYMBOLS:
            self._say(_SYMBOLS[symbol])

    def _word(self, word: str, number: int | None) -> None:
        group = self._groups[-1]
        if word in ("title", "author") and group.aside == "info":
            group.aside = word
        elif word == "shptxt" and all(one.aside in _SHAPES for one in self._groups):
            self._begin_box()
        elif group.starred or word in _ASIDE:
            group.aside, group.starred = word, False
        elif word == "u":
            self._unicode(number or 0)
        elif word in _CHARACTERS:
            self._say(_CHARACTERS[word])
        else:
            self._in_group(group.aside, word, number)
        self._character_format(word, number)

    def _in_group(self, aside: str | None, word: str, number: int | None) -> None:
        if aside is None:
            self._layout(word, number)
        elif aside in ("fonttbl", "stylesheet"):
            self._table_of_names(word, number)

    def _character_format(self, word: str, number: int | None) -> None:
        """What bytes mean from here on, and whether they are still there."""
        group = self._groups[-1]
        if word == "uc":
            group.skip = number or 0
        elif word == "ansicpg":
            self._encoding = codec_of(f"cp{number}") or self._encoding
        elif word == "deff":
            self._default_font = number or 0
        elif word == "deleted":
            group.deleted = number != 0
        elif word == "plain":
            group.encoding, group.deleted = None, False
        elif word in _ALPHABETS_OF_OLD:
            self._encoding = _ALPHABETS_OF_OLD[word]
        elif word == "f" and group.aside != "fonttbl":
            group.encoding = self._fonts.get(number or 0)

    def _table_of_names(self, word: str, number: int | None) -> None:
        if word == "f" and self._groups[-1].aside == "fonttbl":
            self._font = number or 0
        elif word == "fcharset" and number in _ALPHABETS:
            self._fonts[self._font] = _ALPHABETS[number]
        elif word == "cpg" and (codec := codec_of(f"cp{number}")):
            self._fonts[self._font] = codec
        elif word == "s":
            self._style = number
        elif word == "outlinelevel" and self._style is not None and (number or 0) < _NO_OUTLINE:
            self._levels.setdefault(self._style, (number or 0) + 1)

    def _layout(self, word: str, number: int | None) -> None:
        paragraph = self._paragraph
        if word in ("par", "sect"):
            self._end_paragraph()
        elif word in ("page", "pagebb"):
            self.page += word == "page"
        elif word == "pard":
            self._paragraph = _Paragraph(paragraph.parts)
        elif word == "outlinelevel":
            paragraph.outline = number if number is not None else _NO_OUTLINE
        elif word == "s":
            paragraph.style = number
        elif word in ("ls", "pnlvlblt", "pnlvlbody"):
            paragraph.listed = True
        elif word == "intbl":
            paragraph.in_table = True
        else:
            self._table_layout(word)

    def _table_layout(self, word: str) -> None:
        if word in ("cell", "nestcell"):
            self._cells.append(Cell("".join(self._paragraph.parts)))
            self._paragraph.parts.clear()
        elif word in ("row", "nestrow"):
            self._rows.append(self._cells)
            self._cells = []
        elif word == "trhdr":  # programs write it before the cells of a row and after them
            self._heads += self._heads == len(self._rows)

    def _unicode(self, number: int) -> None:
        number &= 0xFFFF
        if 0xD800 <= number < 0xDC00:
            self._high = number
        elif 0xDC00 <= number < 0xE000:
            if self._high:
                self._say(chr(0x10000 + ((self._high - 0xD800) << 10) + number - 0xDC00))
            self._high = 0
        else:
            self._say(chr(number))
        self._to_skip = self._groups[-1].skip

    def _characters(self, run: bytes) -> None:
        """A run of numbers, each of which one question mark stands for to old programs."""
        for number in _CHARACTER.findall(run):
            self._unicode(int(number))
            if self._groups[-1].skip != 1:
                self._plain(b"?")
                self._flush()
        self._to_skip = 0 if self._groups[-1].skip == 1 else self._to_skip

    def _plain(self, text: bytes) -> None:
        skipped, self._to_skip = min(self._to_skip, len(text)), max(self._to_skip - len(text), 0)
        self._bytes += text[skipped:]

    def _flush(self) -> None:
        if self._bytes:
            default = self._fonts.get(self._default_font)
            # Alphabet 0 of a font is the code page of the document.
            own = self._groups[-1].encoding or (default if default != _ALPHABETS[0] else None)
            encoding = own or self._encoding
            self._say(self._bytes.decode(encoding, "replace"))
            self._bytes.clear()

    def _say(self, text: str) -> None:
        group = self._groups[-1]
        if group.aside is None and not group.deleted:
            if not self._paragraph.in_table and (self._rows or self._cells) and text.strip():
                self._end_table()
            self._paragraph.parts.append(text)
        elif group.aside in ("title", "author", "stylesheet"):
            self._aside_text.append(text)

    def _end_paragraph(self) -> None:
        paragraph = self._paragraph
        if paragraph.in_table:
            paragraph.parts.append(" ")
            return
        text = "".join(paragraph.parts)
        paragraph.parts.clear()
        if not text.strip():
            return
        self._end_table()
        level = self._levels.get(paragraph.style, 0) if paragraph.style is not None else 0
        if paragraph.outline < _NO_OUTLINE:
            level = paragraph.outline + 1
        self.blocks.append(text_block(text, level, int(paragraph.listed), self.page))

    def _end_table(self) -> None:
        if self._cells:
            self._rows.append(self._cells)
        if self._rows:
            self.blocks += table_blocks(grid(self._rows, self._heads), self.page, self._heads)
        self._rows, self._cells, self._heads = [], [], 0
