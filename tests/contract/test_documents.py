"""Documents, on the fake and on a real MongoDB."""

import asyncio

import pytest

from rayapp.core.runtime import SystemClock
from rayapp.memory.scope import WriteScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.documents import IS_DUE, IS_OPEN, MongoBookStore
from rayapp.storage.mongo.indexes import DOCUMENTS, UPLOADS
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.user_rows import MongoUserRows
from tests.support.clock import FakeClock
from tests.support.document_contract import DANA, DocumentContract, DocumentStores, a_book
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.documents import InMemoryBookStore


class TestInMemoryDocuments(DocumentContract):
    @pytest.fixture
    def stores(self) -> DocumentStores:
        clock = FakeClock()
        items = InMemoryMemoryStore(clock)
        return DocumentStores(InMemoryBookStore(items, clock), items, clock, clock.elapse)


@pytest.mark.engine
class TestMongoDocuments(DocumentContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> DocumentStores:
        books, items = MongoBookStore(database), MongoMemoryStore(database)
        return DocumentStores(books, items, SystemClock(), asyncio.sleep)

    async def test_an_upload_that_nobody_asks_for_goes(
        self, database: MongoDatabase, stores: DocumentStores
    ) -> None:
        rows = database.collection(UPLOADS)
        await stores.books.put_upload(DANA, "u-1", b"x")
        assert await rows.count_documents({"expires_at": {"$type": "date"}}) == 1
        await stores.books.keep_upload(DANA, "u-1")
        assert await rows.count_documents({"expires_at": {"$type": "date"}}) == 0

    async def test_a_look_for_work_uses_the_small_index(
        self, database: MongoDatabase, stores: DocumentStores
    ) -> None:
        plan = await database.collection(DOCUMENTS).find({**IS_OPEN, **IS_DUE}).explain()
        assert "document_due" in str(plan["queryPlanner"]["winningPlan"])

    async def test_clearing_a_user_takes_rows_and_uploads(
        self, database: MongoDatabase, stores: DocumentStores
    ) -> None:
        for user in ("dana", "noa"):
            await stores.books.add(a_book(stores.clock, user_id=user))
            await stores.books.put_upload(WriteScope(user), "u-1", b"x")
        assert await MongoUserRows(database).clear_documents(DANA) == 1
        assert await database.collection(DOCUMENTS).distinct("user_id") == ["noa"]
        assert await database.collection(UPLOADS).distinct("user_id") == ["noa"]
