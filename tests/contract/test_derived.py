"""The contract of episodes and thoughts, on the in-memory fake, on a real MongoDB, and as a change
of many texts holds them over either."""

import pytest

from rayapp.memory.ports import Event
from rayapp.memory.scope import ReadScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.derived import MongoDerivedStore
from rayapp.storage.mongo.event_stream import MongoEventStore
from rayapp.understanding.derived.held import HeldDerived
from rayapp.understanding.derived.ports import DerivedStore
from tests.support.derived_contract import DANA, DerivedStoreContract
from tests.support.stores.derived import InMemoryDerivedStore
from tests.support.stores.held import HeldStore


class TestInMemory(DerivedStoreContract):
    @pytest.fixture
    def store(self) -> DerivedStore:
        return InMemoryDerivedStore()

    async def told(self, store: DerivedStore) -> list[Event]:
        assert isinstance(store, InMemoryDerivedStore)
        return store.told


class TestHeldInMemory(DerivedStoreContract):
    @pytest.fixture
    def store(self) -> DerivedStore:
        return HeldStore(InMemoryDerivedStore(), HeldDerived)

    async def told(self, store: DerivedStore) -> list[Event]:
        assert isinstance(store, HeldStore)
        told: list[Event] = store.inner.told
        return told


@pytest.mark.engine
class TestMongo(DerivedStoreContract):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> DerivedStore:
        self.database = database
        return MongoDerivedStore(database)

    async def told(self, store: DerivedStore) -> list[Event]:
        return await MongoEventStore(self.database).recent(ReadScope(DANA), None, 9)


@pytest.mark.engine
class TestHeldMongo(TestMongo):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> DerivedStore:
        self.database = database
        return HeldStore(MongoDerivedStore(database), HeldDerived)
