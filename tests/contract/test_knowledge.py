"""The contract of the typed graph, on the in-memory fake and on a real MongoDB."""

import pytest

from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.knowledge import MongoKnowledgeStore
from rayapp.understanding.statements.ports import KnowledgeStore
from tests.support.knowledge_contract import KnowledgeStoreContract
from tests.support.stores.knowledge import InMemoryKnowledgeStore


class TestInMemory(KnowledgeStoreContract):
    @pytest.fixture
    def store(self) -> KnowledgeStore:
        return InMemoryKnowledgeStore()


@pytest.mark.engine
class TestMongo(KnowledgeStoreContract):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> KnowledgeStore:
        return MongoKnowledgeStore(database)
