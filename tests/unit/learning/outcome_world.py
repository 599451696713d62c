"""The outcome service on fakes, for its unit tests."""

from dataclasses import replace
from typing import Any

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
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.search.ports import Receipt
from tests.support.outcome_services import OutcomeServices

DANA, DANA_READS = WriteScope("dana"), ReadScope("dana")
GUEST = Recorder(principal="agent", owner=False)


class World(OutcomeServices):
    """The outcome service on fakes, and what its callers ask."""

    async def memory(self, memory_id: str, user: str = "dana") -> None:
        text = f"הערה {memory_id} of {user}"
        await self.memories.store(WriteScope(user), NewMemory(text=text, memory_id=memory_id))

    async def receipt(self, receipt_id: str, *shown: str, **fields: Any) -> Receipt:
        asked = {"query": "איך מחדשים דרכון?", "concepts": ("דרכון",), "context_type": "doc_rag"}
        receipt = replace(self.receipt_of(receipt_id, shown, **asked), **fields)
        await self.receipts.put_many([receipt])
        self.clock.advance(1)
        return receipt

    async def record(self, outcome: Outcome = Outcome.WORKED, **fields: Any) -> OutcomeAnswer:
        return await self.outcomes.record(DANA, OutcomeRequest(outcome=outcome, **fields))

    async def respond(self, takeaway: str = "צריך שני צילומים", **fields: Any) -> ResponseAnswer:
        return await self.outcomes.record_response(
            DANA, ResponseRequest(key_takeaway=takeaway, **fields)
        )

    async def feedback(self, score: int, *citations: str, **fields: Any) -> OutcomeAnswer:
        request = FeedbackRequest(message_id="m-1", score=score, citations=citations, **fields)
        return await self.outcomes.feedback(DANA, request)

    async def item(self, memory_id: str, user: str = "dana") -> MemoryItem:
        found = await self.items.get(ReadScope(user), memory_id)
        assert found is not None
        return found

    async def uses(self, *memory_ids: str) -> list[int]:
        return [(await self.item(m)).stats.uses for m in memory_ids]

    async def event(self, key: str) -> OutcomeEvent:
        found = await self.outcome_rows.find(DANA_READS, key)
        assert found is not None
        return found


def updated(answer: OutcomeAnswer) -> list[str]:
    return [one.memory_id for one in answer.updated]


def skipped(answer: OutcomeAnswer) -> dict[str, str]:
    return {one.memory_id: one.reason for one in answer.skipped}
