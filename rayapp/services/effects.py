"""What outcomes and changed items still owe: graph increments, promotion checks, merges."""

from __future__ import annotations

from rayapp.learning_protocols import GraphStore, OutcomeStore
from rayapp.services.dedup import DedupService
from rayapp.services.promotion import PromotionService
from rayapp.services.runtime import Runtime, Texts


class EffectsService:
    """Drains the outboxes. Any number may run at once: what one settles, another skips."""

    def __init__(
        self,
        outcomes: OutcomeStore,
        graphs: GraphStore,
        promotion: PromotionService,
        dedup: DedupService,
        *,
        texts: Texts,
        runtime: Runtime,
    ) -> None:
        self._outcomes = outcomes
        self._graphs = graphs
        self._promotion = promotion
        self._dedup = dedup
        self._texts = texts
        self._runtime = runtime

    async def run_once(self) -> int:
        """Settle one batch of every kind; how many events and items were settled."""
        raise NotImplementedError
