"""The contract of `UsageStore`, on the in-memory fake and on a real MongoDB."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from rayapp.inference.ports import UsageStore
from rayapp.storage.mongo import MongoDatabase
from rayapp.storage.mongo.indexes import MODEL_USAGE
from rayapp.storage.mongo.usage import MongoUsageStore
from tests.support.builders import STORED_AT
from tests.support.clock import FakeClock
from tests.support.mongo_server import MongoServer, running_mongo
from tests.support.stores.usage import InMemoryUsageStore
from tests.support.usage_contract import UsageContract


class TestInMemory(UsageContract):
    @pytest.fixture
    def now(self) -> datetime:
        return STORED_AT

    @pytest.fixture
    def usage(self, now: datetime) -> UsageStore:
        return InMemoryUsageStore(FakeClock(now))


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings("usage"))
    await database.ensure_schema()
    yield database
    await database.close()


@pytest.mark.engine
class TestMongo(UsageContract):
    @pytest.fixture
    def now(self) -> datetime:
        return datetime.now(UTC)

    @pytest.fixture
    async def usage(self, database: MongoDatabase) -> UsageStore:
        await database.collection(MODEL_USAGE).delete_many({})
        return MongoUsageStore(database)
