"""What the graphs say about a question before anything is searched."""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.core.errors import DependencyDown
from rayapp.core.runtime import Runtime
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import ContextInsights, InsightsRequest
from rayapp.graphs.rules.question import read_question, suggestions_of, wanted_points
from rayapp.learning.ports import OutcomeStore
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.insights import Evidence, PastTurn, insights_of
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope
from rayapp.search.ports import ReceiptReads
from rayapp.search.priors import GraphsOnce
from rayapp.search.rules.recipes import Texts

# Earlier searches of the conversation that are looked at for repetition and continuity.
PAST_TURNS = 10
# Concepts of the user among which a misspelt one is looked for.
KNOWN_NODES = 500


@dataclass(eq=False)
class InsightsService:
    """What the graphs say before a search: reads only, no embedding.

    Two rounds: graphs and receipts, then the items they name and why those failed.

    `priority`: of a tool, which of two to try first that did equally well.
    """

    graphs: GraphStore
    items: MemoryStore
    outcomes: OutcomeStore
    receipts: ReceiptReads
    _: KW_ONLY
    texts: Texts
    runtime: Runtime
    priority: Callable[[str], int] = lambda _: 0

    async def insights(
        self, scope: ReadScope, request: InsightsRequest, graphs: GraphsOnce | None = None
    ) -> ContextInsights:
        """Empty but for the question when nothing was learned; StoreDown when the truth is.
        `graphs`: of the request that they are a part of."""
        clock, expansions = self.runtime.clock, self.texts.expansions
        started = clock.monotonic()
        question = read_question(request, expansions)
        priors, turns = await asyncio.gather(
            (graphs or self.graphs).priors(scope, question.of_graphs), self._turns(scope, request)
        )
        points = wanted_points(question, priors, scope.user_id)
        reads = asyncio.gather(self._shown(scope, points), self._failures(scope, points))
        try:
            if graphs is not None:
                await asyncio.sleep(0)  # both have begun, so that they are sent
                graphs.followed()
            items, failures = await reads
        except asyncio.CancelledError:
            reads.cancel()
            raise
        evidence = Evidence(
            priors=priors, turns=turns, items=tuple(items), failures=tuple(failures)
        )
        found = insights_of(
            question,
            evidence,
            clock.now(),
            expansions,
            documents=self.runtime.settings.compat.tier_documents,
            priority=self.priority,
        )
        return replace(found, built_ms=(clock.monotonic() - started) * 1000)

    async def suggestions(self, scope: ReadScope, query: str) -> tuple[str, ...]:
        """What may have been meant by a question that found nothing; empty when graphs are away."""
        try:
            nodes = await self.graphs.top_nodes(scope, KNOWN_NODES)
        except DependencyDown:
            return ()
        return suggestions_of(query, [node.label for node in nodes])

    async def _turns(self, scope: ReadScope, request: InsightsRequest) -> tuple[PastTurn, ...]:
        """A call that comes twice must not meet its own question as one that was asked before."""
        if request.conversation_id is None:
            return ()
        asked = await self.receipts.questions(
            scope, request.conversation_id, PAST_TURNS, besides_turn=request.message_id
        )
        return tuple(PastTurn(query=q, concepts=concepts, at=at) for q, concepts, at in asked)

    async def _shown(self, scope: ReadScope, points: tuple[str, ...]) -> list[MemoryItem]:
        return await self.items.by_points(scope, points) if points else []

    async def _failures(self, scope: ReadScope, points: tuple[str, ...]) -> list[OutcomeEvent]:
        return await self.outcomes.failures(scope, points) if points else []
