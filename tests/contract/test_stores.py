"""Every store contract, on the in-memory fakes and on a real MongoDB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from rayapp.storage.mongo import (
    MongoApiKeyStore,
    MongoDatabase,
    MongoEventStore,
    MongoIdempotencyStore,
    MongoLeaseStore,
    MongoMemoryStore,
    MongoReceiptStore,
)
from rayapp.storage.mongo.indexes import INDEXES
from tests.support.clock import FakeClock
from tests.support.list_contract import FilterContract, ListContract
from tests.support.mongo_server import MongoServer, running_mongo
from tests.support.queue_contract import QueueContract
from tests.support.read_contract import ReadContract
from tests.support.side_store_contract import SideStoreContract
from tests.support.store_contract import InsertContract, ReplaceContract, Stores
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.stores import (
    InMemoryApiKeyStore,
    InMemoryEventStore,
    InMemoryIdempotencyStore,
    InMemoryLeaseStore,
    InMemoryReceiptStore,
)


def in_memory_stores() -> Stores:
    clock = FakeClock()

    async def elapse(seconds: float) -> None:
        clock.advance(seconds)

    return Stores(
        memories=InMemoryMemoryStore(clock),
        receipts=InMemoryReceiptStore(clock),
        events=InMemoryEventStore(clock),
        leases=InMemoryLeaseStore(clock),
        api_keys=InMemoryApiKeyStore(),
        idempotency=InMemoryIdempotencyStore(),
        elapse=elapse,
    )


def mongo_stores(database: MongoDatabase) -> Stores:
    return Stores(
        memories=MongoMemoryStore(database),
        receipts=MongoReceiptStore(database),
        events=MongoEventStore(database),
        leases=MongoLeaseStore(database),
        api_keys=MongoApiKeyStore(database),
        idempotency=MongoIdempotencyStore(database),
        elapse=asyncio.sleep,
    )


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings("contract"))
    await database.ensure_schema()
    yield database
    await database.close()


async def emptied(database: MongoDatabase) -> MongoDatabase:
    for name in INDEXES:
        await database.collection(name).delete_many({})
    return database


class OnFakes:
    @pytest.fixture
    def stores(self) -> Stores:
        return in_memory_stores()

    @pytest.fixture(scope="class")
    @staticmethod
    def class_stores() -> Stores:
        return in_memory_stores()


@pytest.mark.engine
class OnMongo:
    @pytest.fixture
    async def stores(self, database: MongoDatabase) -> Stores:
        return mongo_stores(await emptied(database))

    @pytest.fixture(scope="class")
    @staticmethod
    async def class_stores(database: MongoDatabase) -> Stores:
        return mongo_stores(await emptied(database))


class TestInMemoryInserts(OnFakes, InsertContract):
    pass


class TestInMemoryEdits(OnFakes, ReplaceContract):
    pass


class TestInMemoryReads(OnFakes, ReadContract):
    pass


class TestInMemoryLists(OnFakes, ListContract):
    pass


class TestInMemoryFilters(OnFakes, FilterContract):
    pass


class TestInMemoryQueue(OnFakes, QueueContract):
    pass


class TestInMemorySideStores(OnFakes, SideStoreContract):
    pass


class TestMongoInserts(OnMongo, InsertContract):
    pass


class TestMongoEdits(OnMongo, ReplaceContract):
    pass


class TestMongoReads(OnMongo, ReadContract):
    pass


class TestMongoLists(OnMongo, ListContract):
    pass


class TestMongoFilters(OnMongo, FilterContract):
    pass


class TestMongoQueue(OnMongo, QueueContract):
    pass


class TestMongoSideStores(OnMongo, SideStoreContract):
    pass
