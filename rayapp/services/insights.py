"""What the graphs say about a question before anything is searched."""

from __future__ import annotations

from rayapp.learning_protocols import GraphStore, OutcomeStore
from rayapp.protocols import MemoryStore, ReceiptStore
from rayapp.service_protocols import Insights
from rayapp.services.runtime import Runtime, Texts


class InsightsService(Insights):
    """Implements `service_protocols.Insights`."""

    def __init__(
        self,
        graphs: GraphStore,
        items: MemoryStore,
        outcomes: OutcomeStore,
        receipts: ReceiptStore,
        *,
        texts: Texts,
        runtime: Runtime,
    ) -> None:
        self._graphs = graphs
        self._items = items
        self._outcomes = outcomes
        self._receipts = receipts
        self._texts = texts
        self._runtime = runtime
