"""A table of many passages, from the file to what an answer shows: no value without its column."""

from collections.abc import Sequence

import pytest

from rayapp.documents.reading import ReadLimits, read_document
from rayapp.documents.rules.chunks import chunks_of
from rayapp.text.passages import passages_of
from tests.support import office_files as files

pytestmark = pytest.mark.process
LIMITS = ReadLimits(seconds=60)
Rows = Sequence[Sequence[str]]
# Rows of a table, and of a wide one: a row of it is longer than a passage.
ROWS, WIDE_ROWS = 400, 40
YEARS = ("2023", "2024", "2025")
MANY_YEARS = tuple(map(str, range(1960, 2026)))


def table(first: str, names: Sequence[str], rows: int) -> list[list[str]]:
    body = [
        [f"{first} {row}", *(str(100_000 + 100 * row + column) for column in range(len(names)))]
        for row in range(1, rows + 1)
    ]
    return [[first, *names], *body]


def csv_of(rows: Rows, delimiter: str = ",") -> bytes:
    return "\r\n".join(delimiter.join(row) for row in rows).encode()


def markdown_of(rows: Rows) -> bytes:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]).encode()


def html_of(rows: Rows, head: str = "td") -> bytes:
    def line(row: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{value}</{tag}>" for value in row) + "</tr>"

    body = "".join(line(row, "td") for row in rows[1:])
    return f"<html><body><table>{line(rows[0], head)}{body}</table></body></html>".encode()


def rtf_of(rows: Rows) -> bytes:
    def line(row: Sequence[str]) -> str:
        cells = "".join(
            "".join(f"\\u{ord(one)}?" if ord(one) > 127 else one for one in value) + r"\cell "
            for value in row
        )
        return rf"\trowd\intbl {cells}\row"

    return (r"{\rtf1\ansi " + "".join(map(line, rows)) + "}").encode()


FORMATS = {
    "csv": csv_of,
    "tsv": lambda rows: csv_of(rows, "\t"),
    "xlsx": lambda rows: files.xlsx_of({"Sheet": rows}),
    "ods": lambda rows: files.ods_of("Sheet", rows),
    "md": markdown_of,
    "html": html_of,
    "docx": lambda rows: files.docx_of(files.word_table(rows)),
    "odt": lambda rows: files.odt_of(files.odf_table(rows)),
    "rtf": rtf_of,
}


async def passages(data: bytes, name: str) -> list[str]:
    """What the index finds the document by and an answer shows of it."""
    found = await read_document(data, name, LIMITS)
    texts = [chunk.text for chunk in chunks_of(found.blocks)]
    return [text[one.start : one.end] for text in texts for one in passages_of(text)]


@pytest.mark.parametrize("first", ["branch", "סניף"])
@pytest.mark.parametrize("ending", FORMATS)
async def test_every_passage_of_a_table_names_its_columns(ending: str, first: str) -> None:
    shown = await passages(FORMATS[ending](table(first, YEARS, ROWS)), f"a.{ending}")
    assert len(shown) > 20
    assert any(
        f"{first}: {first} 397; 2023: 139700; 2024: 139701; 2025: 139702" in one for one in shown
    )
    for name in (first, *YEARS):
        assert {one for one in shown if f"{name}: " not in one} <= {"Sheet"}


@pytest.mark.parametrize("ending", FORMATS)
async def test_no_value_of_a_wide_row_stands_without_its_row_and_column(ending: str) -> None:
    shown = await passages(FORMATS[ending](table("branch", MANY_YEARS, WIDE_ROWS)), f"a.{ending}")
    for column, year in enumerate(MANY_YEARS):
        value = f"{year}: {100_000 + 100 * 39 + column}"
        (held,) = (one for one in shown if value in one)
        (line,) = (line for line in held.split("\n") if value in line)
        assert line.startswith("branch: branch 39; ")


@pytest.mark.parametrize(
    "names", [("0.5", "1.5", "9.5"), ("7", "3", "12"), ("10%", "50%", "90%"), ("2023", "2023", "")]
)
async def test_a_header_that_a_format_states_may_be_of_any_numbers(names: Sequence[str]) -> None:
    rows = table("share", names, 60)
    head = files.word_table(rows[:1]).replace("<w:tr>", "<w:tr><w:trPr><w:tblHeader/></w:trPr>", 1)
    word = head.removesuffix("</w:tbl>") + files.word_table(rows[1:]).removeprefix("<w:tbl>")
    head = files.odf_table(rows[:1]).replace(
        "<table:table-row>", "<table:table-header-rows><table:table-row>"
    )
    head = head.replace("</table:table-row>", "</table:table-row></table:table-header-rows>")
    office = head.removesuffix("</table:table>") + files.odf_table(rows[1:]).partition(">")[2]
    rtf = rtf_of(rows).replace(rb"\trowd", rb"\trowd\trhdr", 1)
    stated = {
        "a.html": html_of(rows, "th"), "a.md": markdown_of(rows), "a.docx": files.docx_of(word),
        "a.odt": files.odt_of(office), "a.rtf": rtf,
    }  # fmt: skip
    for name, data in stated.items():
        shown = await passages(data, name)
        assert len(shown) > 3
        assert all(f"{names[0]}: " in one for one in shown), name
        assert any(
            f"share: share 57; {names[0]}: 105700; {names[1]}: 105701" in one for one in shown
        )
