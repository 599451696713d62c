"""Rows that a search reads without zones are the rows that everybody else reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rayapp.memory.item import IndexState, MemoryItem, Outcome, Source, SourceType, Stats
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.mongo import MongoDatabase, MongoMemoryStore
from tests.support.builders import an_item
from tests.support.mongo_server import MongoServer, running_mongo

pytestmark = pytest.mark.engine
AT = datetime(2026, 5, 1, 12, 30, 15, 123_000, tzinfo=UTC)
DANA = ReadScope("dana")


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture
async def store(mongo: MongoServer) -> AsyncIterator[MongoMemoryStore]:
    database = MongoDatabase(mongo.settings("plain-reads"))
    await database.ensure_schema()
    yield MongoMemoryStore(database)
    await database.close()


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
