"""The contract of conversations, on the in-memory fake and on a real MongoDB."""

from datetime import timedelta

import pytest

from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.sessions import MongoSessionStore
from tests.support.clock import FakeClock
from tests.support.session_contract import SessionContract, SessionStores
from tests.support.stores.sessions import InMemorySessionStore

KEEP = timedelta(days=30)


class TestInMemorySessions(SessionContract):
    @pytest.fixture
    def stores(self) -> SessionStores:
        return SessionStores(InMemorySessionStore(FakeClock(), KEEP))


@pytest.mark.engine
class TestMongoSessions(SessionContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> SessionStores:
        return SessionStores(MongoSessionStore(database, KEEP))
