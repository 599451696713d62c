"""A guessed recency moves what is about as relevant as the best, and never loses the answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.domain.requests import SortMode
from rayapp.domain.retrieval.candidates import Candidate
from rayapp.domain.retrieval.fusion import DenseArm
from rayapp.domain.retrieval.ranking import Ranked, in_order, rank, with_rerank
from rayapp.domain.retrieval.recency import shown_order
from rayapp.domain.retrieval.recipes import Recipe
from rayapp.testing.builders import an_item

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RECIPE = Recipe(name="test")
TEXTS = ("The workshop was about pottery.", "הסדנה עסקה בקדרות.")


def ranked_of(*scores: float, text: str = TEXTS[0]) -> list[Ranked]:
    """`m0` is the best and the oldest; each one after it is a day newer."""
    return rank(
        [
            Candidate(
                item=an_item(memory_id=f"m{at}", text=text, created_at=NOW + timedelta(days=at)),
                sparse=score,
                sparse_rank=at + 1,
            )
            for at, score in enumerate(scores)
        ],
        query_lang="en",
        recipe=RECIPE,
        arm=DenseArm(used=False),
    )


def names(ranked: list[Ranked]) -> list[str]:
    return [one.item.memory_id for one in ranked]


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_not_read_does_not_pass_what_was(text: str) -> None:
    # Unread, m2 and m3 keep .98 and .97; m0 has .4 + .6 x .5 = .7 after it was read.
    before = ranked_of(10.0, 9.9, 9.8, 9.7, text=text)
    read = with_rerank(before, [0.5, 0.0], RECIPE)
    assert names(in_order(read, "recency", RECIPE, asked=False))[0] == "m3"
    assert names(shown_order(read, "recency", RECIPE, asked=False)) == ["m0", "m1", "m2", "m3"]


def test_among_what_was_read_the_newer_of_near_equals_goes_first() -> None:
    read = with_rerank(ranked_of(10.0, 9.9, 9.8), [0.5, 0.5], RECIPE)
    assert names(shown_order(read, "recency", RECIPE, asked=False)) == ["m1", "m0", "m2"]


def test_without_a_rerank_all_take_part() -> None:
    ranked = ranked_of(10.0, 9.9, 9.8, 1.0)
    assert names(shown_order(ranked, "recency", RECIPE, asked=False)) == ["m2", "m1", "m0", "m3"]


def test_a_caller_who_asks_for_the_newest_gets_all_by_time() -> None:
    read = with_rerank(ranked_of(10.0, 9.9, 9.8), [0.5], RECIPE)
    assert names(shown_order(read, "recency", RECIPE, asked=True)) == ["m2", "m1", "m0"]


SCORES = st.lists(st.floats(0.01, 10.0), min_size=1, max_size=12)
CHANCES = st.lists(st.floats(0.0, 1.0), max_size=12)


@given(SCORES, CHANCES)
def test_the_best_stays_among_what_was_read_and_nothing_is_lost(
    scores: list[float], chances: list[float]
) -> None:
    before = ranked_of(*scores)
    ranked = with_rerank(before, chances[: len(before)], RECIPE)
    shown = shown_order(ranked, "recency", RECIPE, asked=False)
    read = min(len(chances), len(scores)) or len(scores)
    assert sorted(names(shown)) == sorted(names(ranked))
    assert names(shown)[read:] == names(ranked)[read:]
    assert names(ranked)[0] in names(shown)[:read]


@given(SCORES, CHANCES, st.sampled_from(["relevance", "score"]), st.booleans())
def test_other_orders_are_left_as_they_are(
    scores: list[float], chances: list[float], sort_by: SortMode, asked: bool
) -> None:
    ranked = with_rerank(ranked_of(*scores), chances[: len(scores)], RECIPE)
    expected = in_order(ranked, sort_by, RECIPE, asked=asked)
    assert names(shown_order(ranked, sort_by, RECIPE, asked=asked)) == names(expected)
