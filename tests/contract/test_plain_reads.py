"""Rows that a search reads without zones are the rows that everybody else reads."""

from datetime import UTC, datetime, timedelta

import pytest

from rayapp.memory.item import IndexState, MemoryItem, Outcome, Source, SourceType, Stats
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.support.builders import an_item

pytestmark = pytest.mark.engine
AT = datetime(2026, 5, 1, 12, 30, 15, 123_000, tzinfo=UTC)
DANA = ReadScope("dana")


@pytest.fixture
def store(database: MongoDatabase) -> MongoMemoryStore:
    return MongoMemoryStore(database)


def with_every_time() -> MemoryItem:
    return an_item(
        text="כל זמן every time",
        stored_at=AT,
        created_at=AT - timedelta(days=1),
        updated_at=AT + timedelta(seconds=1),
        archived_at=AT + timedelta(seconds=2),
        expires_at=AT + timedelta(days=9_000),
        tier_entered_at=AT + timedelta(seconds=3),
        valid_from=AT - timedelta(days=2),
        valid_to=AT + timedelta(days=9_000),
        stats=Stats(uses=1, last_outcome=Outcome.WORKED, last_outcome_at=AT),
        index=IndexState(next_attempt_at=AT, indexed_at=AT + timedelta(seconds=4)),
        source=Source(
            type=SourceType.USER,
            datagov={"title": "נתונים", "at": AT, "of": [{"changed": AT}, "text", None]},
        ),
    )


async def test_every_time_has_its_zone(store: MongoMemoryStore) -> None:
    item = with_every_time()
    await store.insert(item)
    known = await store.get(DANA, item.memory_id)
    (read,) = await store.by_points(DANA, [item.point_id])
    (waiting,) = await store.pending(DANA, ItemFilter(), 10)
    assert read == waiting == known == item
    assert read.source.datagov == item.source.datagov
    assert read.created_at.tzinfo is UTC
