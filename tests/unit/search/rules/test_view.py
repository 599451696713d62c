"""The columns of one user beside the same computed memory by memory."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.vectors import SparseVector
from rayapp.memory.item import MemoryItem
from rayapp.memory.rules.filtering import kept
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import Tier
from rayapp.search.rules.view import MOST_PARTS, TENTH, Question, Row, UserView
from rayapp.text.analyser import score
from tests.support.builders import STORED_AT, an_item

DIMS = 4
TIERS = (Tier.WORKING, Tier.HISTORY)
WORDS = st.dictionaries(st.integers(0, 6), st.floats(0.1, 1.9), max_size=4)
VECTORS = st.lists(st.integers(-3, 3), min_size=DIMS, max_size=DIMS)


def sparse(values: dict[int, float]) -> SparseVector:
    slots = sorted(values)
    return SparseVector(slots, [values[slot] for slot in slots])


def a_row(number: int, passages: list[tuple[list[int], dict[int, float]]], **fields: object) -> Row:
    item = an_item(memory_id=f"m-{number}", text=f"text {number}", **fields)
    dense = np.array([vector for vector, _ in passages], np.float32)
    return Row(item, dense, [sparse(words) for _, words in passages])


ROWS = st.lists(
    st.tuples(
        st.lists(st.tuples(VECTORS, WORDS), min_size=1, max_size=3),
        st.sampled_from(TIERS),
        st.booleans(),
    ),
    max_size=12,
)


@given(ROWS, VECTORS, WORDS, st.integers(1, 5), st.integers(1, 12))
def test_a_scan_finds_what_looking_at_each_memory_finds(
    drawn: list[tuple[list[tuple[list[int], dict[int, float]]], Tier, bool]],
    vector: list[int],
    words: dict[int, float],
    depth: int,
    batch: int,
) -> None:
    """However the memories came, and whichever of them are embedded."""
    rows = [a_row(at, passages, tier=tier) for at, (passages, tier, _) in enumerate(drawn)]
    rows = [
        row if embedded else Row(row.item, None, row.sparse)
        for row, (_, _, embedded) in zip(rows, drawn, strict=True)
    ]
    view = UserView(rows[:batch], DIMS)
    for row in rows[batch:]:
        view.put([row])
    query, asked = sparse(words), np.array(vector, np.float32)
    where = ItemFilter(tiers=TIERS)
    found = list(view.candidates(Question(query, asked), where, dict.fromkeys(TIERS, depth)))
    idf = user_idf(rows, query)

    def best(row: Row) -> float:
        return max(score(query, one, idf) for one in row.sparse)

    for tier in TIERS:
        there = [row for row in rows if row.item.tier is tier and row.dense is not None]
        near = sorted((-float(np.max(row.dense @ asked)), row.item.point_id) for row in there)
        said = sorted((-best(row), row.item.point_id) for row in there if best(row) > 0)
        mine = [one for one in found if one.item.tier is tier]
        by_meaning = [one for one in mine if one.dense_rank is not None]
        by_meaning.sort(key=lambda one: one.dense_rank)
        assert [(one.dense, one.item.point_id) for one in by_meaning] == [
            (max(0.0, -value), name) for value, name in near[:depth]
        ]
        by_words = sorted(one.sparse for one in mine if one.sparse is not None)
        assert by_words == pytest.approx(sorted(-value for value, _ in said[:depth]))
    waiting = {row.item.point_id: best(row) for row in rows if row.dense is None}
    assert {
        one.item.point_id: one.pending for one in found if one.pending is not None
    } == pytest.approx({name: value for name, value in waiting.items() if value > 0})


def user_idf(rows: list[Row], query: SparseVector) -> dict[int, float]:
    holders = {
        slot: sum(any(slot in one.indices for one in row.sparse) for row in rows)
        for slot in query.indices
    }
    return {n: math.log1p((len(rows) - k + 0.5) / (k + 0.5)) for n, k in holders.items()}


FILTERS = (
    ItemFilter(),
    ItemFilter(tiers=(Tier.HISTORY,)),
    ItemFilter(now=STORED_AT + timedelta(days=2)),
    ItemFilter(valid_at=STORED_AT),
    ItemFilter(tags_any=("home",)),
    ItemFilter(include_superseded=True, tags_all=("home", "work")),
    ItemFilter(created_from=STORED_AT + timedelta(hours=1)),
)


def some_items() -> list[MemoryItem]:
    day = timedelta(days=1)
    changes: list[dict[str, object]] = [
        {},
        {"tier": Tier.HISTORY, "tags": ("home",)},
        {"expires_at": STORED_AT + day},
        {"valid_from": STORED_AT + day},
        {"valid_to": STORED_AT},
        {"superseded_by": "m-0"},
        {"tags": ("home", "work"), "created_at": STORED_AT + day},
    ]
    return [
        an_item(memory_id=f"m-{at}", text=f"text {at}", **one) for at, one in enumerate(changes)
    ]


@pytest.mark.parametrize("where", FILTERS)
def test_the_columns_keep_what_the_filter_keeps(where: ItemFilter) -> None:
    items = some_items()
    rows = [Row(item, np.ones((1, DIMS), np.float32), [sparse({1: 1.0})]) for item in items]
    view = UserView(rows, DIMS)
    found = view.candidates(Question(sparse({1: 1.0})), where, dict.fromkeys(Tier, 50))
    shown = {item.point_id for item in found.items}
    assert shown == {item.point_id for item in kept(items, where)}


def test_what_is_put_again_takes_the_place_of_what_was() -> None:
    view = UserView([a_row(0, [([1, 0, 0, 0], {1: 1.0})])], DIMS)
    for number in range(3 * MOST_PARTS):
        view.put([a_row(number % 4, [([0, 1, 0, 0], {2: 1.0 + number})])])
    assert len(view) == 4
    asked = np.array([0, 1, 0, 0], np.float32)
    found = view.candidates(Question(sparse({1: 1.0}), asked), ItemFilter(), {Tier.WORKING: 10})
    assert found.dense.tolist() == [1.0] * 4
    assert np.isnan(found.sparse).all()


def test_an_empty_view_finds_nothing() -> None:
    view = UserView([], DIMS)
    asked = np.ones(DIMS, np.float32)
    assert len(view.candidates(Question(sparse({}), asked), ItemFilter(), {Tier.WORKING: 10})) == 0
    view.put([a_row(0, [([1, 0, 0, 0], {})])])
    view.drop([an_item(memory_id="m-0").point_id])
    assert (len(view), view.items([an_item(memory_id="m-0").point_id])) == (0, [])


def test_what_is_wanted_is_a_candidate_though_nothing_found_it() -> None:
    view = UserView([a_row(0, [([1, 0, 0, 0], {1: 1.0})])], DIMS)
    view.put([a_row(3, [([0, 1, 0, 0], {2: 1.0})])])
    names = [an_item(memory_id=f"m-{n}").point_id for n in (0, 3, 9)]
    found = view.candidates(
        Question(sparse({1: 1.0})), ItemFilter(), {Tier.WORKING: 1}, wanted=names
    )
    assert {one.item.memory_id: one.sparse_rank for one in found} == {"m-0": 1, "m-3": None}


def test_no_tier_finds_nothing() -> None:
    view = UserView([a_row(0, [([1, 0, 0, 0], {1: 1.0})])], DIMS)
    asked = np.array([1, 0, 0, 0], np.float32)
    assert not len(view.candidates(Question(sparse({1: 1.0}), asked), ItemFilter(), {}))


READ_DIMS = 8


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.lists(
                st.lists(st.floats(-1, 1, width=32), min_size=READ_DIMS, max_size=READ_DIMS),
                min_size=1,
                max_size=3,
            ),
        ),
        min_size=1,
        max_size=20,
    ),
    st.lists(st.floats(-1, 1, width=32), min_size=READ_DIMS, max_size=READ_DIMS),
    st.integers(1, 6),
    st.integers(0, 20),
)
def test_the_encoder_finds_what_looking_at_each_memory_finds(
    drawn: list[list[list[float]] | None], vector: list[float], depth: int, batch: int
) -> None:
    """However they came; what it did not read is a candidate of the others all the same."""
    rows = [encoded(at, read) for at, read in enumerate(drawn)]
    view = UserView(rows[:batch], DIMS, READ_DIMS)
    for row in rows[batch:]:
        view.put([row])
    asked = np.array(vector, np.float32)
    question = Question(sparse({1: 1.0}), np.ones(DIMS, np.float32), asked)
    found = view.candidates(question, ItemFilter(), {Tier.WORKING: depth, Tier.HISTORY: 99})
    near = {
        row.item.memory_id: float(np.max(row.encoder @ asked))
        for row in rows
        if row.encoder is not None
    }
    told = {one.item.memory_id: one for one in found}
    listed = {name: one for name, one in told.items() if one.encoder is not None}
    assert len(listed) == min(depth, len(near))
    rough = READ_DIMS / 127
    for name, one in listed.items():
        assert one.encoder == pytest.approx(max(0.0, near[name]), abs=rough)
    last = min((near[name] for name in listed), default=0.0)
    assert all(value <= last + 2 * rough for name, value in near.items() if name not in listed)
    assert {name for name, one in told.items() if one.encoded} == near.keys() & told.keys()
    assert found.unencoded == (len(rows) - len(near), len(rows))
    assert found.reach is not None
    best = sorted(near.values(), reverse=True)[: min(depth, TENTH)]
    if best:
        assert found.reach.encoder_nearest == pytest.approx(best[0], abs=rough)
        assert found.reach.encoder_gap == pytest.approx(best[0] - best[-1], abs=2 * rough)
    else:
        assert found.reach.encoder_nearest is None


def encoded(number: int, read: list[list[float]] | None) -> Row:
    row = a_row(number, [([1, 0, 0, 0], {1: 1.0})] * len(read or [[]]))
    return row if read is None else replace(row, encoder=np.array(read, np.float32))


def test_without_the_encoder_nothing_is_said_of_it() -> None:
    view = UserView([encoded(0, [[1.0] * READ_DIMS])], DIMS)
    question = Question(sparse({1: 1.0}), np.ones(DIMS, np.float32))
    found = view.candidates(question, ItemFilter(), {Tier.WORKING: 5})
    assert found.encoded.all()
    assert np.isnan(found.encoder).all()
    assert found.unencoded == (0, 0)
    held = view.held(found.items[0].point_id)
    assert held is not None
    assert (held.embedded, held.encoded) == (True, False)
