"""Who leaves a full memory bank."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.memory.item import MemoryItem, Quality, Stats
from rayapp.memory.rules.lifecycle import is_wish, left_for, room_made, surplus, without_room
from tests.support.builders import STORED_AT, an_item


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
        (
            {"quality": Quality(importance=1.0), "superseded_by": "newer", "always_inject": True},
            {"quality": Quality(importance=0.1)},
        ),
    ],
)
def test_the_least_worth_goes_first(goes: dict[str, Any], stays: dict[str, Any]) -> None:
    items = [an_item(memory_id="stays", **stays), an_item(memory_id="goes", **goes)]
    assert ids(surplus(items, 1)) == ["goes"]
    assert ids(surplus(items, 2)) == ["goes", "stays"]


def test_what_must_stay_is_passed_over() -> None:
    items = [an_item(memory_id=name) for name in "abc"]
    assert "a" not in ids(surplus(items, 3, keep=("a",)))


@pytest.mark.parametrize("count", [0, -3])
def test_nobody_goes_while_there_is_room(count: int) -> None:
    assert surplus([an_item()], count) == []


FACTS = st.builds(
    lambda importance, wish, replaced, wilson: an_item(
        quality=Quality(importance=importance),
        stats=Stats(wilson_score=wilson),
        superseded_by="newer" if replaced else None,
        **wish,
    ),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.sampled_from([{}, {}, {"always_inject": True}, {"tags": ("goal",)}, {"tags": ("value",)}]),
    st.booleans(),
    st.sampled_from([0.2, 0.5, 0.7]),
)
NEW = st.builds(
    lambda importance, wish: an_item(quality=Quality(importance=importance), **wish),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.sampled_from([{}, {}, {"always_inject": True}, {"tags": ("f", "goal")}]),
)


def may_leave(item: MemoryItem) -> bool:
    return item.superseded_by is not None or not is_wish(item)


def worth(item: MemoryItem) -> tuple[bool, bool, float, float]:
    quality = item.quality.quality_score
    return item.superseded_by is None, is_wish(item), quality, item.stats.wilson_score


@given(st.lists(FACTS, max_size=8), st.integers(0, 9))
def test_order_of_arrival_does_not_matter_and_no_wish_goes(
    items: list[MemoryItem], count: int
) -> None:
    gone = surplus(items, count)
    assert gone == surplus(items[::-1], count)
    assert len(gone) == min(count, sum(map(may_leave, items)))
    assert all(map(may_leave, gone))


@given(st.lists(FACTS, max_size=8), st.lists(NEW, max_size=5), st.integers(0, 3))
def test_who_is_let_in_fits_and_displaces_nothing_better(
    present: list[MemoryItem], new: list[MemoryItem], free: int
) -> None:
    over = len(new) - free
    refused = without_room(new, present, over)
    let_in = [item for item in new if item not in refused]
    leaving = surplus([*present, *let_in], len(let_in) - free, newest=ids(let_in))
    assert len(let_in) - len(leaving) <= free
    assert all(may_leave(item) and item in present for item in leaving)
    for out in refused:
        assert all(worth(out) <= worth(kept) for kept in let_in)
        stayed = [item for item in present if may_leave(item) and item not in leaving]
        assert all(worth(out) < worth(kept) for kept in stayed)
    for gone in leaving:
        assert all(worth(gone) <= worth(kept) for kept in let_in)


@given(st.lists(FACTS, max_size=8), st.lists(NEW, max_size=5), st.integers(-2, 6))
def test_a_refusal_needs_a_full_bank_and_no_order(
    present: list[MemoryItem], new: list[MemoryItem], over: int
) -> None:
    refused = without_room(new, present, over)
    assert len(refused) <= max(0, over)
    assert refused == without_room(new, present[::-1], over)
    wishes = [item for item in refused if is_wish(item)]
    if wishes:
        assert [item for item in new if not is_wish(item)] == [
            item for item in refused if not is_wish(item)
        ]
        assert sum(map(may_leave, present)) + len(refused) == min(
            over, sum(map(may_leave, present)) + len(new)
        )


def test_of_equals_the_new_one_stays() -> None:
    assert without_room([an_item()], [an_item(), an_item()], 1) == []
    first, second = an_item(), an_item()
    assert without_room([first, second], [an_item()], 2) == [second]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a",), "1 less useful fact was archived to make room"),
        (("a", "b"), "2 less useful facts were archived to make room"),
    ],
)
def test_who_left_is_named(names: tuple[str, ...], said: str) -> None:
    assert room_made(names) == said


@pytest.mark.parametrize(
    ("gone", "shares"),
    [
        ("", ["", "", ""]),
        ("x", ["", "", "x"]),
        ("xy", ["", "x", "y"]),
        ("xyz", ["x", "y", "z"]),
        ("vwxyz", ["vwx", "y", "z"]),
    ],
)
def test_each_fact_of_a_batch_says_who_left_for_it(gone: str, shares: list[str]) -> None:
    kept = [an_item(memory_id=name) for name in "abc"]
    found = left_for(kept, tuple(gone))
    assert found == {name: tuple(one) for name, one in zip("abc", shares, strict=True)}


def test_what_a_fact_replaces_left_for_it() -> None:
    kept = [an_item(memory_id="a", supersedes="y"), an_item(memory_id="b")]
    assert left_for(kept, ("x", "y")) == {"a": ("y",), "b": ("x",)}
    assert left_for(kept[:1], ("x", "y")) == {"a": ("y", "x")}
    assert left_for([], ()) == {}
