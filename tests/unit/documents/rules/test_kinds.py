"""Which format a file has, by its content and its name."""

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.documents.rules.kinds import BROKEN, WRONG_TYPE, Kind, kind_of
from tests.support import office_files as files

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"%PDF-1.7", "a.PDF", Kind.PDF),
        (b"\xef\xbb\xbf\n%PDF-1.4", "a.pdf", Kind.PDF),
        (b"{\\rtf1", "a.rtf", Kind.RTF),
        (files.docx_of(""), "dir/a.b.docx", Kind.DOCX),
        (files.pptx_of([[]]), "a.pptx", Kind.PPTX),
        (files.xlsx_of({"a": []}), "a.xlsx", Kind.XLSX),
        (files.odt_of(""), "a.odt", Kind.ODT),
        (files.ods_of("a", []), "a.ods", Kind.ODS),
        (files.epub_of([]), "a.epub", Kind.EPUB),
        (OLE + "Workbook".encode("utf-16-le"), "a.xls", Kind.XLS),
        (b"words", "a.txt", Kind.TXT),
        (b"words", "a.text", Kind.TXT),
        (b"# words", "a.markdown", Kind.MD),
        ("מילים".encode("cp1255"), "a.txt", Kind.TXT),
        ("מילים".encode("utf-16"), "a.txt", Kind.TXT),
        ("שלום עולם טוב".encode("utf-16-le"), "a.txt", Kind.TXT),
        ("<p>שלום".encode("utf-16"), "a.htm", Kind.HTML),
        (b"a,b", "a.csv", Kind.CSV),
        (b"Subject: x\n\nwords", "a.eml", Kind.EML),
    ],
)
def test_what_agrees(data: bytes, name: str, kind: Kind) -> None:
    assert kind_of(data, name) is kind


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"%PDF-1.7", "a.txt", WRONG_TYPE),
        (files.docx_of(""), "a.xlsx", WRONG_TYPE),
        (files.zip_of({"a": "b"}), "a.docx", WRONG_TYPE),
        (b"PK\x03\x04" + b"x" * 99, "a.docx", BROKEN),
        (OLE + "WordDocument".encode("utf-16-le"), "a.xls", WRONG_TYPE),
        (b"\x00\x01\x02" * 99, "a.txt", WRONG_TYPE),
        (b"words", "a.html", WRONG_TYPE),
        (b"words", "a.eml", WRONG_TYPE),
        (b"words", "a.doc", WRONG_TYPE),
        (b"words", "docx", WRONG_TYPE),
    ],
)
def test_what_does_not(data: bytes, name: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        kind_of(data, name)
    assert refused.value.code == code
