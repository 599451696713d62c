"""The suite of books: how questions are joined to places, and what counts as right."""

import json
from pathlib import Path

import pytest

from jobs.suites import documents, heq, parashoot
from jobs.suites.documents import PAGE, PAGE_CHARS, PASSAGE, Asked, judged, load_documents
from rayapp.core.errors import ConfigError

PARAGRAPH = "הבית עומד ליד הנהר. " * 30 + "התשובה כאן. " + "וסוף הפסקה. " * 10
START = PARAGRAPH.index("התשובה")


def write_sets(folder: Path, articles: int = 3) -> None:
    question = {"id": "q", "question": "איפה?", "is_impossible": False}
    answer = [{"text": "התשובה", "answer_start": START}]
    made = [
        {
            "title": f"ערך {number}",
            "paragraphs": [{"context": PARAGRAPH, "qas": [question | {"answers": answer}]}],
        }
        for number in range(articles)
    ]
    flat = {
        "id": "p",
        "title": "אחר",
        "context": PARAGRAPH,
        "question": "מתי?",
        "answers": {"text": ["התשובה"], "answer_start": [START]},
    }
    for file, data in ((heq.FILE, made), (parashoot.FILE, [flat])):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(json.dumps({"data": data}), encoding="utf-8")


def test_paragraphs_become_books_with_sections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "BOOK_CHARS", len(PARAGRAPH))
    write_sets(tmp_path)
    loaded = load_documents(tmp_path)
    assert [book.name for book in loaded.books] == ["heq-1", "heq-2", "heq-3", "parashoot-1"]
    assert loaded.books[0].text.startswith("# ערך 0\n\nהבית")
    assert loaded.suite.questions == 8
    assert {one.category for one in loaded.suite.every_question()} == {PASSAGE, PAGE}
    sampled = loaded.sampled(4)
    assert sampled.suite.questions == 2 * sum(len(book.asked) for book in sampled.books) >= 4
    for book in loaded.books:
        (asked,) = book.asked
        assert asked.words in documents.squeezed(book.text)
        assert asked.page == (book.name, START // PAGE_CHARS)


def test_the_first_right_hit_counts() -> None:
    asked = Asked("q", "?", "ab", ("book", 2))
    pages = {("book", 1)}, {("book", 2), ("book", 3)}, {("book", 2)}
    found = [("x", pages[0]), ("a b", pages[1]), ("ab", pages[2])]
    assert judged(asked, found, PASSAGE) == ("passage-0", "right", "passage-2")
    assert judged(asked, found[:1], PAGE) == ("page-0",)
    assert judged(asked, found, PAGE) == ("page-0", "right", "page-2")


def test_a_file_of_another_shape_is_named(tmp_path: Path) -> None:
    write_sets(tmp_path)
    (tmp_path / parashoot.FILE).write_text('{"data": [{}]}', encoding="utf-8")
    with pytest.raises(ConfigError, match="no rows of ParaShoot"):
        load_documents(tmp_path)
