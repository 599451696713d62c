"""What is written before a book's passage when it is embedded."""

from typing import Any

import pytest

from rayapp.index.rules.prefix import MAX_PART_CHARS, book_prefix, embedded_texts
from rayapp.memory.item import MemoryItem, Source, SourceType
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item


def passage(book: dict[str, Any] | None, tier: Tier = Tier.BOOKS) -> MemoryItem:
    return an_item(
        text="הפרק הראשון",
        tier=tier,
        source=Source(type=SourceType.DOCUMENT, doc_id="d", book=book),
    )


@pytest.mark.parametrize(
    ("book", "prefix"),
    [
        ({"title": "Dune", "section": "I"}, "Book: Dune. Section: I."),
        ({"title": "סיפור על אהבה.", "section": None}, "Book: סיפור על אהבה."),
        ({"section": " A \n B "}, "Section: A B."),
        ({"title": " ", "section": 7}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_title_and_section_stand_before_a_passage(book: Any, prefix: str) -> None:
    item = passage(book)
    assert book_prefix(item) == prefix
    assert embedded_texts(item) == [f"{prefix}\n{item.text}" if prefix else item.text]


def test_other_tiers_have_no_prefix() -> None:
    assert embedded_texts(passage({"title": "Dune"}, Tier.WORKING)) == ["הפרק הראשון"]


def test_a_long_title_does_not_drown_the_text() -> None:
    prefix = book_prefix(passage({"title": "ת" * 900, "section": "s" * 900}))
    assert len(prefix) <= 2 * (MAX_PART_CHARS + len("Section: . "))
