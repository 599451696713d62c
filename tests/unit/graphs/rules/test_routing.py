"""Tier advice: a soft prior from what happened with these concepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.graphs.records import Counters, RoutingRow
from rayapp.graphs.rules.routing import MAX_DEPTH_FACTOR, MIN_USES, depth_factors, tier_advice
from rayapp.memory.tiers import Tier
from tests.unit.graphs.rules.rows import counted, routing

ALL = tuple(Tier)


@pytest.mark.parametrize(
    "rows", [[], [routing("docker", {})], [routing("docker", {Tier.HISTORY: Counters()})]]
)
def test_nothing_learned_advises_nothing(rows: list[RoutingRow]) -> None:
    assert tier_advice(rows) == ()
    assert depth_factors(rows, ALL) == dict.fromkeys(ALL, 1.0)


def test_best_tier_first_by_the_concept_that_is_known_best() -> None:
    rows = [
        routing("docker", {Tier.HISTORY: counted(2), Tier.PATTERNS: counted(4)}),
        routing("רכב", {Tier.HISTORY: counted(7), Tier.BOOKS: counted(failed=6)}),
    ]
    found = tier_advice(rows)
    assert [(one.tier, one.uses, one.advised) for one in found] == [
        (Tier.HISTORY, 7, True),
        (Tier.PATTERNS, 4, True),
        (Tier.BOOKS, 6, False),
    ]
    assert found[0].wilson == pytest.approx(0.646, abs=0.001)


def test_outcomes_are_not_counted_once_per_concept_of_the_question() -> None:
    rows = [routing(concept, {Tier.HISTORY: counted(4)}) for concept in "abcd"]
    (found,) = tier_advice(rows)
    (alone,) = tier_advice(rows[:1])
    assert found == alone
    assert found.uses == 4
    few = [routing(concept, {Tier.HISTORY: counted(MIN_USES - 1)}) for concept in "abcd"]
    assert depth_factors(few, ALL) == dict.fromkeys(ALL, 1.0)


def test_of_two_concepts_used_alike_the_worse_one_speaks() -> None:
    rows = [
        routing("docker", {Tier.HISTORY: counted(4)}),
        routing("רכב", {Tier.HISTORY: counted(failed=4)}),
    ]
    for order in (rows, rows[::-1]):
        assert [one.advised for one in tier_advice(order)] == [False]


def test_few_failures_do_not_make_a_tier_poor() -> None:
    few, enough = counted(failed=MIN_USES - 1), counted(failed=MIN_USES)
    assert tier_advice([routing("docker", {Tier.BOOKS: few})])[0].advised
    assert not tier_advice([routing("docker", {Tier.BOOKS: enough})])[0].advised


@pytest.mark.parametrize(
    ("counters", "advised"),
    [(counted(1, failed=2), False), (counted(5, failed=5), True), (counted(2, failed=1), True)],
)
def test_advised_by_wilson(counters: Counters, advised: bool) -> None:
    assert tier_advice([routing("רכב", {Tier.WORKING: counters})])[0].advised is advised


def test_recommended_tiers_are_searched_deeper_and_others_as_always() -> None:
    rows = [
        routing(
            "docker",
            {
                Tier.PATTERNS: counted(30),
                Tier.HISTORY: counted(3),
                Tier.BOOKS: counted(failed=30),
                Tier.WORKING: counted(MIN_USES - 1),
            },
        )
    ]
    factors = depth_factors(rows, ALL)
    assert MAX_DEPTH_FACTOR >= factors[Tier.PATTERNS] > factors[Tier.HISTORY] > 1.0
    assert {factors[tier] for tier in (Tier.BOOKS, Tier.WORKING, Tier.MEMORY_BANK)} == {1.0}


def test_only_the_searched_tiers_have_a_factor() -> None:
    rows = [routing("docker", {Tier.PATTERNS: counted(30)})]
    assert depth_factors(rows, [Tier.BOOKS]) == {Tier.BOOKS: 1.0}


_COUNTS = st.integers(min_value=0, max_value=50)
_COUNTERS = st.builds(counted, _COUNTS, _COUNTS, _COUNTS, _COUNTS)


@given(st.lists(st.dictionaries(st.sampled_from(ALL), _COUNTERS), max_size=4))
def test_no_tier_is_ever_searched_less_deep(tiers: list[dict[Tier, Counters]]) -> None:
    rows = [routing(f"concept{at}", one) for at, one in enumerate(tiers)]
    factors = depth_factors(rows, ALL)
    assert set(factors) == set(ALL)
    assert all(1.0 <= factor <= MAX_DEPTH_FACTOR for factor in factors.values())
    wilsons = [one.wilson for one in tier_advice(rows)]
    assert wilsons == sorted(wilsons, reverse=True)
