"""Chunks in reading order, and those that are shown together."""

from collections.abc import Sequence
from typing import Any

import pytest

from rayapp.documents.rules.order import joined, runs
from rayapp.memory.item import MemoryItem, Source, SourceType
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item


def chunk(doc: str, index: int, text: str = "text", **said: Any) -> MemoryItem:
    source = Source(type=SourceType.DOCUMENT, doc_id=doc, book={"chunk_index": index, **said})
    return an_item(memory_id=f"{doc}:{index}", tier=Tier.BOOKS, source=source, text=text)


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([("a", 3), ("b", 1), ("a", 4), ("a", 2), ("a", 9)], [[3, 0, 2], [1], [4]]),
        ([("a", 1), ("b", 2)], [[0], [1]]),
        ([], []),
    ],
)
def test_chunks_that_follow_each_other_stand_at_the_place_of_the_best(
    places: Sequence[tuple[str, int]], found: list[list[int]]
) -> None:
    assert runs([chunk(*place) for place in places]) == found


def test_what_is_no_chunk_stands_alone() -> None:
    own = an_item(memory_id="mine", text="mine")
    assert runs([own, chunk("a", 1), own]) == [[0], [1], [2]]


def test_what_a_chunk_repeats_is_left_out_where_it_does() -> None:
    first, second = chunk("a", 0, "One. Two."), chunk("a", 1, "Two. Three.", overlap=5)
    assert joined([first, second]) == "One. Two.\n\nThree."
    edited = chunk("a", 0, "One. Else.")
    assert joined([edited, second]) == "One. Else.\n\nTwo. Three."


@pytest.mark.parametrize("overlap", ["5", -3, 1.5, None, [5]])
def test_a_chunk_that_says_no_number_repeats_nothing(overlap: Any) -> None:
    first, second = chunk("a", 0, "One. Two."), chunk("a", 1, "Two. Three.", overlap=overlap)
    assert joined([first, second]) == "One. Two.\n\nTwo. Three."
