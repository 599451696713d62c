"""A working `OutcomeStore` in process memory."""

from __future__ import annotations

from rayapp.adapters.in_memory import InMemoryMemoryStore
from rayapp.adapters.in_memory_stores import InMemoryReceiptStore
from rayapp.learning_protocols import OutcomeStore
from rayapp.protocols import Clock


class InMemoryOutcomeStore(OutcomeStore):
    def __init__(
        self, items: InMemoryMemoryStore, receipts: InMemoryReceiptStore, clock: Clock
    ) -> None:
        self._items = items
        self._receipts = receipts
        self._clock = clock
