"""The contract of conversations, on the in-memory fake and on a real MongoDB."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from rayapp.adapters.in_memory_sessions import InMemorySessionStore
from rayapp.adapters.mongo import MongoDatabase
from rayapp.adapters.mongo.indexes import SESSIONS
from rayapp.adapters.mongo.sessions import MongoSessionStore
from rayapp.testing.clock import FakeClock
from rayapp.testing.mongo_server import MongoServer, running_mongo
from rayapp.testing.session_contract import SessionContract, SessionStores

KEEP = timedelta(days=30)


class TestInMemorySessions(SessionContract):
    @pytest.fixture
    def stores(self) -> SessionStores:
        return SessionStores(InMemorySessionStore(FakeClock(), KEEP))


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings("sessions"))
    await database.ensure_schema()
    yield database
    await database.close()


@pytest.mark.engine
class TestMongoSessions(SessionContract):
    @pytest.fixture
    async def stores(self, database: MongoDatabase) -> SessionStores:
        await database.collection(SESSIONS).delete_many({})
        return SessionStores(MongoSessionStore(database, KEEP))
