"""What of a search is worth showing: near the best hit, and only when that can be an answer."""

from dataclasses import replace
from typing import Any

import pytest

from rayapp.search.requests import Floor, Hit, ScoreSummary
from rayapp.search.rules.relevance_floor import above_floor, strength_of
from tests.support.builders import an_item


def hit(fused: float, **fields: Any) -> Hit:
    summary = ScoreSummary(final_score=fused, fused=fused, **fields)
    return Hit(position=1, item=an_item(text=f"{fused}"), summary=summary)


def kept(*hits: Hit, share: float = 0.6, relevance: float = 0.5) -> list[str]:
    floor = Floor(share=share)
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
    strict, open_ = Floor(share=0.6, relevance=0.4), Floor(share=0.6, relevance=0.0)
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
