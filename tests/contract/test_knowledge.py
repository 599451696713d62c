"""The contract of the typed graph, on the in-memory fake, on a real MongoDB, and as a change of
many texts holds it over either."""

import pytest

from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.derived import MongoUnderstoodStore
from rayapp.storage.mongo.knowledge import MongoKnowledgeStore
from rayapp.understanding.derived.ports import UnderstoodStore
from rayapp.understanding.statements.held import HeldKnowledge
from rayapp.understanding.statements.ports import KnowledgeStore
from tests.support.knowledge_contract import KnowledgeStoreContract
from tests.support.stores.derived import InMemoryDerivedStore, InMemoryUnderstoodStore
from tests.support.stores.held import HeldStore
from tests.support.stores.knowledge import InMemoryKnowledgeStore


class TestInMemory(KnowledgeStoreContract):
    @pytest.fixture
    def store(self) -> KnowledgeStore:
        return InMemoryKnowledgeStore()

    @pytest.fixture
    def understood(self, store: KnowledgeStore) -> UnderstoodStore:
        assert isinstance(store, InMemoryKnowledgeStore)
        return InMemoryUnderstoodStore(store, InMemoryDerivedStore())


class TestHeldInMemory(KnowledgeStoreContract):
    @pytest.fixture
    def store(self) -> KnowledgeStore:
        return HeldStore(InMemoryKnowledgeStore(), HeldKnowledge)

    @pytest.fixture
    def understood(self, store: HeldStore) -> UnderstoodStore:
        return InMemoryUnderstoodStore(store.inner, InMemoryDerivedStore())


@pytest.mark.engine
class TestMongo(KnowledgeStoreContract):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> KnowledgeStore:
        return MongoKnowledgeStore(database)

    @pytest.fixture
    def understood(self, database: MongoDatabase) -> UnderstoodStore:
        return MongoUnderstoodStore(database)


@pytest.mark.engine
class TestHeldMongo(KnowledgeStoreContract):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> KnowledgeStore:
        return HeldStore(MongoKnowledgeStore(database), HeldKnowledge)

    @pytest.fixture
    def understood(self, database: MongoDatabase) -> UnderstoodStore:
        return MongoUnderstoodStore(database)
