"""Rows of sources and marks of memories, on the fakes and on a real MongoDB."""

import asyncio

import pytest

from rayapp.core.runtime import SystemClock
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import new_item
from rayapp.memory.scope import WriteScope
from rayapp.portability.ports import ALL_ROWS
from rayapp.portability.rules.collections import BY_NAME
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.understandings import MongoUnderstandingStore
from rayapp.storage.mongo.user_archive import MongoUserArchive
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.understandings import InMemoryUnderstandingStore
from tests.support.understanding_contract import (
    DANA,
    UnderstandingContract,
    UnderstandingStores,
    scored,
    stored,
)


class TestInMemoryUnderstandings(UnderstandingContract):
    @pytest.fixture
    def stores(self) -> UnderstandingStores:
        clock = FakeClock()
        items = InMemoryMemoryStore(clock)
        return UnderstandingStores(
            InMemoryUnderstandingStore(clock, items), items, clock, clock.elapse
        )


@pytest.mark.engine
class TestMongoUnderstandings(UnderstandingContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> UnderstandingStores:
        store, items = MongoUnderstandingStore(database), MongoMemoryStore(database)
        return UnderstandingStores(store, items, SystemClock(), asyncio.sleep)

    async def test_an_erasure_of_many_tells_of_each(
        self, database: MongoDatabase, stores: UnderstandingStores
    ) -> None:
        for name in ("one", "two"):
            await stores.store.offer(scored(await stored(stores, name)))
        archive = MongoUserArchive(database)
        scope, items = WriteScope("dana"), BY_NAME["memory_items"]
        assert await archive.clear(scope, items, 9, ALL_ROWS) == 2
        await asyncio.sleep(0.01)
        claimed = await stores.store.claim("w", 9, 60.0)
        assert [one.row.gone for one in claimed] == [True, True]
        assert await archive.clear(scope, BY_NAME["understandings"], 9) == 2
        assert (await archive.left(DANA))["understandings"] == 0

    async def test_shared_memories_are_never_marked(self, stores: UnderstandingStores) -> None:
        new = new_item(
            NewMemory(text="of one conversation", attached_to="c-1"),
            user_id="dana",
            memory_id="m-9",
            now=stores.clock.now(),
        )
        await stores.items.insert(new)
        assert await stores.store.marked(9, 0.0) == []
