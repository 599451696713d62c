"""One small file of each format: headings, tables, pages, title, author."""

import io
import zipfile

import pytest

from rayapp.core.errors import InvalidInput, TooLarge
from rayapp.documents.reading import ReadLimits, read_document
from rayapp.documents.records import BlockKind, Extracted
from rayapp.documents.rules.kinds import BROKEN, ENCRYPTED, MEMORY, TOO_SLOW, WRONG_TYPE
from tests.support import office_files as files

pytestmark = pytest.mark.process
LIMITS = ReadLimits(seconds=60)
H, P, L, C, T = (
    BlockKind.HEADING,
    BlockKind.PARAGRAPH,
    BlockKind.LIST_ITEM,
    BlockKind.CODE,
    BlockKind.TABLE_ROW,
)
TABLE = [(T, row) for row in files.ROWS]


def shown(found: Extracted) -> list[tuple[BlockKind, str]]:
    return [(block.kind, block.text) for block in found.blocks]


async def test_docx() -> None:
    body = (
        files.word_paragraph("ראשי", "h1")
        + '<w:p><w:r><w:t>פסקה </w:t></w:r><w:ins><w:r><w:t>added</w:t></w:r></w:ins><w:del><w:r>'
        '<w:delText>gone</w:delText></w:r></w:del><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
        + f"<w:sdt><w:sdtContent>{files.word_paragraph('משנה', 'h2')}</w:sdtContent></w:sdt>"
        + files.word_paragraph("item", "l")
        + files.word_table(files.TABLE)
        + files.word_paragraph("next page", before="<w:lastRenderedPageBreak/>")
    )  # fmt: skip
    note = f'<w:footnote w:id="2">{files.word_paragraph("a note")}</w:footnote>'
    found = await read_document(files.docx_of(body, footnotes=note), "a.docx", LIMITS)
    assert shown(found) == [
        (H, "ראשי"), (P, "פסקה added"), (P, "a note"), (H, "משנה"), (L, "item"), *TABLE,
        (P, "next page"),
    ]  # fmt: skip
    assert (found.title, found.author, found.pages) == ("כותר", "דנה", 2)
    assert [block.level for block in found.blocks if block.kind is H] == [1, 2]
    assert (found.blocks[0].page, found.blocks[-1].page) == (1, 2)
    assert found.blocks[5].columns == ("שם", "עיר", "מחיר")


async def test_the_main_part_of_docx_is_the_one_that_is_linked_as_such() -> None:
    data = files.docx_of(files.word_paragraph("ראשי", "h1"), main="document2")
    assert shown(await read_document(data, "a.docx", LIMITS)) == [(H, "ראשי")]


def word_box(text: str) -> str:
    return f"<w:txbxContent>{files.word_paragraph(text)}</w:txbxContent>"


async def test_all_text_boxes_of_a_group_are_read_once() -> None:
    group = f"<w:drawing>{word_box('one')}<g>{word_box('two')}</g></w:drawing>"
    old = f"<w:pict>{word_box('one')}{word_box('two')}</w:pict>"
    both = f"<Choice>{group}</Choice><Fallback>{old}</Fallback>"
    alone = (
        f"<Choice><w:drawing/></Choice><Fallback><w:pict>{word_box('three')}</w:pict></Fallback>"
    )
    body = "".join(
        f"<w:p><w:r><AlternateContent>{inside}</AlternateContent></w:r></w:p>"
        for inside in (both, alone)
    )
    found = await read_document(files.docx_of(body), "a.docx", LIMITS)
    assert shown(found) == [(P, "one"), (P, "two"), (P, "three")]


async def test_formulas_of_docx_are_one_line() -> None:
    def run(text: str) -> str:
        return f"<r><t>{text}</t></r>"

    body = (
        f"<w:p><w:r><w:t>Here </w:t></w:r><oMath>{run('x=')}<f><fPr/><num>{run('a+b')}</num><den>"
        f"{run('2')}</den></f>{run('+')}<rad><deg/><e><sSup><e>{run('y')}</e><sup>{run('2')}</sup>"
        f"</sSup></e></rad>{run('+')}<d><e>{run('z')}</e></d></oMath></w:p>"
    )
    found = await read_document(files.docx_of(body), "a.docx", LIMITS)
    assert shown(found) == [(P, "Here x=(a+b)/2+√y^2+(z)")]


async def test_pptx() -> None:
    slides = [[("body", "א\nב"), ("title", "שקף"), ("sldNum", "1")], [], [("title", "טבלה")]]
    found = await read_document(files.pptx_of(slides, table=True), "a.pptx", LIMITS)
    assert shown(found) == [(H, "שקף"), (L, "א"), (L, "ב"), (H, "טבלה"), *TABLE]
    assert [block.page for block in found.blocks] == [1, 1, 1, 3, 3, 3, 3]
    assert (found.title, found.author) == ("כותר", "דנה")
    assert (found.pages, found.pages_without_text) == (3, (2,))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.xlsx", files.xlsx_of({"גיליון": files.TABLE})),
        ("a.xls", files.xls_of_table()),
        ("a.ods", files.ods_of("גיליון", files.TABLE)),
    ],
)
async def test_sheets(name: str, data: bytes) -> None:
    found = await read_document(data, name, LIMITS)
    assert shown(found) == [(H, "גיליון"), *TABLE]
    assert found.title == (None if name == "a.xls" else "כותר")


async def test_a_title_above_the_names_and_numbers_without_names() -> None:
    sheets = {
        "one": [["Prices of 2024"], [], ["name", "price"], ["pen", "3"]],
        "two": [["1", "2"], ["3", "4.5"]],
        "empty": [[]],
    }
    found = await read_document(files.xlsx_of(sheets), "a.xlsx", LIMITS)
    assert shown(found) == [
        (H, "one"), (P, "Prices of 2024"), (T, "name: pen; price: 3"),
        (H, "two"), (T, "1; 2"), (T, "3; 4.5"),
    ]  # fmt: skip


async def test_a_long_number_of_a_sheet_keeps_its_digits() -> None:
    sheets = {"one": [["order", "price"], ["4580123412341234", "4.5"]]}
    found = await read_document(files.xlsx_of(sheets), "a.xlsx", LIMITS)
    assert shown(found)[-1] == (T, "order: 4580123412341234; price: 4.5")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1255", "utf-16"])
async def test_csv(delimiter: str, encoding: str) -> None:
    text = "\r\n".join(
        delimiter.join(f'"{value}"' if ";" in value else value for value in row)
        for row in files.TABLE
    )
    found = await read_document(text.encode(encoding), "a.csv", LIMITS)
    assert shown(found) == TABLE


async def test_what_ends_no_line_of_a_table_stands_in_its_value() -> None:
    text = "name,city,phone\nDana,Tel\u2028Aviv,050\n"
    found = await read_document(text.encode(), "a.csv", LIMITS)
    (row,) = [said for _, said in shown(found)]
    assert row.startswith("name: Dana; city: Tel")
    assert row.endswith("phone: 050")


async def test_tsv_and_formulas_are_data() -> None:
    found = await read_document(b"name\tsum\n=cmd|' /C calc'!A0\t+1", "a.tsv", LIMITS)
    assert shown(found) == [(T, "name: =cmd|' /C calc'!A0; sum: +1")]


HTML = """<h1>ראשי</h1><p>פסקה <b>מודגש</b>ת&amp;<script>alert(1)</script></p><nav>menu</nav>
<ul><li>א<ul><li>ב</li></ul></li></ul><pre>x = 1
  y</pre><p style="display:none">hidden</p>outside"""
HTML_BLOCKS = [(H, "ראשי"), (P, "פסקה מודגשת&"), (L, "א"), (L, "ב"), (C, "x = 1\n  y"),
               (P, "outside")]  # fmt: skip


def html_table() -> str:
    head, *rows = files.TABLE
    cells = ["".join(f"<th>{value}</th>" for value in head)]
    cells += ["".join(f"<td>{value}</td>" for value in row) for row in rows]
    return "<table>{}</table>".format("".join(f"<tr>{row}</tr>" for row in cells))


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1255", "iso-8859-8"])
async def test_html(encoding: str) -> None:
    page = (
        f'<html><head><meta charset="{encoding}"><title>כותר</title><meta name="author" '
        f'content="דנה"></head><body>{HTML}{html_table()}</body></html>'
    )
    found = await read_document(page.encode(encoding), "a.html", LIMITS)
    assert shown(found) == [*HTML_BLOCKS, *TABLE]
    assert (found.title, found.author) == ("כותר", "דנה")


async def test_spans_of_cells() -> None:
    page = """<table><tr><th>city</th><th colspan=2>prices</th></tr>
    <tr><td rowspan=2>Lod</td><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>"""
    found = await read_document(page.encode(), "a.htm", LIMITS)
    assert [block.text for block in found.blocks] == [
        "city: Lod; prices: 1; prices: 2",
        "city: Lod; prices: 3; prices: 4",
    ]


async def test_a_caption_stands_before_its_table() -> None:
    page = html_table().replace("<table>", "<table><caption>Prices of <b>2024</b></caption>")
    found = await read_document(page.encode(), "a.html", LIMITS)
    assert shown(found) == [(P, "Prices of 2024"), *TABLE]


async def test_epub() -> None:
    found = await read_document(files.epub_of([HTML, "<h2>two</h2>"]), "a.epub", LIMITS)
    assert shown(found) == [*HTML_BLOCKS, (H, "two")]
    assert (found.title, found.author) == ("כותר", "דנה")


async def test_markdown() -> None:
    text = """---
title: כותר
author: דנה
---
# ראשי

פסקה *נטויה*
ממשיכה

- א
  - ב

```
x = 1
  y
```

| שם | עיר |
|---|---|
| דנה | חיפה |
"""
    found = await read_document(text.encode(), "a.md", LIMITS)
    assert shown(found) == [
        (H, "ראשי"), (P, "פסקה נטויה ממשיכה"), (L, "א"), (L, "ב"), (C, "x = 1\n  y"),
        (T, "שם: דנה; עיר: חיפה"),
    ]  # fmt: skip
    assert (found.title, found.author) == ("כותר", "דנה")


async def test_tags_that_markdown_names_take_nothing_with_them() -> None:
    text = """Use the <script> tag, a <b>bold</b> <Button> and <select>.

<textarea> opens a line

<script>
alert(1)
</script>

<iframe> too

end"""
    said = (await read_document(text.encode(), "a.md", LIMITS)).text
    assert said.startswith("Use the <script> tag, a bold <Button> and <select>.")
    assert "alert" not in said
    assert " ".join(said.split()).endswith("<textarea> opens a line <iframe> too end")


async def test_words_in_angle_brackets_stay() -> None:
    text = "Use Vec<String> and send to <your-email> and a < b"
    assert (await read_document(text.encode(), "a.md", LIMITS)).text == text


@pytest.mark.parametrize("day", ["2024-02-30", "0000-00-00"])
async def test_an_impossible_day_in_front_matter_breaks_nothing(day: str) -> None:
    text = f"---\ntitle: Hello\ndate: {day}\n---\n\nrest"
    found = await read_document(text.encode(), "a.md", LIMITS)
    assert (found.title, found.text) == ("Hello", "rest")


async def test_lines_around_words_are_no_front_matter() -> None:
    for said in ("Introduction of it", "a: b: c"):
        text = f"---\n{said}\n---\n\nrest"
        found = await read_document(text.encode(), "a.md", LIMITS)
        assert shown(found) == [(H, said), (P, "rest")]


async def test_odt() -> None:
    body = (
        '<text:h text:outline-level="2">משנה</text:h><text:p>פסקה<text:s/><text:span>כאן'
        "</text:span><text:note><text:note-body><text:p>הערה</text:p></text:note-body></text:note>"
        "</text:p><text:list><text:list-item><text:p>פריט</text:p></text:list-item></text:list>"
        f"{files.odf_table(files.TABLE)}<text:p><text:soft-page-break/>סוף</text:p>"
    )
    found = await read_document(files.odt_of(body), "a.odt", LIMITS)
    assert shown(found) == [
        (H, "משנה"), (P, "פסקה כאן"), (P, "הערה"), (L, "פריט"), *TABLE, (P, "סוף")
    ]  # fmt: skip
    assert (found.title, found.author, found.pages) == ("כותר", "דנה", 2)


async def test_rows_of_a_table_within_a_table_are_read_once() -> None:
    inner = "<text:p>word</text:p>"
    for _ in range(20):
        cell = f"<table:table-cell>{inner}</table:table-cell>"
        row = (
            f"<table:table-row>{cell}{cell.replace(inner, '<text:p>x</text:p>')}</table:table-row>"
        )
        inner = f"<table:table><table:table-rows>{row}</table:table-rows></table:table>"
    found = await read_document(files.odt_of(inner), "a.odt", LIMITS)
    assert found.text.split() == ["word;", *["x;"] * 19, "x"]


RTF = rb"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset177 Arial;}{\f1\fcharset0 Arial;}}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s2 heading 2;}}
{\info{\title \u1499?\u1493?}{\author Dana}}
\pard\s1 {\f0 \'f9\'ec\'e5\'ed}\par
\pard\f1 caf\'e9 {\b bold} \u1488?\u1489? {\field{\*\fldinst HYPERLINK "http://x"}{\fldrslt link}}
\par\pard\s2 Two\par
\trowd\pard\intbl Name\cell City\cell\row\trowd\pard\intbl Ron\cell Haifa\cell\row
\pard after {\*\unknown hidden}\par \page second\par}"""


async def test_rtf() -> None:
    found = await read_document(RTF, "a.rtf", LIMITS)
    assert shown(found) == [
        (H, "שלום"), (P, "café bold אב link"), (H, "Two"), (T, "Name: Ron; City: Haifa"),
        (P, "after"), (P, "second"),
    ]  # fmt: skip
    assert (found.title, found.author, found.pages) == ("כו", "Dana", 2)
    assert [block.level for block in found.blocks if block.kind is H] == [1, 2]
    assert found.blocks[-1].page == 2


async def test_the_default_font_of_rtf_has_an_alphabet() -> None:
    fonts = r"{\fonttbl{\f0\fnil\fcharset177 Arial;}{\f1\fcharset0 Arial;}}"
    text = r"\pard \'f9\'ec\'e5\'ed\par\f1 caf\'e9\plain  \'f9\par"
    data = rf"{{\rtf1\ansi\ansicpg1252\deff0{fonts}{text}}}"
    found = await read_document(data.encode(), "a.rtf", LIMITS)
    assert shown(found) == [(P, "שלום"), (P, "café ש")]


async def test_words_that_a_change_deleted_are_not_read() -> None:
    said = r"We meet {\deleted on Monday}on Tuesday\deleted  at one\deleted0  at two\par"
    found = await read_document(rf"{{\rtf1\pard {said}}}".encode(), "a.rtf", LIMITS)
    assert shown(found) == [(P, "We meet on Tuesday at two")]


async def test_text_boxes_of_rtf() -> None:
    box = (
        r"{\shp{\*\shpinst\shpleft0{\sp{\sn shapeType}{\sv 202}}{\shptxt \pard in a box\par}}"
        r"{\shprslt{\*\do\dptxbx{\dptxbxtext\pard in a box\par}}}}"
    )
    data = (
        rf"{{\rtf1{{\header {box}}}\pard before {box}after\par"
        rf"\trowd\pard\intbl Name\cell City\cell\row\trowd\pard\intbl Ron{box}\cell Haifa\cell\row"
        r"\pard end\par}"
    )
    found = await read_document(data.encode(), "a.rtf", LIMITS)
    assert shown(found) == [
        (P, "in a box"), (P, "before after"), (P, "in a box"), (T, "Name: Ron; City: Haifa"),
        (P, "end"),
    ]  # fmt: skip


async def test_eml() -> None:
    letter = (
        "From: דנה <d@example.org>\r\nTo: r@example.org\r\nSubject: =?utf-8?b?16nXnNeV150=?=\r\n"
        'Content-Type: text/plain; charset="windows-1255"\r\n'
        "Content-Transfer-Encoding: 8bit\r\n\r\n"
    ).encode() + "שלום רב\r\n\r\nלהתראות".encode("cp1255")
    found = await read_document(letter, "a.eml", LIMITS)
    assert shown(found)[0] == (H, "שלום")
    assert shown(found)[2:] == [(P, "שלום רב"), (P, "להתראות")]
    assert found.title == "שלום"


def letter_of(kind: str, *parts: str) -> bytes:
    inside = "".join(f"--B\n{part}\n" for part in parts)
    return f"From: d@e.org\nSubject: s\nContent-Type: {kind}\n\n{inside}--B--\n".encode()


PLAIN = "Content-Type: text/plain\n\n"
PICTURE = "Content-Type: image/png; name=a.png\nContent-Disposition: inline\n\nx"


async def test_all_texts_of_a_letter_are_read() -> None:
    within = f"Content-Type: message/rfc822\n\nFrom: a@b.org\nSubject: inner\n{PLAIN}three"
    both = (
        "Content-Type: multipart/alternative; boundary=C\n\n"
        f"--C\n{PLAIN}four\n--C\nContent-Type: text/html\n\n<p>four</p>\n--C--"
    )
    parts = (f"{PLAIN}one", PICTURE, f"{PLAIN}two", within, both)
    found = await read_document(letter_of("multipart/mixed; boundary=B", *parts), "a.eml", LIMITS)
    assert shown(found)[2:] == [
        (P, "one"), (P, "Attachment: a.png"), (P, "two"),
        (H, "inner"), (P, "From: a@b.org"), (P, "three"), (P, "four"),
    ]  # fmt: skip


async def test_a_blank_plain_text_hides_no_other() -> None:
    parts = (f"{PLAIN} ", "Content-Type: text/html\n\n<p>The invoice</p>")
    letter = letter_of("multipart/alternative; boundary=B", *parts)
    assert shown(await read_document(letter, "a.eml", LIMITS))[-1] == (P, "The invoice")


@pytest.mark.parametrize("address", ["Dan <", "a@", '"', "a@["])
async def test_an_odd_address_breaks_no_letter(address: str) -> None:
    letter = f"From: {address}\nTo: {address}\nSubject: s\n\nabout cats\n".encode()
    assert shown(await read_document(letter, "a.eml", LIMITS))[-1] == (P, "about cats")


async def test_a_letter_that_names_no_border_between_its_parts_is_text() -> None:
    letter = b"From: d@e.org\nSubject: s\nContent-Type: multipart/mixed\n\none\n\ntwo\n"
    assert shown(await read_document(letter, "a.eml", LIMITS))[2:] == [(P, "one"), (P, "two")]


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (files.docx_of(files.word_paragraph("a")), "a.xlsx", WRONG_TYPE),
        (files.docx_of(files.word_paragraph("a"))[:-200], "a.docx", BROKEN),
        (files.zip_of({"x": "y"}), "a.docx", WRONG_TYPE),
        (files.zip_of({"word/document.xml": "<w"}), "a.docx", BROKEN),
        (files.zip_of({"mimetype": "application/epub+zip"}), "a.epub", BROKEN),
        (files.odt_of("<text:p>a</text:p><unclosed>"), "a.odt", BROKEN),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 3000, "a.xls", WRONG_TYPE),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "a.docx",
         ENCRYPTED),
        (b"just words", "a.html", WRONG_TYPE),
        (b"\x89PNG\r\n\x1a\n" + bytes(500), "a.md", WRONG_TYPE),
    ],
)  # fmt: skip
async def test_what_is_refused(data: bytes, name: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await read_document(data, name, LIMITS)
    assert refused.value.code == code


async def test_an_entity_bomb_and_a_file_of_this_machine_are_not_read() -> None:
    declared = (
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
        '<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    )
    chapter = "<html><body>&f;&b;<p>text</p></body></html>"
    data = files.zip_of(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"{declared}<d><body><text><p>text &f;&b;</p></text></body></d>{chapter}"
            .removesuffix(chapter),
        }
    )  # fmt: skip
    found = await read_document(data, "a.odt", LIMITS)
    assert found.text == "text"
    word = files.zip_of(
        {
            "word/document.xml": f'{declared}<w:d xmlns:w="w"><w:body><w:p><w:r><w:t>a&f;b&b;</w:t>'
            "</w:r></w:p></w:body></w:d>"
        }
    )
    assert (await read_document(word, "a.docx", LIMITS)).text == "ab"


async def test_a_zip_bomb() -> None:
    data = files.docx_of(files.word_paragraph("a" * (120 << 20)))
    assert len(data) < 200_000
    with pytest.raises(TooLarge):
        await read_document(data, "a.docx", LIMITS)


async def test_a_sheet_that_unpacks_to_more_than_the_memory() -> None:
    cells = '<c r="A1"><v>1</v></c>' + '<c r="XFD1048576"><v>1</v></c>'
    data = files.xlsx_of({"a": [["x"]]})
    parts = {"xl/worksheets/sheet1.xml": _sheet(cells)}
    with pytest.raises(InvalidInput) as refused:
        await read_document(_with_parts(data, parts), "a.xlsx", LIMITS)
    assert refused.value.code == MEMORY


async def test_a_huge_sheet_ends_within_its_time() -> None:
    row = "<row>" + "<c><v>1</v></c>" * 50 + "</row>"
    data = _with_parts(
        files.xlsx_of({"a": [["x"]]}), {"xl/worksheets/sheet1.xml": _sheet(row * 40_000, "")}
    )
    with pytest.raises(InvalidInput) as refused:
        await read_document(data, "a.xlsx", ReadLimits(seconds=0.3))
    assert refused.value.code == TOO_SLOW


def _sheet(inside: str, row: str = "row") -> str:
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    inside = f"<{row}>{inside}</{row}>" if row else inside
    return f"<worksheet {space}><sheetData>{inside}</sheetData></worksheet>"


def _with_parts(data: bytes, parts: dict[str, str]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        whole: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    return files.zip_of({**whole, **parts})
