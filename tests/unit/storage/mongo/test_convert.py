"""Items and documents convert without loss, through the wire format."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import bson
import pytest
from bson.codec_options import CodecOptions
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.errors import InvalidInput
from rayapp.memory.item import (
    IndexOp,
    IndexState,
    MemoryItem,
    Outcome,
    Quality,
    Source,
    SourceType,
    Stats,
    Status,
    SyncState,
)
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.convert import (
    from_document,
    to_document,
    version_document,
    version_from_document,
)
from tests.support.builders import STORED_AT, a_version, an_item

UTC_DATES = CodecOptions(tz_aware=True, tzinfo=UTC)
TIMES = st.integers(0, 4_000_000_000_000).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a.$", max_size=3), inner),
    max_leaves=6,
)
FLAT = st.none() | st.text(max_size=5)
UNIT = st.floats(0, 1)
COUNTS = st.integers(0, 9)
SOURCES = st.builds(
    Source,
    type=st.sampled_from(SourceType),
    **{n: FLAT for n in ("conversation_id", "message_id", "tool_name", "tool_run_id", "doc_id")},
    chunk_id=FLAT,
    book=st.none() | st.dictionaries(st.text("a.$", max_size=3), JSON, max_size=3),
    datagov=st.none() | st.dictionaries(st.sampled_from(["category", "x"]), JSON, max_size=2),
)
ITEMS = st.builds(
    replace,
    st.just(an_item()),
    text=st.text(),
    tier=st.sampled_from(Tier),
    status=st.sampled_from(Status),
    tags=st.lists(st.text(max_size=4), max_size=3).map(tuple),
    created_at=TIMES,
    expires_at=st.none() | TIMES,
    valid_from=st.none() | TIMES,
    source=SOURCES,
    quality=st.builds(Quality, importance=UNIT, confidence=UNIT, mentioned_count=COUNTS),
    stats=st.builds(
        Stats,
        uses=COUNTS,
        score=UNIT,
        last_outcome=st.none() | st.sampled_from(Outcome),
        last_outcome_at=st.none() | TIMES,
    ),
    index=st.builds(
        IndexState,
        op=st.sampled_from(IndexOp),
        rev=COUNTS,
        sync_state=st.sampled_from(SyncState),
        next_attempt_at=st.none() | TIMES,
        last_error=FLAT,
    ),
)


@given(ITEMS)
def test_an_item_survives_the_wire(item: MemoryItem) -> None:
    raw = bson.encode(to_document(item))
    assert from_document(bson.decode(raw, UTC_DATES)) == item


@given(ITEMS)
def test_a_version_survives_the_wire(item: MemoryItem) -> None:
    row = a_version(item, reason="r")
    raw = bson.encode(version_document(row))
    assert version_from_document(bson.decode(raw, UTC_DATES)) == row


def test_every_field_of_an_item_is_in_the_document() -> None:
    doc = to_document(an_item())
    assert {f.name for f in fields(MemoryItem)} <= set(doc)
    assert {f.name for f in fields(IndexState)} <= set(doc["index"])
    assert {f.name for f in fields(Stats)} == set(doc["stats"])
    assert {f.name for f in fields(Source)} == set(doc["source"])


def test_what_queries_need_is_denormalised() -> None:
    item = an_item(
        quality=Quality(importance=0.5, confidence=0.5),
        source=Source(datagov={"flags": {"b": True, "a": 1, "off": False}}),
    )
    doc = to_document(item)
    assert doc["quality"]["quality_score"] == 0.25
    assert doc["flags"] == ["a", "b"]
    assert doc["index"]["pending_since"] == item.stored_at
    synced = replace(item, index=IndexState(sync_state=SyncState.SYNCED))
    assert to_document(synced)["index"]["pending_since"] is None


@pytest.mark.parametrize(
    "name", ["created_at", "stored_at", "updated_at", "tier_entered_at", "expires_at", "valid_to"]
)
def test_local_time_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        to_document(an_item(**{name: datetime(2026, 1, 1)}))


def test_another_offset_is_the_same_moment() -> None:
    jerusalem = timezone(timedelta(hours=3))
    item = an_item(created_at=STORED_AT.astimezone(jerusalem))
    back = from_document(bson.decode(bson.encode(to_document(item)), UTC_DATES))
    assert back.created_at == STORED_AT
    assert back.created_at.utcoffset() == timedelta(0)


def test_a_row_from_before_a_fact_had_several_conversations_is_read() -> None:
    item = an_item(source=Source(conversation_id="c-1"))
    doc = to_document(item)
    del doc["source"]["also"]
    assert from_document(doc) == item
