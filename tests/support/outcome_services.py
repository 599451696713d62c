"""The services of memories and of outcomes on fakes: what the worlds of learning stand on."""

from datetime import timedelta
from typing import Any

from rayapp.assistant.history.service import KeptTurnTools
from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.tools import ToolVerdicts
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, Shown
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.conversations import InMemoryConversationStore
from tests.support.stores.exchanges import InMemoryExchangeQueue
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.sessions import InMemorySessionStore
from tests.support.stores.stores import (
    InMemoryEventStore,
    InMemoryIdempotencyStore,
    InMemoryReceiptStore,
)


class OutcomeServices:
    """`memories` and `outcomes`, and the stores below them."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        settings = load_settings(env={})
        self.runtime = bootstrap.runtime_of(settings, InMemoryMetrics(), self.clock)
        self.items = InMemoryMemoryStore(self.clock)
        self.receipts = InMemoryReceiptStore(self.clock)
        self.outcome_rows = InMemoryOutcomeStore(self.items, self.receipts, self.clock)
        self.memories = MemoriesService(
            self.items,
            clock=self.clock,
            metrics=self.runtime.metrics,
            limits=TextLimits(text=10_000, memory_bank=5_000),
            capacity=1_000,
            new_id=self.runtime.new_id,
        )
        self.events = InMemoryEventStore(self.clock)
        self.queue = InMemoryExchangeQueue(self.clock)
        self.sessions = InMemorySessionStore(self.clock)
        self.conversations = InMemoryConversationStore(
            self.sessions, self.queue._rows, self.receipts, self.events, InMemoryIdempotencyStore()
        )
        self.tool_verdicts = ToolVerdicts(
            self.outcome_rows,
            KeptTurnTools(self.sessions, self.conversations),
            runtime=self.runtime,
        )
        self.outcomes = OutcomesService(
            self.outcome_rows,
            self.receipts,
            self.memories,
            self.sessions,
            tools=self.tool_verdicts,
            runtime=self.runtime,
        )

    def receipt_of(self, receipt_id: str, shown: tuple[str, ...], **fields: Any) -> Receipt:
        """Of a search of dana that found these memories now."""
        given: dict[str, Any] = {"query": "?", "conversation_id": "c-1"} | fields
        return Receipt(
            receipt_id=receipt_id,
            user_id="dana",
            recipe="default",
            shown=tuple(
                Shown(position=n, memory_id=m, tier=Tier.WORKING, final=0.5)
                for n, m in enumerate(shown, start=1)
            ),
            at=self.clock.now(),
            expires_at=self.clock.now() + timedelta(hours=24),
            principal="agent",
            **given,
        )
