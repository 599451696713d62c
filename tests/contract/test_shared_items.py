"""The contract of `SharedItems`, on the in-memory fake and on a real MongoDB."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from rayapp.core.errors import NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.settings.model import GraphSettings
from rayapp.memory.item import Stats, point_id_of
from rayapp.storage.mongo import MongoDatabase, MongoMemoryStore
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.indexes import INDEXES, ITEMS
from rayapp.storage.mongo.shared_items import MongoSharedItems
from tests.support.builders import STORED_AT
from tests.support.clock import FakeClock
from tests.support.mongo_server import MongoServer, running_mongo
from tests.support.shared_items_contract import (
    PutContract,
    RetireContract,
    SharedGraphContract,
    SharedWorld,
    made,
)
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.shared_items import InMemorySharedItems
from tests.support.stores.stores import InMemoryReceiptStore


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings("shared"))
    await database.ensure_schema()
    yield database
    await database.close()


class OnFakes:
    @pytest.fixture
    def world(self) -> SharedWorld:
        clock = FakeClock(STORED_AT)
        items = InMemoryMemoryStore(clock)
        outcomes = InMemoryOutcomeStore(items, InMemoryReceiptStore(clock), clock)
        graphs = InMemoryGraphStore(items, outcomes, clock, GraphSettings())

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
    async def world(self, database: MongoDatabase) -> SharedWorld:
        for name in INDEXES:
            await database.collection(name).delete_many({})

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
