"""What of a search is worth showing: near the best hit, and only when that can be an answer."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.search.requests import Floor, Hit, ScoreSummary
from rayapp.search.rules.relevance_floor import above_floor, strength_of
from tests.support.builders import an_item
from tests.support.examples import examples


def hit(fused: float, **fields: Any) -> Hit:
    summary = ScoreSummary(final_score=fused, fused=fused, **fields)
    return Hit(position=1, item=an_item(text=f"{fused}"), summary=summary)


def kept(
    *hits: Hit, share: float = 0.6, rise: float = 0.0, expected: int = 10, relevance: float = 0.5
) -> list[str]:
    floor = Floor(share=share, rise=rise, expected=expected)
    found = above_floor(hits, floor, relevance=relevance, least=0.1)
    return [one.item.text for one in found]


@pytest.mark.parametrize(
    ("share", "wanted"), [(0.0, ["0.9", "0.6", "0.5"]), (0.6, ["0.9", "0.6"]), (1.0, ["0.9"])]
)
def test_what_comes_near_to_the_best(share: float, wanted: list[str]) -> None:
    assert kept(hit(0.9), hit(0.6), hit(0.5), share=share) == wanted


def test_the_order_is_kept_whatever_it_is() -> None:
    assert kept(hit(0.5), hit(0.9), hit(0.7)) == ["0.9", "0.7"]


def test_nothing_when_the_best_is_no_answer() -> None:
    assert kept(hit(0.9), relevance=0.05) == []


def test_the_floor_of_the_caller_goes_before_the_calibrated_one() -> None:
    hits, sure = (hit(0.9),), 0.3
    strict, open_ = (
        Floor(share=0.6, rise=0.0, expected=10, relevance=least) for least in (0.4, 0.0)
    )
    assert above_floor(hits, strict, relevance=sure, least=0.1) == ()
    assert above_floor(hits, open_, relevance=0.0, least=0.1) == hits
    assert above_floor((), open_, relevance=1.0, least=0.0) == ()


def test_what_an_item_is_worth_otherwise_helps_it_and_pushes_nothing_out() -> None:
    boosted = replace(hit(0.5), summary=ScoreSummary(final_score=0.75, fused=0.5))
    assert kept(boosted, hit(0.9)) == ["0.5", "0.9"]
    assert kept(hit(0.5), hit(0.9)) == ["0.9"]
    assert kept(boosted, hit(0.35)) == ["0.5", "0.35"]
    assert strength_of(boosted.summary) == 0.5


def test_the_reranker_counts_as_much_and_harm_counts_in_full() -> None:
    assert strength_of(hit(0.4, ce_score=0.8).summary) == pytest.approx(0.6)
    assert strength_of(hit(0.4, ce_score=0.8, evidence=0.1).summary) == pytest.approx(0.06)


def test_a_later_hit_must_come_nearer_to_the_best_one() -> None:
    hits = (hit(0.95), hit(0.7), hit(0.69), hit(0.65))
    assert kept(*hits, share=0.6) == ["0.95", "0.7", "0.69", "0.65"]
    assert kept(*hits, share=0.6, rise=0.25, expected=5) == ["0.95", "0.7"]
    assert kept(*hits, share=0.6, rise=0.25, expected=10) == ["0.95", "0.7", "0.69"]


def test_more_than_the_question_asks_for_where_all_are_as_good() -> None:
    assert len(kept(*[hit(0.9)] * 7, rise=0.3, expected=3)) == 7


def test_without_a_floor_as_many_as_the_question_asks_for() -> None:
    assert kept(hit(0.9), hit(0.2), hit(0.8), share=0.0, rise=0.3, expected=2) == ["0.9", "0.2"]


SHARES = st.floats(0.01, 1)
STRENGTHS = st.lists(st.floats(0, 1), min_size=1, max_size=25)


@given(STRENGTHS, SHARES, st.floats(0, 1), st.integers(1, 40))
@settings(max_examples=examples(300))
def test_the_strongest_are_shown_and_a_stricter_floor_shows_no_more(
    strengths: list[float], share: float, rise: float, expected: int
) -> None:
    hits = [hit(strength) for strength in strengths]

    def shown(floor: Floor) -> list[float]:
        return [one.summary.fused for one in above_floor(hits, floor, relevance=1.0, least=0.0)]

    floor = Floor(share=share, rise=rise, expected=expected)
    found = shown(floor)
    assert found == [strength for strength in strengths if strength >= min(found)]
    assert max(strengths) in found
    for stricter in (
        replace(floor, share=min(1.0, share + 0.1)),
        replace(floor, rise=rise + 0.1),
        replace(floor, expected=max(1, expected - 1)),
    ):
        assert len(shown(stricter)) <= len(found)
