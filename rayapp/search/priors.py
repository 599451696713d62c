"""What the graphs add to a search: deeper tiers, boosts, known solutions. One read, bounded."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded
from rayapp.core.runtime import Runtime
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import GraphPriors, GraphQuestion
from rayapp.graphs.rules.problem import problem_hash
from rayapp.graphs.rules.question import context_type_of
from rayapp.memory.scope import ReadScope
from rayapp.search.rules.recipes import Texts
from rayapp.search.tracing import Trace
from rayapp.text.concepts import extract_concepts

# Users whose emptiness one process remembers; a thousand at once are the load that is planned for.
KNOWN_USERS = 10_000
# The truth being away is an error of the search; the graphs being late is not.
LATE = (DeadlineExceeded, TimeoutError)
NOTHING = GraphPriors()
# What a search waits for insights that ask slowly, once it has its own answer.
MOST_FOLLOWED_S = 0.02


class GraphsOnce:
    """The graphs as one request reads them: insights and search ask the same question of them.

    A search computes for milliseconds once it has them, in which nothing else of the request is
    done: it waits until insights have asked the store for what they read next.
    """

    def __init__(self, graphs: GraphStore) -> None:
        self._graphs = graphs
        self._reads: dict[tuple[str, GraphQuestion], asyncio.Task[GraphPriors]] = {}
        self._followed = asyncio.Event()

    def followed(self) -> None:
        """Insights have sent what they ask next, or ask nothing more."""
        self._followed.set()

    async def until_followed(self) -> None:
        """For a moment at most: to wait only spares time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST_FOLLOWED_S):
                await self._followed.wait()

    async def priors(self, scope: ReadScope, question: GraphQuestion) -> GraphPriors:
        key = (scope.user_id, question)
        if key not in self._reads:
            read = asyncio.create_task(self._graphs.priors(scope, question))
            read.add_done_callback(_looked_at)
            self._reads[key] = read
        # Who gives up does not end the read of the other.
        return await asyncio.shield(self._reads[key])


class PriorsService:
    """Reads the graphs for a search.

    Most users have no graph. An empty answer to one question does not say so, so the user's next
    question within `graph.empty_cache_s` asks for it beside its own read, and those after it read
    nothing for that long.
    """

    def __init__(self, graphs: GraphStore, texts: Texts, *, runtime: Runtime) -> None:
        self._graphs = graphs
        self._expansions = texts.expansions
        self._clock = runtime.clock
        self._settings = runtime.settings.graph
        self._suspects = _Recent(self._settings.empty_cache_s)
        self._empty = _Recent(self._settings.empty_cache_s)

    def question(self, text: str) -> GraphQuestion:
        """Pure; receipts keep it, so that an outcome is learned under what was asked."""
        concepts = extract_concepts(text, expansions=self._expansions)
        return GraphQuestion(
            concepts=tuple(concept.key for concept in concepts),
            context_type=context_type_of(text),
            problem=problem_hash(text, self._expansions),
        )

    async def gather(
        self,
        scope: ReadScope,
        question: GraphQuestion,
        deadline: Deadline,
        trace: Trace,
        graphs: GraphsOnce | None = None,
    ) -> GraphPriors:
        """Empty when the user has no graph or the graphs are late (flagged `priors`)."""
        now = self._clock.monotonic()
        if self._empty.holds(scope.user_id, now):
            return NOTHING
        found, read = NOTHING, (graphs or self._graphs).priors
        async with trace.stage("priors", degrades="priors", absorbs=LATE):
            async with asyncio.timeout(deadline.limit(self._settings.priors_timeout_s)):
                if self._suspects.holds(scope.user_id, now):
                    found, bare = await asyncio.gather(
                        read(scope, question), self._graphs.is_empty(scope)
                    )
                    if bare:
                        self._empty.add(scope.user_id, now)
                else:
                    found = await read(scope, question)
            if found.is_empty:
                self._suspects.add(scope.user_id, now)
        if graphs is not None:
            await graphs.until_followed()
        return found


class PriorsRead:
    """What the graphs say to one search: read beside it from `begin` on, or when it is `found`."""

    def __init__(self, read: Callable[[], Coroutine[Any, Any, GraphPriors]]) -> None:
        self._read = read
        self._task: asyncio.Task[GraphPriors] | None = None

    def begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._read())

    async def found(self) -> GraphPriors:
        self.begin()
        assert self._task is not None
        return await self._task

    async def end(self) -> None:
        """Leave no read behind when the search failed before it needed the graphs."""
        if self._task is None:
            return
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        _looked_at(self._task)


def _looked_at(task: asyncio.Task[GraphPriors]) -> None:
    """So that the loop does not report its error as forgotten."""
    if not task.cancelled():
        task.exception()


class _Recent:
    """Users noted within the last `ttl_s` seconds; the oldest note goes when there is no room."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._until: dict[str, float] = {}

    def holds(self, user_id: str, now: float) -> bool:
        return now < self._until.get(user_id, 0.0)

    def add(self, user_id: str, now: float) -> None:
        # Taken out first, so that the order of the dict stays the order of the notes.
        self._until.pop(user_id, None)
        if len(self._until) >= KNOWN_USERS:
            del self._until[next(iter(self._until))]
        self._until[user_id] = now + self._ttl_s
