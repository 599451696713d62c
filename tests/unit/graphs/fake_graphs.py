"""Graph rows that a test writes down, behind the reads of `GraphStore`, and a counter of reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rayapp.container import bootstrap
from rayapp.core.errors import RayappError
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import Runtime
from rayapp.core.settings.load import load_settings
from rayapp.graphs import records
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.clock import FakeClock


def runtime(clock: FakeClock) -> Runtime:
    return bootstrap.runtime_of(load_settings(env={}), InMemoryMetrics(), clock)


class Counting:
    """Stands before a store: counts awaited calls, and fails them while `error` is set."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self.error: RayappError | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if self.error is not None:
                raise self.error
            return await found(*args, **kwargs)

        return counted


@dataclass(slots=True)
class GraphRows:
    """The reads of `GraphStore` for the user `dana`; other users have no graph."""

    routing: list[records.RoutingRow] = field(default_factory=list)
    content: list[records.ContentNode] = field(default_factory=list)
    edges: list[records.ContentEdge] = field(default_factory=list)
    used: list[records.ActionRow] = field(default_factory=list)
    solutions: list[records.KnownSolution] = field(default_factory=list)
    asked: Any = None

    async def priors(
        self, scope: ReadScope, question: records.GraphQuestion
    ) -> records.GraphPriors:
        self.asked = question
        if scope.user_id != "dana":
            return records.GraphPriors()
        return records.GraphPriors(
            routing=tuple(row for row in self.routing if row.concept in question.concepts),
            nodes=tuple(row for row in self.content if row.node_id in question.concepts),
            actions=tuple(row for row in self.used if row.context_type == question.context_type),
            solutions=tuple(row for row in self.solutions if row.problem_hash == question.problem),
        )

    async def top_routing(self, scope: ReadScope, limit: int) -> list[records.RoutingRow]:
        found = sorted(self.routing, key=lambda row: row.last_seen_at, reverse=True)
        return found[:limit] if scope.user_id == "dana" else []

    async def top_nodes(self, scope: ReadScope, limit: int) -> list[records.ContentNode]:
        found = sorted(self.content, key=lambda row: (-row.avg_quality, row.node_id))
        return found[:limit] if scope.user_id == "dana" else []

    async def nodes(self, scope: ReadScope, node_ids: Sequence[str]) -> list[records.ContentNode]:
        found = [row for row in self.content if row.node_id in node_ids]
        return found if scope.user_id == "dana" else []

    async def edges_of(
        self, scope: ReadScope, node_ids: Sequence[str], limit: int
    ) -> list[records.ContentEdge]:
        found = [row for row in self.edges if {row.source, row.target} & set(node_ids)]
        found.sort(key=lambda row: -row.weight)
        return found[:limit] if scope.user_id == "dana" else []

    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> list[records.ActionRow]:
        found = [row for row in self.used if context_type in (None, row.context_type)]
        found.sort(key=lambda row: -row.counters.uses)
        return found[:limit] if scope.user_id == "dana" else []

    async def stats(self, scope: ReadScope) -> records.ContentStats:
        return records.ContentStats(
            nodes=len(self.content), edges=len(self.edges), last_updated_at=None
        )

    async def ask_follow_up(self, scope: WriteScope, limit: int, *, dry_run: bool) -> int:
        self.asked = {"limit": limit, "dry_run": dry_run}
        return min(limit, 12)
