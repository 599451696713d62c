"""PDF files that the tests make themselves."""

import io
import os
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from rayapp.core.errors import InvalidInput, TooLarge
from rayapp.documents.reading import ReadLimits, read_document
from rayapp.documents.records import BlockKind
from rayapp.documents.rules.kinds import BROKEN, EMPTY, ENCRYPTED
from tests.support.pdf_files import drawn_pdf, encrypted_pdf, form_pdf, pdf_of

pytestmark = pytest.mark.process
LIMITS = ReadLimits(seconds=60)


async def test_headings_pages_title_and_author() -> None:
    pages = [
        [(f"Chapter {name}", 24), *[(f"Words of line {n} of the text.", 11) for n in range(9)]]
        for name in ("one", "two")
    ]
    found = await read_document(pdf_of(pages, title="My book", author="Dana"), "b.pdf", LIMITS)
    assert (found.kind, found.title, found.author, found.pages) == ("pdf", "My book", "Dana", 2)
    heads = [(b.text, b.page) for b in found.blocks if b.kind is BlockKind.HEADING]
    assert heads == [("Chapter one", 1), ("Chapter two", 2)]
    assert (found.language, found.pages_without_text) == ("en", ())


async def test_pages_without_text_are_named() -> None:
    found = await read_document(pdf_of([[], [("some text", 12)], []]), "b.pdf", LIMITS)
    assert (found.pages, found.pages_without_text) == (3, (1, 3))


async def test_a_scan_says_what_to_do() -> None:
    with pytest.raises(InvalidInput) as refused:
        await read_document(pdf_of([[], []]), "b.pdf", LIMITS)
    assert refused.value.code == EMPTY
    assert "OCR" in refused.value.message
    assert refused.value.details == {"pages_without_text": [1, 2]}


async def test_too_many_pages() -> None:
    with pytest.raises(TooLarge):
        await read_document(pdf_of([[], [], []]), "b.pdf", ReadLimits(pages=2))


async def test_a_locked_file() -> None:
    with pytest.raises(InvalidInput) as refused:
        await read_document(encrypted_pdf(), "b.pdf", LIMITS)
    assert refused.value.code == ENCRYPTED


async def test_a_broken_file() -> None:
    with pytest.raises(InvalidInput) as refused:
        await read_document(b"%PDF-1.7\n" + b"x" * 5_000, "b.pdf", LIMITS)
    assert refused.value.code == BROKEN


async def test_pages_of_another_file() -> None:
    """Pages that were copied keep their numbers."""
    one = pdfium.PdfDocument(pdf_of([[("alpha", 12)], [("beta", 12)]]))
    joined = pdfium.PdfDocument.new()
    for _ in range(3):
        joined.import_pages(one)
    out = io.BytesIO()
    joined.save(out)
    found = await read_document(out.getvalue(), "b.pdf", LIMITS)
    assert [(b.text, b.page) for b in found.blocks][-2:] == [("alpha", 5), ("beta", 6)]


HEBREW = [
    "שלום (world) עולם, מחיר 10.50 ₪ (כולל 17% מע״מ).",
    "בשנים 1988–1995 נכתבה גרסה Word (2010) בתל אביב.",
    "שָׁלוֹם עוֹלָם, הַאִם מִלָּה מְנֻקֶּדֶת נִקְרֵאת?",
    "Plain English here, with שלום inside it.",
    "הכתובת https://a.example/c?d=1 כאן [1], ריימונד? (דמיאן).",
]


async def test_hebrew_as_it_is_read() -> None:
    found = await read_document(drawn_pdf([[(line, 11) for line in HEBREW]]), "b.pdf", LIMITS)
    assert " ".join(found.text.split()) == " ".join(HEBREW)
    assert found.language == "mixed"


async def test_characters_outside_the_basic_plane() -> None:
    lines = ["Let \U0001d400 be a set of \U00020bb7.", "שלום \U0001d400 עולם"]
    found = await read_document(drawn_pdf([[(line, 11) for line in lines]]), "b.pdf", LIMITS)
    assert found.text.split() == " ".join(lines).split()


async def test_what_is_filled_in_a_form_is_read() -> None:
    found = await read_document(form_pdf("Name", "Dana Levi"), "b.pdf", LIMITS)
    assert found.text.split() == ["Name", "Dana", "Levi"]


async def test_hebrew_title() -> None:
    found = await read_document(drawn_pdf([[("שלום", 11)]], title="ספר"), "b.pdf", LIMITS)
    assert (found.title, found.text) == ("ספר", "שלום")


async def test_text_recognition_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of that name stands in: what counts is that it gets the picture of the page."""
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\nhead -c 2\necho ' of a page'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    data = pdf_of([[("some text", 12)], []])
    plain = await read_document(data, "b.pdf", LIMITS)
    recognised = await read_document(data, "b.pdf", LIMITS, ocr=True)
    assert [(b.text, b.page) for b in plain.blocks] == [("some text", 1)]
    assert [(b.text, b.page) for b in recognised.blocks] == [("some text", 1), ("P5 of a page", 2)]
    assert plain.pages_without_text == recognised.pages_without_text == (2,)
