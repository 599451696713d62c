"""Every store contract, on the in-memory fakes and on a real MongoDB."""

import asyncio

import pytest

from rayapp.storage.mongo import index_queue
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.event_stream import MongoEventStore
from rayapp.storage.mongo.jobs import MongoLeaseStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.operator_rows import MongoApiKeyStore, MongoAuditStore
from rayapp.storage.mongo.receipts import MongoIdempotencyStore, MongoReceiptStore
from tests.support.builders import an_item
from tests.support.clock import FakeClock
from tests.support.list_contract import FilterContract, ListContract
from tests.support.mongo_fixtures import emptied
from tests.support.queue_contract import SCHEMA, QueueContract, result_of
from tests.support.read_contract import ReadContract
from tests.support.side_store_contract import SideStoreContract
from tests.support.store_contract import InsertContract, ReplaceContract, Stores
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.stores import (
    InMemoryApiKeyStore,
    InMemoryAuditStore,
    InMemoryEventStore,
    InMemoryIdempotencyStore,
    InMemoryLeaseStore,
    InMemoryReceiptStore,
)


def in_memory_stores() -> Stores:
    clock = FakeClock()
    return Stores(
        memories=InMemoryMemoryStore(clock),
        receipts=InMemoryReceiptStore(clock),
        events=InMemoryEventStore(clock),
        leases=InMemoryLeaseStore(clock),
        api_keys=InMemoryApiKeyStore(),
        audit_log=InMemoryAuditStore(),
        idempotency=InMemoryIdempotencyStore(),
        elapse=clock.elapse,
    )


def mongo_stores(database: MongoDatabase) -> Stores:
    return Stores(
        memories=MongoMemoryStore(database),
        receipts=MongoReceiptStore(database),
        events=MongoEventStore(database),
        leases=MongoLeaseStore(database),
        api_keys=MongoApiKeyStore(database),
        audit_log=MongoAuditStore(database),
        idempotency=MongoIdempotencyStore(database),
        elapse=asyncio.sleep,
    )


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
    def stores(self, database: MongoDatabase) -> Stores:
        return mongo_stores(database)

    @pytest.fixture(scope="class")
    @staticmethod
    async def class_stores(schema: MongoDatabase) -> Stores:
        return mongo_stores(await emptied(schema))


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
    async def test_of_many_that_are_in_order_the_rest_is_told_by_the_size(
        self, stores: Stores, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(index_queue, "MOST_COUNTED", 2)
        await stores.memories.insert_many([an_item() for _ in range(6)])
        for left in (4, 2, 0):
            claimed = await stores.memories.claim(token="t", limit=2, claim_s=60)
            await stores.memories.finish("t", [result_of(item) for item in claimed], SCHEMA)
            backlog = await stores.memories.backlog()
            assert (backlog.pending, backlog.synced, backlog.failed) == (left, 6 - left, 0)


class TestMongoSideStores(OnMongo, SideStoreContract):
    pass
