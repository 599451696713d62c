"""Documents of offices and e-books by hand: the parts that a reader needs, nothing else."""

import base64
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
    'core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>כותר</dc:title>'
    "<dc:creator>דנה</dc:creator></cp:coreProperties>"
)
_ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table")
)
# Written by xlwt 1.3: one sheet "גיליון" with the rows of TABLE.
_XLS = """
c-rk)OK1~882)CH$;&oPYAUos2?eXxBB@0Xq+J!XCrj-`5uv6whtiTr@St9-)*J=Flj5b&i<hbwALv1E9)!M>Qn8v;4?a$Uf
`>NiKYwOpsyQ^E#maum{PWK@^X<&;Ja?xi!`ZRB4LSURPPmY_{P2`;f`Z>pgh2V0rCdAqQLr4WEBJlXksgUh)z7`E4^@BXVB
n7XDOq5V!U>#4cPg2Pt|1O^8{$H>p@XczO=5zm=T_CSJ;in-+uL07G24C2Tw&WmWwYWqCe7}aJ$e)$GnzOr2zB54ta-&u8|v
^(jp7SeMWL+3{`6pc_}|QEbXQ><)NfshWFj3O&LTn`IF4^t6!>b-)F)AgUt3;)`0p!uZyElY;RZ%vo#X+Yp;8eyPeL&x=jCe
(FXdaggh6Z|Rs|~eQ7%Xq#3JQ>kZy=Ka*kc%W@T2sP@H1klS^Z|Ek;wiH<jEQJxi%wF}}mR^g?{18lsqz)0CVh720DvcL&rO
&uc<x#hOsfbES&x0BYC|^Nb16s=svW%go{a9<z^`5#9$1yTumufUs~;DM%dT9DYXHUw{@?>|lF|@4A`&2DT9z=M*>h)M@9?D
3`g+xy@8hJ7d<|TH<dbKlAy>gT~A|b36GHUAgm-i8*r&O|*LrkX~J*XcevE#&v~<rX35tvMjKz|814=86n+vOK*uaSVn-|Fx
x^(y&X|Z8Twr*wJ4(&taj=0g4OO~N~xt*8)ei6t5qKf!=rnqz$>L!D_v!jE>`+<O)ggYiz%g6t?x8yaZgo3>*`Mg;J|?c2M!
!KaNuA)Lh$*ta2i)<PN~oPUj1KZnL^(AP4eHO7b&{V(1+<kBq>hgTt(w&6Qr>3C041i{}(D8rP|XNLO-`-sN(TU-)o}uc~&h
9{kbVrY5n<1+WD93{{auj;wA
"""
TABLE = [
    ["שם", "עיר", "מחיר"],
    ["דנה", "חיפה", "10"],
    ["Ron; x", "", "20"],
    ["שי", "תל אביב", "30.5"],
]
ROWS = ["שם: דנה; עיר: חיפה; מחיר: 10", "שם: Ron; x; מחיר: 20", "שם: שי; עיר: תל אביב; מחיר: 30.5"]


def zip_of(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            stored = zipfile.ZIP_STORED if name == "mimetype" else None
            archive.writestr(name, content, stored)
    return out.getvalue()


def docx_of(body: str, *, main: str = "document", **parts: str) -> bytes:
    """`body`: elements of WordprocessingML. Styles h1 and h2 are headings, l is a list. `main`:
    the name of the part with the body."""
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/>{more}</w:style>'
        for key, name, more in (
            ("h1", "heading 1", ""),
            ("h2", "Chapter", '<w:basedOn w:val="h0"/>'),
            ("h0", "Base", '<w:pPr><w:outlineLvl w:val="1"/></w:pPr>'),
            ("l", "List Bullet", ""),
        )
    )
    links = {"styles": "styles", "footnotes": "footnotes"}
    return zip_of(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": _links({"r1": (f"{_OFFICE}/officeDocument", f"word/{main}.xml")}),
            f"word/{main}.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {_W}>{styles}</w:styles>",
            "word/footnotes.xml": f"<w:footnotes {_W}>{parts.get('footnotes', '')}</w:footnotes>",
            f"word/_rels/{main}.xml.rels": _links(
                {key: (f"{_OFFICE}/{kind}", f"{kind}.xml") for key, kind in links.items()}
            ),
            "docProps/core.xml": _CORE,
        }
    )


def word_paragraph(text: str, style: str = "", before: str = "") -> str:
    looks = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{looks}<w:r>{before}<w:t>{escape(text)}</w:t></w:r></w:p>"


def word_table(rows: Sequence[Sequence[str]]) -> str:
    return "<w:tbl>{}</w:tbl>".format(
        "".join(
            "<w:tr>{}</w:tr>".format(
                "".join(f"<w:tc>{word_paragraph(value)}</w:tc>" for value in row)
            )
            for row in rows
        )
    )


def pptx_of(slides: Sequence[Sequence[tuple[str, str]]], table: bool = False) -> bytes:
    """Slides of (kind of placeholder, text) shapes; with a table on the last one."""
    spaces = (
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        f'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" {_R}'
    )
    numbers = range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in numbers)
    parts = {
        "[Content_Types].xml": "<Types/>",
        "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst>"
        "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": _links(
            {f"r{n}": (f"{_OFFICE}/slide", f"slides/slide{n}.xml") for n in numbers}
        ),
        "docProps/core.xml": _CORE,
    }
    for number, shapes in enumerate(slides, 1):
        tree = "".join(_shape(kind, text) for kind, text in shapes)
        if table and number == len(slides):
            tree += _slide_table()
        parts[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {spaces}><p:cSld><p:spTree>{tree}</p:spTree></p:cSld></p:sld>"
        )
    return zip_of(parts)


def _shape(kind: str, text: str) -> str:
    lines = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
    return (
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        f"<p:txBody>{lines}</p:txBody></p:sp>"
    )


def _slide_table() -> str:
    rows = "".join(
        "<a:tr>{}</a:tr>".format(
            "".join(
                f"<a:tc><a:txBody><a:p><a:r><a:t>{value}</a:t></a:r></a:p></a:txBody></a:tc>"
                for value in row
            )
        )
        for row in TABLE
    )
    return f"<p:graphicFrame><a:graphic><a:tbl>{rows}</a:tbl></a:graphic></p:graphicFrame>"


def xlsx_of(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    names = list(sheets)
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(names, 1)
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        'content-types"/>',
        "_rels/.rels": _links({"r1": (f"{_OFFICE}/officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f"<workbook {space} {_R}><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _links(
            {
                f"r{n}": (f"{_OFFICE}/worksheet", f"worksheets/sheet{n}.xml")
                for n in range(1, len(names) + 1)
            }
        ),
        "docProps/core.xml": _CORE,
    }
    for number, rows in enumerate(sheets.values(), 1):
        inside = "".join(map(_sheet_row, rows))
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f"<worksheet {space}><sheetData>{inside}</sheetData></worksheet>"
        )
    return zip_of(parts)


def _sheet_row(row: Sequence[str]) -> str:
    cells = (
        f"<c><v>{value}</v></c>"
        if value.replace(".", "").isdigit()
        else f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        for value in row
    )
    return f"<row>{''.join(cells)}</row>"


def xls_of_table() -> bytes:
    return zlib.decompress(base64.b85decode(_XLS.replace("\n", "")))


def odt_of(body: str) -> bytes:
    return _open_document("text", body)


def ods_of(name: str, rows: Sequence[Sequence[str]]) -> bytes:
    return _open_document("spreadsheet", odf_table(rows, name))


def odf_table(rows: Sequence[Sequence[str]], name: str = "t") -> str:
    cells = (
        "".join(
            '<table:table-cell office:value-type="string">'
            f"<text:p>{escape(value)}</text:p></table:table-cell>"
            for value in row
        )
        for row in rows
    )
    inside = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    return f'<table:table table:name="{name}">{inside}</table:table>'


def _open_document(kind: str, body: str) -> bytes:
    dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    return zip_of(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": "<manifest/>",
            "meta.xml": f"<m {dc}><dc:title>כותר</dc:title><dc:creator>דנה</dc:creator></m>",
            "content.xml": f"<office:document-content {_ODF}><office:body><office:{kind}>{body}"
            f"</office:{kind}></office:body></office:document-content>",
        }
    )


def epub_of(chapters: Sequence[str]) -> bytes:
    """Chapters of HTML bodies."""
    numbers = range(1, len(chapters) + 1)
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in numbers
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in numbers)
    return zip_of(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/book.opf"/>'
            "</rootfiles></container>",
            "O/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>כותר</dc:title>'
            f"<dc:creator>דנה</dc:creator></metadata><manifest>{items}</manifest>"
            f"<spine>{spine}</spine></package>",
            **{
                f"O/c{n}.xhtml": '<?xml version="1.0" encoding="utf-8"?>'
                f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{chapter}</body></html>'
                for n, chapter in zip(numbers, chapters, strict=True)
            },
        }
    )


def _links(links: Mapping[str, tuple[str, str]]) -> str:
    inside = "".join(
        f'<Relationship Id="{key}" Type="{kind}" Target="{target}"/>'
        for key, (kind, target) in links.items()
    )
    return f'<Relationships xmlns="{_RELATIONS}">{inside}</Relationships>'
