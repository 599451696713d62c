"""Files read in a process of their own: what comes back, and what is refused in which words."""

import pytest

from rayapp.core.errors import InvalidInput, TooLarge
from rayapp.documents.reading import ReadLimits, read_document
from rayapp.documents.records import BlockKind
from rayapp.documents.rules.kinds import BROKEN, EMPTY, TOO_SLOW, WRONG_TYPE

pytestmark = pytest.mark.process
LIMITS = ReadLimits(seconds=30)
HEBREW = "שלום עולם, זה מבחן קצר.\n\nפסקה שנייה: מחיר 10 ש״ח."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1255"])
async def test_a_text_in_any_encoding(encoding: str) -> None:
    text = HEBREW if encoding != "cp1255" else HEBREW.replace("״", '"')
    found = await read_document(text.encode(encoding), "a.txt", LIMITS)
    assert found.text == text
    assert (found.kind, found.language, found.title) == ("txt", "he", None)
    assert [block.kind for block in found.blocks] == [BlockKind.PARAGRAPH] * 2


async def test_pages_of_a_text_end_with_form_feeds() -> None:
    found = await read_document(b"one\n\ntwo\fthree", "a.txt", LIMITS)
    assert [(block.text, block.page) for block in found.blocks] == [
        ("one", 1), ("two", 1), ("three", 2)
    ]  # fmt: skip
    assert found.pages == 2


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"text", "a.exe", WRONG_TYPE),
        (b"text", "a", WRONG_TYPE),
        (b"%PDF-1.7 ...", "a.txt", WRONG_TYPE),
        (bytes(range(256)) * 20, "a.txt", WRONG_TYPE),
        (b"plain words", "a.pdf", WRONG_TYPE),
        (b"PK\x03\x04 not really", "a.docx", BROKEN),
        (b"", "a.txt", EMPTY),
        (b" \n\t\n ", "a.txt", EMPTY),
    ],
)
async def test_what_is_refused(data: bytes, name: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await read_document(data, name, LIMITS)
    assert refused.value.code == code
    assert refused.value.message.endswith(".")


async def test_a_file_above_its_size() -> None:
    with pytest.raises(TooLarge):
        await read_document(b"many words", "a.txt", ReadLimits(bytes=5))


async def test_a_text_above_its_characters() -> None:
    with pytest.raises(TooLarge):
        await read_document(b"many words", "a.txt", ReadLimits(characters=5))


async def test_a_reader_that_takes_too_long_is_ended() -> None:
    with pytest.raises(InvalidInput) as refused:
        await read_document(b"words", "a.txt", ReadLimits(seconds=0.001))
    assert refused.value.code == TOO_SLOW


async def test_a_text_of_too_many_lines() -> None:
    with pytest.raises(TooLarge) as refused:
        await read_document(b"a\n" * 100, "a.txt", ReadLimits(blocks=50))
    assert "50 paragraphs" in refused.value.message
