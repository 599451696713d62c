"""Each kind of drift is found as exactly that kind, and nothing else is drift."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.vectors import IndexSchema
from rayapp.index.consistency.rules import (
    ASIDE,
    RULES,
    Drift,
    drift_of,
    is_ahead,
    is_unchanged,
    lasting_drift_of,
    rule_of,
)
from rayapp.index.records import StoredPoint
from rayapp.index.rules.points import payload_of, vector_hash_of
from rayapp.memory.item import (
    IndexOp,
    IndexState,
    MemoryItem,
    Quality,
    Source,
    SourceType,
    Stats,
    Status,
    SyncState,
    point_id_of,
)
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item

SCHEMA = IndexSchema(model="model", dims=8, analyser="a1")
WORDS = st.sampled_from(["dana", "דנה", "project x", "תקציב", "a.b", "שלום עולם"])
IDS = st.text(alphabet="abc019._:@-", min_size=1, max_size=12)
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1)).map(
    lambda at: at.replace(tzinfo=UTC, microsecond=at.microsecond // 1000 * 1000)
)


@st.composite
def items(draw: st.DrawFn) -> MemoryItem:
    """An active item that the index is said to hold."""
    text = draw(WORDS)
    item = an_item(
        user_id=draw(IDS),
        memory_id=draw(IDS),
        text=text,
        tier=draw(st.sampled_from(Tier)),
        tags=tuple(draw(st.lists(WORDS, max_size=3, unique=True))),
        entities=tuple(draw(st.lists(WORDS, max_size=2, unique=True))),
        lang=draw(st.sampled_from(["he", "en", "mixed", "other"])),
        source=Source(
            type=draw(st.sampled_from(SourceType)),
            conversation_id=draw(st.none() | WORDS),
            tool_name=draw(st.none() | WORDS),
            doc_id=draw(st.none() | WORDS),
        ),
        subject_id=draw(st.none() | IDS),
        created_at=draw(TIMES),
        expires_at=draw(st.none() | TIMES),
        superseded_by=draw(st.none() | IDS),
        stats=Stats(uses=draw(st.integers(0, 9)), score=draw(st.integers(0, 10_000)) / 10_000),
        quality=Quality(importance=draw(st.integers(0, 10)) / 10),
        always_inject=draw(st.booleans()),
    )
    hashed = vector_hash_of(item.content_hash, SCHEMA, item.context_prefix)
    op = draw(st.sampled_from([IndexOp.VECTOR, IndexOp.PAYLOAD]))
    state = IndexState(op=op, rev=draw(st.integers(1, 9)), sync_state=SyncState.SYNCED)
    return replace(item, index=replace(state, vector_hash=hashed))


def point_of(item: MemoryItem, **changes: Any) -> StoredPoint:
    """What an engine gives back of this item: without the keys that have no value."""
    payload = payload_of(item) | {
        "analyser": SCHEMA.analyser,
        "vector_hash": vector_hash_of(item.content_hash, SCHEMA, item.context_prefix),
    }
    kept = {name: value for name, value in (payload | changes).items() if value is not None}
    return StoredPoint(point_id=item.point_id, payload=kept)


def found(item: MemoryItem | None, point: StoredPoint | None) -> Drift | None:
    issue = drift_of(item, point, SCHEMA)
    return None if issue is None else issue.kind


@given(items())
def test_a_pair_that_agrees_is_no_drift(item: MemoryItem) -> None:
    assert found(item, point_of(item)) is None
    assert lasting_drift_of(item, point_of(item), SCHEMA) is None


@given(items())
def test_an_engine_may_keep_nulls_drop_empty_lists_and_round_the_last_bit(item: MemoryItem) -> None:
    payload = payload_of(item) | point_of(item).payload
    nulls = replace(point_of(item), payload=payload)
    assert found(item, nulls) is None
    without = {name: value for name, value in payload.items() if value != []}
    assert found(item, replace(nulls, payload=without)) is None
    moved = payload | {"created_at": payload["created_at"] + 3e-7}
    assert found(item, replace(nulls, payload=moved)) is None


@given(items())
def test_an_active_item_without_a_point_is_missing(item: MemoryItem) -> None:
    assert found(item, None) is Drift.MISSING


@given(items())
def test_a_point_without_a_row_is_an_orphan(item: MemoryItem) -> None:
    issue = drift_of(None, point_of(item), SCHEMA)
    assert issue is not None
    assert (issue.kind, issue.user_id) == (Drift.ORPHAN, item.user_id)
    assert (issue.memory_id, issue.point_id) == (item.memory_id, item.point_id)


@pytest.mark.parametrize("payload", [{}, {"user_id": 3, "memory_id": "m"}, {"user_id": "dana"}])
def test_a_point_of_nobody_is_an_orphan(payload: dict[str, Any]) -> None:
    point = StoredPoint(point_id=point_id_of("dana", "m"), payload=payload)
    assert found(None, point) is Drift.ORPHAN


@given(items(), IDS)
def test_a_point_whose_owner_has_another_point_is_a_duplicate(item: MemoryItem, other: str) -> None:
    elsewhere = point_id_of(item.user_id, f"{item.memory_id}+{other}")
    assert found(None, replace(point_of(item), point_id=elsewhere)) is Drift.DUPLICATE


@given(items(), st.sampled_from([Status.ARCHIVED, Status.DELETED]))
def test_a_point_of_a_row_that_is_not_active(item: MemoryItem, status: Status) -> None:
    gone = replace(item, status=status)
    assert found(gone, point_of(item)) is Drift.NOT_ACTIVE
    assert found(gone, None) is None


@given(items(), st.sampled_from(["user_id", "memory_id"]))
def test_a_point_that_names_another_owner_than_its_row(item: MemoryItem, name: str) -> None:
    assert found(item, point_of(item, **{name: "somebody-else"})) is Drift.NOT_ACTIVE
    assert found(item, point_of(item, **{name: None})) is Drift.NOT_ACTIVE


@given(items(), st.sampled_from(["hash", "analyser", "row"]))
def test_vectors_of_another_text_or_model(item: MemoryItem, where: str) -> None:
    if where == "row":
        index = replace(item.index, vector_hash="of another text")
        assert found(replace(item, index=index), point_of(item)) is Drift.VECTOR
    else:
        key = {"hash": "vector_hash", "analyser": "analyser"}[where]
        assert found(item, point_of(item, **{key: "other"})) is Drift.VECTOR
        assert found(item, point_of(item, **{key: None})) is Drift.VECTOR


@given(items(), st.sampled_from(["model", "dims", "analyser"]))
def test_a_row_of_before_a_reindex_is_no_drift(item: MemoryItem, name: str) -> None:
    """The points were brought over, and their rows still tell of the old collection."""
    written = {"model": SCHEMA.model, "dims": SCHEMA.dims, "analyser": SCHEMA.analyser}
    changes: dict[str, Any] = written | {"vector_hash": "of the old model"}
    now = replace(item, index=replace(item.index, **changes))
    assert found(now, point_of(item)) is Drift.VECTOR
    changes[name] = 4 if name == "dims" else "old"
    before = replace(item, index=replace(item.index, **changes))
    assert found(before, point_of(item)) is None


def test_a_row_that_knows_no_hash_is_taken_as_current() -> None:
    item = an_item(index=IndexState(sync_state=SyncState.SYNCED))
    assert found(item, point_of(item)) is None


@given(items(), st.data())
def test_every_key_that_filters_is_compared(item: MemoryItem, data: st.DataObject) -> None:
    wanted = payload_of(item)
    name = data.draw(st.sampled_from(sorted(wanted.keys() - ASIDE)))
    issue = drift_of(item, point_of(item, **{name: _other(wanted[name])}), SCHEMA)
    assert issue is not None
    assert (issue.kind, issue.details) == (Drift.PAYLOAD, f"differs in {name}")


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 0.001
    if isinstance(value, list):
        return [*value, "עוד"]
    return "another"


def test_true_is_not_one() -> None:
    item = an_item(index=IndexState(sync_state=SyncState.SYNCED), always_inject=True)
    assert found(item, point_of(item, always_inject=1)) is Drift.PAYLOAD


@given(items())
def test_an_older_rev_alone_is_no_drift(item: MemoryItem) -> None:
    assert found(item, point_of(item, rev=item.index.rev - 1)) is None


BROKEN: tuple[Callable[[StoredPoint], StoredPoint | None], ...] = (
    lambda point: None,
    lambda point: replace(point, payload={}),
    lambda point: replace(point, payload=point.payload | {"user_id": "other"}),
    lambda point: replace(point, payload=point.payload | {"vector_hash": "other"}),
    lambda point: replace(point, payload=point.payload | {"tier": "other"}),
)


@given(
    items(),
    st.sampled_from(BROKEN),
    st.sampled_from([SyncState.PENDING, SyncState.FAILED]),
    st.sampled_from(Status),
)
def test_what_waits_or_gave_up_is_never_drift(
    item: MemoryItem,
    broken: Callable[[StoredPoint], StoredPoint | None],
    sync: SyncState,
    status: Status,
) -> None:
    waiting = replace(item, status=status, index=replace(item.index, sync_state=sync))
    assert found(waiting, broken(point_of(item))) is None
    ahead = point_of(item, rev=item.index.rev + 3)
    assert lasting_drift_of(waiting, broken(ahead), SCHEMA) is None


@given(items(), st.integers(1, 9))
def test_a_newer_point_is_in_flight_until_its_row_has_stayed(item: MemoryItem, ahead: int) -> None:
    point = point_of(item, rev=item.index.rev + ahead, tier="other")
    assert is_ahead(item, point)
    assert found(item, point) is None
    issue = lasting_drift_of(item, point, SCHEMA)
    assert issue is not None
    # A write of the row would be refused for ever: the point has to go first.
    assert issue.kind is Drift.NOT_ACTIVE
    assert rule_of(issue.kind).delete


def test_the_repairs() -> None:
    table = {rule.kind: (rule.delete, rule.write) for rule in RULES}
    assert table == {
        Drift.MISSING: (False, IndexOp.VECTOR),
        Drift.DUPLICATE: (True, None),
        Drift.ORPHAN: (True, None),
        Drift.NOT_ACTIVE: (True, IndexOp.VECTOR),
        Drift.VECTOR: (False, IndexOp.VECTOR),
        Drift.PAYLOAD: (False, IndexOp.PAYLOAD),
    }
    assert set(table) == set(Drift)


@given(items())
def test_a_row_is_unchanged_only_when_nothing_asked_for_a_write(item: MemoryItem) -> None:
    assert is_unchanged(item, item)
    assert is_unchanged(None, None)
    assert not is_unchanged(item, None)
    assert not is_unchanged(None, item)
    index = item.index
    assert not is_unchanged(item, replace(item, index=replace(index, rev=index.rev + 1)))
    pending = replace(index, sync_state=SyncState.PENDING)
    assert not is_unchanged(item, replace(item, index=pending))
    assert not is_unchanged(item, replace(item, status=Status.ARCHIVED))
    again = replace(item, stored_at=item.stored_at + timedelta(seconds=1))
    assert not is_unchanged(item, again)
