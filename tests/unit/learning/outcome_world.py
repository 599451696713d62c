"""The outcome service on fakes, for its unit tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import load_settings
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.records import (
    FeedbackRequest,
    OutcomeAnswer,
    OutcomeEvent,
    OutcomeRequest,
    Recorder,
    ResponseAnswer,
    ResponseRequest,
)
from rayapp.memory.item import MemoryItem, Outcome
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, Shown
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.sessions import InMemorySessionStore
from tests.support.stores.stores import InMemoryReceiptStore

DANA, DANA_READS = WriteScope("dana"), ReadScope("dana")
GUEST = Recorder(principal="agent", owner=False)


class World:
    """The outcome service on fakes, with memories a, b and c of dana."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        settings = load_settings(env={})
        self.runtime = bootstrap.runtime_of(settings, InMemoryMetrics(), self.clock)
        self.items = InMemoryMemoryStore(self.clock)
        self.receipts = InMemoryReceiptStore(self.clock)
        self.store = InMemoryOutcomeStore(self.items, self.receipts, self.clock)
        self.memories = MemoriesService(
            self.items,
            clock=self.clock,
            metrics=self.runtime.metrics,
            limits=TextLimits(text=10_000, memory_bank=5_000),
            capacity=1_000,
            new_id=self.runtime.new_id,
        )
        self.service = OutcomesService(
            self.store,
            self.receipts,
            self.memories,
            InMemorySessionStore(self.clock),
            runtime=self.runtime,
        )

    async def memory(self, memory_id: str, user: str = "dana") -> None:
        text = f"הערה {memory_id} of {user}"
        await self.memories.store(WriteScope(user), NewMemory(text=text, memory_id=memory_id))

    async def receipt(self, receipt_id: str, *shown: str, **fields: Any) -> Receipt:
        receipt = Receipt(
            receipt_id=receipt_id,
            user_id="dana",
            query="איך מחדשים דרכון?",
            recipe="default",
            shown=tuple(
                Shown(position=n, memory_id=m, tier=Tier.WORKING, final=0.5)
                for n, m in enumerate(shown, start=1)
            ),
            at=self.clock.now(),
            expires_at=self.clock.now() + timedelta(hours=24),
            conversation_id="c-1",
            concepts=("דרכון",),
            context_type="doc_rag",
            principal="agent",
        )
        receipt = replace(receipt, **fields)
        await self.receipts.put(receipt)
        self.clock.advance(1)
        return receipt

    async def record(self, outcome: Outcome = Outcome.WORKED, **fields: Any) -> OutcomeAnswer:
        return await self.service.record(DANA, OutcomeRequest(outcome=outcome, **fields))

    async def respond(self, takeaway: str = "צריך שני צילומים", **fields: Any) -> ResponseAnswer:
        return await self.service.record_response(
            DANA, ResponseRequest(key_takeaway=takeaway, **fields)
        )

    async def feedback(self, score: int, *citations: str, **fields: Any) -> OutcomeAnswer:
        request = FeedbackRequest(message_id="m-1", score=score, citations=citations, **fields)
        return await self.service.feedback(DANA, request)

    async def item(self, memory_id: str, user: str = "dana") -> MemoryItem:
        found = await self.items.get(ReadScope(user), memory_id)
        assert found is not None
        return found

    async def uses(self, *memory_ids: str) -> list[int]:
        return [(await self.item(m)).stats.uses for m in memory_ids]

    async def event(self, key: str) -> OutcomeEvent:
        found = await self.store.find(DANA_READS, key)
        assert found is not None
        return found


async def open_world() -> World:
    world = World()
    for name in "abc":
        await world.memory(name)
    return world


def updated(answer: OutcomeAnswer) -> list[str]:
    return [one.memory_id for one in answer.updated]


def skipped(answer: OutcomeAnswer) -> dict[str, str]:
    return {one.memory_id: one.reason for one in answer.skipped}
