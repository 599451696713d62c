"""The contract of conversations, on the in-memory fake and on a real MongoDB."""

from datetime import timedelta

import pytest

from rayapp.assistant.conversations.sessions import DeferredSessions
from rayapp.assistant.ports import InjectedContext
from rayapp.core.metrics import InMemoryMetrics
from rayapp.memory.scope import WriteScope
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


class ToldLater(DeferredSessions):
    """Logs every context as after an answer."""

    async def log_injected(self, scope: WriteScope, context: InjectedContext) -> None:
        await self.tell_later(scope, context)


class TestDeferredSessions(SessionContract):
    @pytest.fixture
    def stores(self) -> SessionStores:
        behind = InMemorySessionStore(FakeClock(), KEEP)
        return SessionStores(ToldLater(behind, deferring=True, metrics=InMemoryMetrics()))


@pytest.mark.engine
class TestMongoSessions(SessionContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> SessionStores:
        return SessionStores(MongoSessionStore(database, KEEP))
