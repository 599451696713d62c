"""A guessed recency moves what is about as relevant as the best, and never loses the answer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.memory.item import Stats
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.ranking import Ranked, in_order, rank, with_rerank
from rayapp.search.rules.recipes import Recipe, RerankBlend
from tests.support.builders import an_item

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RECIPE = Recipe(name="test", rerank=RerankBlend(original=0.5, cross_encoder=0.5))
TEXTS = ("The workshop was about pottery.", "הסדנה עסקה בקדרות.")


def ranked_of(*scores: float, text: str = TEXTS[0]) -> list[Ranked]:
    """`m0` is the best and the oldest; each one after it is a day newer."""
    return rank(
        Candidates.of(
            [
                Candidate(
                    item=an_item(
                        memory_id=f"m{at}", text=text, created_at=NOW + timedelta(days=at)
                    ),
                    sparse=score,
                    sparse_rank=at + 1,
                )
                for at, score in enumerate(scores)
            ]
        ),
        query_lang="en",
        recipe=RECIPE,
        retriever=DenseRetriever(used=False),
    )


def names(ranked: list[Ranked]) -> list[str]:
    return [one.item.memory_id for one in ranked]


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_not_read_does_not_pass_what_was(text: str) -> None:
    # Read, m0 has .5 + .5 x .5 = .75 and m1 .5; unread, m2 and m3 have .49.
    read = with_rerank(ranked_of(10.0, 9.9, 9.8, 9.7, text=text), [0.5, 0.0], RECIPE)
    assert names(in_order(read, "recency", RECIPE, asked=False)) == ["m0", "m1", "m2", "m3"]


def test_among_what_was_read_the_newer_of_near_equals_goes_first() -> None:
    read = with_rerank(ranked_of(10.0, 9.9, 9.8), [0.5, 0.5], RECIPE)
    assert names(in_order(read, "recency", RECIPE, asked=False)) == ["m1", "m0", "m2"]


def test_without_a_rerank_all_take_part() -> None:
    ranked = ranked_of(10.0, 9.9, 9.8, 1.0)
    assert with_rerank(ranked, [], RECIPE) == ranked
    assert names(in_order(ranked, "recency", RECIPE, asked=False)) == ["m2", "m1", "m0", "m3"]


def test_a_caller_who_asks_for_the_newest_gets_all_by_time() -> None:
    read = with_rerank(ranked_of(10.0, 9.9, 9.8), [0.5], RECIPE)
    assert names(in_order(read, "recency", RECIPE, asked=True)) == ["m2", "m1", "m0"]


SCORES = st.lists(st.floats(0.01, 10.0), min_size=1, max_size=12)
CHANCES = st.lists(st.floats(0.0, 1.0), max_size=12)


@given(SCORES, CHANCES)
def test_scores_fall_from_hit_to_hit_and_what_was_read_goes_first(
    scores: list[float], chances: list[float]
) -> None:
    before = ranked_of(*scores)
    ranked = with_rerank(before, chances[: len(before)], RECIPE)
    finals = [one.summary.final_score for one in ranked]
    assert finals == sorted(finals, reverse=True)
    read = min(len(chances), len(before))
    assert sorted(names(ranked)[:read]) == sorted(names(before)[:read])
    assert names(ranked)[read:] == names(before)[read:]


@given(SCORES, CHANCES)
def test_a_guessed_recency_loses_nothing_and_keeps_the_best_near_the_top(
    scores: list[float], chances: list[float]
) -> None:
    ranked = with_rerank(ranked_of(*scores), chances[: len(scores)], RECIPE)
    shown = in_order(ranked, "recency", RECIPE, asked=False)
    assert sorted(names(shown)) == sorted(names(ranked))
    best = ranked[0].summary.final_score
    near = sum(one.summary.final_score >= RECIPE.recency_band * best for one in ranked)
    assert names(ranked)[0] in names(shown)[:near]


@pytest.mark.parametrize("text", TEXTS)
def test_who_sorts_by_time_gets_the_newest_of_what_the_question_is_about(text: str) -> None:
    """The newest memories of all would be the same for every question."""
    ranked = ranked_of(10.0, 8.0, 7.0, 0.1, 0.0, text=text)
    assert names(in_order(ranked, "recency", RECIPE, asked=True)) == ["m2", "m1", "m0", "m3", "m4"]


def test_who_sorts_by_score_sees_the_percentages_fall() -> None:
    """Both clients show the estimate of success; an unjudged memory has a half."""
    judged = {"m0": (9, 1.0), "m1": (0, 0.0), "m2": (1, 1.0), "m3": (40, 38.0), "m4": (3, 2.0)}
    ranked = [
        replace(
            one,
            item=replace(
                one.item,
                stats=Stats(uses=judged[name][0], success_count=judged[name][1], score=0.5),
            ),
        )
        for one, name in zip(ranked_of(5.0, 4.0, 3.0, 2.0, 1.0), judged, strict=True)
    ]
    assert names(in_order(ranked, "score", RECIPE, asked=True)) == ["m3", "m2", "m4", "m1", "m0"]
