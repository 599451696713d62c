"""The contract of the registries of tenants, on the in-memory fake and on a real MongoDB."""

import pytest

from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.knowledge import MongoKnowledgeStore
from rayapp.storage.mongo.ontology import MongoRegistryStore
from rayapp.understanding.statements.ports import KnowledgeStore, RegistryStore
from tests.support.ontology_contract import RegistryStoreContract
from tests.support.stores.knowledge import InMemoryKnowledgeStore
from tests.support.stores.ontology import InMemoryRegistryStore


class TestInMemory(RegistryStoreContract):
    @pytest.fixture
    def knowledge(self) -> InMemoryKnowledgeStore:
        return InMemoryKnowledgeStore()

    @pytest.fixture
    def store(self, knowledge: InMemoryKnowledgeStore) -> RegistryStore:
        return InMemoryRegistryStore(knowledge)


@pytest.mark.engine
class TestMongo(RegistryStoreContract):
    @pytest.fixture
    def knowledge(self, database: MongoDatabase) -> KnowledgeStore:
        return MongoKnowledgeStore(database)

    @pytest.fixture
    def store(self, database: MongoDatabase) -> RegistryStore:
        return MongoRegistryStore(database)
