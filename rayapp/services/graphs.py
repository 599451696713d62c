"""The three graphs, as people and panels look at them."""

from __future__ import annotations

from rayapp.learning_protocols import GraphStore
from rayapp.protocols import MemoryStore
from rayapp.service_protocols import Graphs
from rayapp.services.runtime import Runtime


class GraphsService(Graphs):
    """Implements `service_protocols.Graphs`."""

    def __init__(self, graphs: GraphStore, items: MemoryStore, *, runtime: Runtime) -> None:
        self._graphs = graphs
        self._items = items
        self._runtime = runtime
