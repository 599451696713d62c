"""Who leaves a full memory bank."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.domain.lifecycle.capacity import surplus
from rayapp.domain.memory import MemoryItem, Quality, Stats
from rayapp.testing.builders import STORED_AT, an_item


def ids(items: list[MemoryItem]) -> list[str]:
    return [item.memory_id for item in items]


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        ({"quality": Quality(importance=0.1)}, {"quality": Quality(importance=0.2)}),
        ({"stats": Stats(wilson_score=0.1)}, {"stats": Stats(wilson_score=0.2)}),
        ({}, {"stats": Stats(last_outcome_at=STORED_AT)}),
        (
            {"stats": Stats(last_outcome_at=STORED_AT)},
            {"stats": Stats(last_outcome_at=STORED_AT + timedelta(days=1))},
        ),
        ({"quality": Quality(importance=1.0)}, {"always_inject": True}),
        (
            {"quality": Quality(importance=1.0), "superseded_by": "newer", "always_inject": True},
            {"quality": Quality(importance=0.1)},
        ),
    ],
)
def test_the_least_worth_goes_first_and_the_pinned_last(
    goes: dict[str, Any], stays: dict[str, Any]
) -> None:
    items = [an_item(memory_id="stays", **stays), an_item(memory_id="goes", **goes)]
    assert ids(surplus(items, 1)) == ["goes"]
    assert ids(surplus(items, 2)) == ["goes", "stays"]


def test_what_must_stay_is_passed_over() -> None:
    items = [an_item(memory_id=name) for name in "abc"]
    assert "a" not in ids(surplus(items, 3, keep=("a",)))


@pytest.mark.parametrize("count", [0, -3])
def test_nobody_goes_while_there_is_room(count: int) -> None:
    assert surplus([an_item()], count) == []


PILES = st.lists(
    st.builds(
        lambda importance, pinned: an_item(
            quality=Quality(importance=importance), always_inject=pinned
        ),
        st.sampled_from([0.1, 0.5, 0.9]),
        st.booleans(),
    ),
    max_size=8,
)


@given(PILES, st.integers(0, 9))
def test_order_of_arrival_does_not_matter_and_no_pin_goes_before_a_plain_fact(
    items: list[MemoryItem], count: int
) -> None:
    gone = surplus(items, count)
    assert gone == surplus(items[::-1], count)
    assert len(gone) == min(count, len(items))
    plain = [item for item in items if not item.always_inject]
    if any(item.always_inject for item in gone):
        assert set(ids(plain)) <= set(ids(gone))
