"""The contract of the typed graph, on the in-memory fake, on a real MongoDB, and as a change of
many texts holds it over either."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.derived import MongoUnderstoodStore
from rayapp.storage.mongo.knowledge import MongoKnowledgeStore
from rayapp.understanding.derived.ports import UnderstoodStore
from rayapp.understanding.ports import SourcePage
from rayapp.understanding.statements.held import HeldKnowledge
from rayapp.understanding.statements.ports import KnowledgeReads, KnowledgeRows, KnowledgeStore
from tests.support.knowledge_contract import KnowledgeStoreContract
from tests.support.stores.derived import InMemoryDerivedStore, InMemoryUnderstoodStore
from tests.support.stores.knowledge import InMemoryKnowledgeStore

T = TypeVar("T")


@dataclass
class HeldStore:
    """A store of which each change, and each look, holds its rows."""

    inner: Any

    def reads(self, scope: ReadScope) -> KnowledgeReads:
        return HeldKnowledge(self.inner.reads(scope))

    async def change(self, scope: WriteScope, work: Callable[[KnowledgeRows], Awaitable[T]]) -> T:
        async def hold(rows: KnowledgeRows) -> T:
            held = HeldKnowledge(rows)
            done = await work(held)
            await held.write()
            return done

        done: T = await self.inner.change(scope, hold)
        return done

    async def pending_of_all(self) -> int:
        waiting: int = await self.inner.pending_of_all()
        return waiting

    async def sources_after(self, after: tuple[str, str] | None, limit: int) -> SourcePage:
        page: SourcePage = await self.inner.sources_after(after, limit)
        return page


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
        return HeldStore(InMemoryKnowledgeStore())

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
        return HeldStore(MongoKnowledgeStore(database))

    @pytest.fixture
    def understood(self, database: MongoDatabase) -> UnderstoodStore:
        return MongoUnderstoodStore(database)
