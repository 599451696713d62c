"""The contract of kept conversations, on the in-memory fake and on a real MongoDB."""

from datetime import timedelta
from typing import Any

import pytest

from rayapp.storage.mongo.conversations import KEPT, NEWEST, MongoConversationStore
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import SESSIONS
from rayapp.storage.mongo.sessions import MongoSessionStore
from tests.support.clock import FakeClock
from tests.support.conversation_contract import ConversationContract, ConversationStores
from tests.support.stores.conversations import InMemoryConversationStore
from tests.support.stores.sessions import InMemorySessionStore
from tests.support.stores.stores import (
    InMemoryEventStore,
    InMemoryIdempotencyStore,
    InMemoryReceiptStore,
)

KEEP = timedelta(days=30)


class TestInMemoryConversations(ConversationContract):
    @pytest.fixture
    def stores(self) -> ConversationStores:
        clock = FakeClock()
        sessions = InMemorySessionStore(clock, KEEP)
        kept = InMemoryConversationStore(
            sessions,
            {},
            InMemoryReceiptStore(clock),
            InMemoryEventStore(clock),
            InMemoryIdempotencyStore(),
        )
        return ConversationStores(kept, sessions)


@pytest.mark.engine
class TestMongoConversations(ConversationContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> ConversationStores:
        return ConversationStores(
            MongoConversationStore(database), MongoSessionStore(database, KEEP)
        )

    async def test_a_list_is_read_in_the_order_of_its_index(self, database: MongoDatabase) -> None:
        cursor = database.collection(SESSIONS).find({"user_id": "dana", **KEPT})
        plan: Any = await cursor.sort(NEWEST).explain()
        assert "conversations_newest" in str(plan["queryPlanner"]["winningPlan"])
        assert "SORT" not in str(plan["queryPlanner"]["winningPlan"])
