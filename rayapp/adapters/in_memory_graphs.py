"""A working `GraphStore` in process memory."""

from __future__ import annotations

from rayapp.adapters.in_memory import InMemoryMemoryStore
from rayapp.adapters.in_memory_outcomes import InMemoryOutcomeStore
from rayapp.learning_protocols import GraphStore
from rayapp.protocols import Clock
from rayapp.settings import GraphSettings


class InMemoryGraphStore(GraphStore):
    def __init__(
        self,
        items: InMemoryMemoryStore,
        outcomes: InMemoryOutcomeStore,
        clock: Clock,
        settings: GraphSettings,
    ) -> None:
        self._items = items
        self._outcomes = outcomes
        self._clock = clock
        self._settings = settings
