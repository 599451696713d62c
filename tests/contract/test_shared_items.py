"""The contract of `SharedItems`, on the in-memory fake and on a real MongoDB."""

from dataclasses import replace

import pytest

from rayapp.core.errors import NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.settings.model import GraphSettings
from rayapp.memory.item import Stats, point_id_of
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.indexes import ITEMS
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.shared_items import MongoSharedItems
from tests.support.builders import STORED_AT
from tests.support.clock import FakeClock
from tests.support.shared_items_contract import (
    PutContract,
    RetireContract,
    SharedGraphContract,
    SharedWorld,
    made,
)
from tests.support.stores.learned import learned_stores
from tests.support.stores.shared_items import InMemorySharedItems


class OnFakes:
    @pytest.fixture
    def world(self) -> SharedWorld:
        clock = FakeClock(STORED_AT)
        items, _, _, graphs = learned_stores(clock)

        async def judge(memory_id: str, stats: Stats) -> None:
            row = items._rows[point_id_of(SYSTEM_USER, memory_id)]
            row.item = replace(row.item, stats=stats)

        # Later than any item of the contract is stored.
        clock.advance(10 * 86_400)
        return SharedWorld(
            shared=InMemorySharedItems(items, graphs), memories=items, graphs=graphs, judge=judge
        )


@pytest.mark.engine
class OnMongo:
    @pytest.fixture
    def world(self, database: MongoDatabase) -> SharedWorld:
        async def judge(memory_id: str, stats: Stats) -> None:
            await database.collection(ITEMS).update_one(
                {"user_id": SYSTEM_USER, "memory_id": memory_id},
                {"$set": {"stats.uses": stats.uses, "stats.worked_count": stats.worked_count}},
            )

        return SharedWorld(
            shared=MongoSharedItems(database),
            memories=MongoMemoryStore(database),
            graphs=MongoGraphStore(database, GraphSettings()),
            judge=judge,
        )


class TestInMemoryPut(OnFakes, PutContract):
    pass


class TestInMemoryRetire(OnFakes, RetireContract):
    pass


class TestInMemoryGraph(OnFakes, SharedGraphContract):
    pass


class TestMongoPut(OnMongo, PutContract):
    pass


class TestMongoRetire(OnMongo, RetireContract):
    pass


class TestMongoGraph(OnMongo, SharedGraphContract):
    pass


@pytest.mark.engine
class TestMongoRows(OnMongo):
    async def test_a_put_that_meets_an_unreadable_row_writes_nothing_of_its_batch(
        self, world: SharedWorld, database: MongoDatabase
    ) -> None:
        items = made()
        await world.shared.put(items[:1])
        key = {"memory_id": items[0].memory_id}
        await database.collection(ITEMS).update_one(
            key, {"$set": {"source.datagov.record_hash": "old"}, "$unset": {"quality": ""}}
        )
        with pytest.raises(NotFound, match=items[0].memory_id):
            await world.shared.put(items)
        assert list(await world.shared.record_hashes()) == [items[0].memory_id]
