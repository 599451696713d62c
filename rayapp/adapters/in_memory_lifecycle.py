"""A working `LifecycleStore` in process memory."""

from __future__ import annotations

from rayapp.adapters.in_memory import InMemoryMemoryStore
from rayapp.adapters.in_memory_stores import InMemoryEventStore, InMemoryLeaseStore
from rayapp.learning_protocols import LifecycleStore


class InMemoryLifecycleStore(LifecycleStore):
    def __init__(
        self, items: InMemoryMemoryStore, events: InMemoryEventStore, leases: InMemoryLeaseStore
    ) -> None:
        self._items = items
        self._events = events
        self._leases = leases
