"""Metrics against values worked out by hand, and laws that hold for any ranking."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.search.rules import evaluation


def judged(gold: str, ranked: str, **extra: str) -> evaluation.Judged:
    return evaluation.Judged(
        question_id="q", gold=tuple(gold.split()), ranked=tuple(ranked.split()), **extra
    )


TEN_OTHERS = " ".join(f"x{i}" for i in range(10))
IDEAL_TWO = 1 + 1 / math.log2(3)

CASES = [
    ("a", "a b c", {"R@1": 1, "hit@5": 1, "hit@10": 1, "all@10": 1, "MRR": 1, "nDCG@10": 1}),
    ("c", "a b c", {"R@1": 0, "hit@5": 1, "MRR": 1 / 3, "nDCG@10": 1 / math.log2(4)}),
    ("z", "a b c", {"hit@10": 0, "all@10": 0, "R@10": 0, "MRR": 0, "nDCG@10": 0}),
    ("a", "", {"R@1": 0, "hit@10": 0, "MRR": 0, "nDCG@10": 0}),
    ("a b", "a x", {"all@10": 0, "R@10": 0.5, "MRR": 1, "nDCG@10": 1 / IDEAL_TWO}),
    ("a b", "b a", {"all@10": 1, "R@10": 1, "nDCG@10": 1}),
    ("a b", "x a b", {"MRR": 1 / 2, "nDCG@10": (1 / math.log2(3) + 1 / 2) / IDEAL_TWO}),
    ("a", f"{TEN_OTHERS} a", {"hit@10": 0, "R@10": 0, "MRR": 1 / 11, "nDCG@10": 0}),
    ("a", "x a a", {"nDCG@10": 1 / math.log2(3), "R@10": 1}),
    ("a a", "a", {"all@10": 1, "R@10": 1, "nDCG@10": 1}),
]


@pytest.mark.parametrize(("gold", "ranked", "expected"), CASES)
def test_metrics_match_hand_worked_values(
    gold: str, ranked: str, expected: dict[str, float]
) -> None:
    one = judged(gold, ranked)
    assert {name: evaluation.METRICS[name](one) for name in expected} == pytest.approx(expected)


def test_ranks_are_one_based_and_keep_the_order_of_gold() -> None:
    one = judged("c z a", "a b c c")
    assert one.first_rank == 1
    assert one.gold_ranks == (3, None, 1)


def test_a_question_without_evidence_is_refused() -> None:
    with pytest.raises(ValueError, match="no evidence"):
        judged("", "a b")


names = st.lists(st.sampled_from("abcdefghijklmnop"), max_size=16, unique=True)
golds = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=4, unique=True)


@given(gold=golds, ranked=names)
def test_metrics_stay_in_bounds_and_order(gold: list[str], ranked: list[str]) -> None:
    one = evaluation.Judged(question_id="q", gold=tuple(gold), ranked=tuple(ranked))
    value = {name: metric(one) for name, metric in evaluation.METRICS.items()}
    assert all(0.0 <= v <= 1.0 + 1e-12 for v in value.values())
    assert value["R@1"] <= value["hit@5"] <= value["hit@10"]
    assert value["all@10"] <= value["R@10"] <= value["hit@10"]
    assert value["R@1"] <= value["MRR"]


@given(gold=golds, ranked=names)
def test_moving_evidence_to_the_front_never_hurts(gold: list[str], ranked: list[str]) -> None:
    plain = evaluation.Judged(question_id="q", gold=tuple(gold), ranked=tuple(ranked))
    first = [name for name in ranked if name in gold] + [n for n in ranked if n not in gold]
    better = evaluation.Judged(question_id="q", gold=tuple(gold), ranked=tuple(first))
    for name, metric in evaluation.METRICS.items():
        assert metric(better) >= metric(plain) - 1e-12, name


def test_interval_is_reproducible_and_holds_the_mean() -> None:
    values = [1.0] * 30 + [0.0] * 70
    first, second = evaluation.estimate(values), evaluation.estimate(values)
    assert first == second
    assert first.mean == pytest.approx(0.3)
    assert first.low < 0.3 < first.high
    # The normal approximation of a share of 0.3 over 100 questions is ±0.09.
    assert first.high - first.low == pytest.approx(0.18, abs=0.03)
    assert first.n == 100


def test_interval_shrinks_with_more_questions() -> None:
    few, many = evaluation.estimate([1.0, 0.0] * 20), evaluation.estimate([1.0, 0.0] * 500)
    assert many.high - many.low < (few.high - few.low) / 3


def test_identical_values_have_a_point_interval() -> None:
    assert evaluation.estimate([0.5] * 7) == evaluation.estimate([0.5] * 7, seed=1)


def test_nothing_to_estimate_is_an_error() -> None:
    with pytest.raises(ValueError, match="no judged question"):
        evaluation.estimate([])


def test_groups_are_summarised_apart() -> None:
    both = [judged("a", "a", lang="he"), judged("a", "x a", lang="en"), judged("a", "a", lang="en")]
    by_lang = evaluation.summarise_by(both, lambda one: one.lang)
    assert list(by_lang) == ["en", "he"]
    assert by_lang["he"]["R@1"].mean == 1.0
    assert by_lang["en"]["R@1"].mean == 0.5
    assert evaluation.summarise(both)["R@1"].n == 3


def test_a_session_ranks_where_its_best_turn_ranks() -> None:
    turns = judged("D2:1 D2:9 D3:1", "D1:4 D1:2 D3:7 D2:9", category="2")
    sessions = evaluation.rank_groups(turns, lambda turn: turn.split(":")[0])
    assert sessions.ranked == ("D1", "D3", "D2")
    assert sessions.gold == ("D2", "D3")
    assert sessions.gold_ranks == (3, 2)
    assert sessions.category == "2"


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0, 2.0], 0.5, 1.0), ([5.0], 0.95, 5.0), ([1, 2, 3, 4], 1, 4)],
)
def test_percentile_is_an_observed_value(
    values: list[float], share: float, expected: float
) -> None:
    assert evaluation.percentile(values, share) == expected


def test_percentile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs values"):
        evaluation.percentile([], 0.5)
