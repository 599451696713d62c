"""Rates of rows, from their counters."""

import pytest

from rayapp.graphs.records import Counters
from rayapp.graphs.rules.routing import (
    action_success_rate,
    added,
    counters_of,
    success_rate,
    wilson_of,
)
from rayapp.memory.item import Outcome
from tests.unit.graphs.rules.rows import counted


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.WORKED, Counters(uses=1, worked=1)),
        (Outcome.PARTIAL, Counters(uses=1, partial=1)),
        (Outcome.UNKNOWN, Counters(uses=1, unknown=1)),
        (Outcome.FAILED, Counters(uses=1, failed=1)),
    ],
)
def test_every_outcome_is_one_use(outcome: Outcome, expected: Counters) -> None:
    assert counters_of(outcome) == expected


def test_added_adds_each_counter() -> None:
    one = Counters(uses=10, worked=1, partial=2, unknown=3, failed=4)
    assert added(one, one) == Counters(uses=20, worked=2, partial=4, unknown=6, failed=8)
    assert added(one, Counters()) == one


@pytest.mark.parametrize(
    ("counters", "routing_rate", "action_rate"),
    [
        (counted(), 0.5, 0.5),
        (counted(unknown=4), 0.5, 0.5),
        (counted(worked=3, failed=1), 0.75, 0.75),
        (counted(partial=2), 0.5, 0.5),
        (counted(worked=1, partial=1), 1.0, 0.75),
        (counted(failed=1, partial=1), 0.0, 0.25),
        (counted(worked=1, unknown=9), 1.0, 1.0),
    ],
)
def test_partial_counts_half_in_the_action_graph_only(
    counters: Counters, routing_rate: float, action_rate: float
) -> None:
    assert success_rate(counters) == routing_rate
    assert action_success_rate(counters) == action_rate


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        (counted(), 0.5),
        (counted(worked=45, failed=5), 0.786),
        (counted(worked=9), 0.701),
        (counted(worked=3), 0.438),
        (counted(failed=10), 0.0),
        (counted(partial=6), 0.188),
        (counted(unknown=12), 0.089),
    ],
)
def test_wilson_takes_success_values(counters: Counters, expected: float) -> None:
    assert wilson_of(counters) == pytest.approx(expected, abs=0.001)
