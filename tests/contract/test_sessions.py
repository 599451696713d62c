"""The contract of conversations, on the in-memory fake and on a real MongoDB."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from rayapp.storage.mongo import MongoDatabase
from rayapp.storage.mongo.indexes import SESSIONS
from rayapp.storage.mongo.sessions import MongoSessionStore
from tests.support.clock import FakeClock
from tests.support.mongo_server import MongoServer, running_mongo
from tests.support.session_contract import SessionContract, SessionStores
from tests.support.stores.sessions import InMemorySessionStore

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
