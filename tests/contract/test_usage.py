"""The contract of `UsageStore`, on the in-memory fake and on a real MongoDB."""

from datetime import UTC, datetime

import pytest

from rayapp.inference.ports import UsageStore
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.usage import MongoUsageStore
from tests.support.builders import STORED_AT
from tests.support.clock import FakeClock
from tests.support.stores.usage import InMemoryUsageStore
from tests.support.usage_contract import UsageContract


class TestInMemory(UsageContract):
    @pytest.fixture
    def now(self) -> datetime:
        return STORED_AT

    @pytest.fixture
    def usage(self, now: datetime) -> UsageStore:
        return InMemoryUsageStore(FakeClock(now))


@pytest.mark.engine
class TestMongo(UsageContract):
    @pytest.fixture
    def now(self) -> datetime:
        return datetime.now(UTC)

    @pytest.fixture
    def usage(self, database: MongoDatabase) -> UsageStore:
        return MongoUsageStore(database)
