"""What documents are called, and by whom they are."""

from datetime import UTC, datetime

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.documents.ports import Book, BookStage, BookState
from rayapp.documents.records import Block, BlockKind, Extracted
from rayapp.documents.rules import library
from rayapp.documents.rules.chunks import Chunk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BOOK = Book(
    user_id="dana",
    book_id="doc_0123456789abcdef",
    upload_id="u",
    principal="agent",
    title="scan",
    file_name="scan.pdf",
    file_hash="f",
    file_bytes=1,
    state=BookState.PENDING,
    stage=BookStage.QUEUED,
    uploaded_at=NOW,
    updated_at=NOW,
)


def found(title: str | None = None, author: str | None = None) -> Extracted:
    return Extracted("pdf", title, author, "en", (Block(BlockKind.PARAGRAPH, "text"),))


@pytest.mark.parametrize(
    ("given", "file_name", "title"),
    [
        (None, "report.pdf", "report"),
        ("  ", "report.pdf", "report"),
        (" The \n report ", "x.pdf", "The report"),
        ("\u202eדוח\u200b שנתי\u202c", "x.pdf", "דוח שנתי"),
        (None, "C:\\files\\דוח.docx", "דוח"),
        (None, "\ufeffa\u200bb.txt", "ab"),
        (None, ".txt", ".txt"),
        ("<script>alert(1)</script>", "x.pdf", "<script>alert(1)</script>"),
        (None, f"{'x' * 300}.pdf", "x" * 200),
    ],
)
def test_titles(given: str | None, file_name: str, title: str) -> None:
    assert library.title_of(given, file_name) == title


@pytest.mark.parametrize("given", ["\u200b\u2060", "\u3164", "x" * 201, "a\x07b"])
def test_titles_that_show_nothing_are_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match="title needs"):
        library.title_of(given, "x.pdf")


def test_what_a_file_may_be_called() -> None:
    assert library.titles_of(BOOK, found("Own")) == ["Own", "scan", "scan.pdf"]
    assert library.titles_of(BOOK, found("scan")) == ["scan", "scan.pdf"]
    assert library.titles_of(BOOK, found("\u200b ")) == ["scan", "scan.pdf"]


@pytest.mark.parametrize(
    ("said", "author"),
    [("Dana\u200b  Levi", "Dana Levi"), ("openpyxl", None), ("User", None), ("\u2800", None)],
)
def test_programs_are_no_authors(said: str, author: str | None) -> None:
    assert library.read_book(BOOK, found(author=said), NOW).author == author


def test_the_hash_of_words_ignores_how_lines_break() -> None:
    assert library.words_hash("a b\n\nc") == library.words_hash("a\nb c ")
    assert library.words_hash("ab") != library.words_hash("ac")


def chunk(index: int, text: str, section: tuple[str, ...], overlap: int = 0) -> Chunk:
    return Chunk(
        index=index,
        text=text,
        section=section,
        headings=section,
        pages=None,
        position=0.0,
        has_code=False,
        tokens=1,
        overlap=overlap,
    )


def test_a_summary_is_the_first_sentence_of_each_section() -> None:
    chunks = [
        chunk(0, "Intro\n\nTea costs 3.5 a cup. It goes on.", ("Intro",)),
        chunk(1, "on.\n\nMore of it.", ("Intro",), overlap=3),
        chunk(2, "פרק ב\n\nהתה ירוק? כן. ועוד.", ("פרק ב",)),
        chunk(3, "Long\n\n" + "word " * 200, ("Long",)),
    ]
    said = library.summary_of(chunks)
    assert said.startswith("Tea costs 3.5 a cup. התה ירוק? word word")
    assert said.endswith("…")
    assert len(said) <= library.SUMMARY_CHARS
    assert library.summary_of(chunks[:2]) == "Tea costs 3.5 a cup. It goes on."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# The garden\n\nRoses grow. Water them.\n\n## Tea\nIt is hot.",
            "Roses grow. Water them. It is hot.",
        ),
        ("# הגינה\n\nהוורדים גדלים.", "הוורדים גדלים."),
        ("# Only a title #", "Only a title"),
        ("#1 of the list, and #garden", "#1 of the list, and #garden"),
    ],
)
def test_a_summary_is_text_and_no_heading(text: str, said: str) -> None:
    """Also where a file that is called text holds Markdown."""
    assert library.summary_of([chunk(0, text, ())]) == said


def test_a_long_beginning_is_cut_at_a_word() -> None:
    said = library.summary_of([chunk(0, "word " * 200, ())])
    assert said.endswith("word …")
    assert len(said) <= library.SUMMARY_CHARS + 2
    assert library.summary_of([chunk(0, "Only a heading", ("Only a heading",))]) != ""
    many = [chunk(n, f"Section {n} says something of interest.", (f"s{n}",)) for n in range(50)]
    assert len(library.summary_of(many)) <= library.SUMMARY_CHARS
