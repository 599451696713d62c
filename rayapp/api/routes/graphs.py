"""The three graphs: pictures, lists, one concept, paths, upkeep, and the best patterns."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from starlette.responses import Response

from rayapp.api.auth import CONCEPT
from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.api.routes.insights import elapsed_ms
from rayapp.core.errors import NotFound
from rayapp.graphs.records import Counters, GraphNodeView, GraphView, RoutingRow
from rayapp.graphs.rules.routing import success_rate, wilson_of
from rayapp.graphs.rules.views import (
    CONTENT_PREFIX,
    ROUTING_PREFIX,
    beside,
    best_tiers,
    best_wilson,
    total_of,
)
from rayapp.memory.item import NEUTRAL_SCORE
from rayapp.memory.tiers import Tier, tier_name
from rayapp.wire import graphs as shapes
from rayapp.wire.bases import MAX_PAGE
from rayapp.wire.examples.memories import (
    CONCEPT_EXAMPLE,
    DEFINITION_EXAMPLE,
    EDGE_EXAMPLE,
    NODE_EXAMPLE,
    PATTERN_EXAMPLE,
    ROLLUP_EXAMPLE,
)
from rayapp.wire.graphs import (
    GRAPH_ALIASES,
    BackfillBody,
    GraphQuery,
    KgBody,
    KgQuery,
    PathQuery,
    RollupQuery,
)
from rayapp.wire.views.graphs import (
    action_views,
    counters_view,
    definition_view,
    edge_view,
    node_view,
    path_edge_view,
    path_node_view,
    pattern_view,
    rollup_views,
)

# The list of concepts: both graphs merged, filtered by time, ordered.

# Related concepts beside one in a list; the first client shows five.
MAX_RELATED = 10
# `session`: the server knows no sessions, and working memory lives for a day.
PERIODS = {"week": timedelta(days=7), "session": timedelta(hours=24)}


@dataclass(frozen=True, slots=True)
class ListedConcept:
    """One concept of both graphs; `related` holds labels, closest first."""

    key: str
    row: RoutingRow | None
    node: GraphNodeView | None
    related: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.node.concept if self.node else self.row.label if self.row else self.key

    @property
    def source(self) -> Literal["routing", "content", "both"]:
        if self.row and self.node:
            return "both"
        return "routing" if self.row else "content"

    @property
    def counters(self) -> Counters:
        return total_of(self.row) if self.row else Counters()

    @property
    def score(self) -> float:
        """How well it did; before any outcome, how good the memories are that carry it."""
        if self.row and self.counters.uses:
            return best_wilson(self.row)
        return self.node.score if self.node else NEUTRAL_SCORE

    @property
    def last_used(self) -> datetime | None:
        times = [self.row.last_seen_at if self.row else None]
        times.append(self.node.last_used if self.node else None)
        return max((at for at in times if at), default=None)

    @property
    def created_at(self) -> datetime | None:
        times = [self.row.first_seen_at if self.row else None]
        times.append(self.node.created_at if self.node else None)
        return min((at for at in times if at), default=None)


def listed_concepts(rows: Sequence[RoutingRow], picture: GraphView) -> list[ListedConcept]:
    """Every concept once, whichever graph knows it."""
    routing = {row.concept: row for row in rows}
    nodes = {
        node.id.removeprefix(CONTENT_PREFIX): node
        for node in picture.nodes
        if node.type == "content"
    }
    near = _neighbours(picture)
    found = []
    for key in dict.fromkeys((*routing, *nodes)):
        labels = [*near.get(CONTENT_PREFIX + key, ()), *near.get(ROUTING_PREFIX + key, ())]
        related = tuple(dict.fromkeys(labels))[:MAX_RELATED]
        found.append(ListedConcept(key, routing.get(key), nodes.get(key), related))
    return found


def _neighbours(picture: GraphView) -> dict[str, list[str]]:
    """Labels of what each node is linked with, heaviest first."""
    labels = {node.id: node.concept for node in picture.nodes}
    near: dict[str, list[str]] = {}
    for edge in sorted(picture.edges, key=lambda edge: -edge.weight):
        for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
            if there in labels:
                near.setdefault(here, []).append(labels[there])
    return near


def within(concepts: Iterable[ListedConcept], period: str, now: datetime) -> list[ListedConcept]:
    """Those used in the period; all of them for `all`."""
    if period == "all":
        return list(concepts)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight if period == "today" else now - PERIODS[period]
    return [one for one in concepts if one.last_used is not None and one.last_used >= since]


def in_order(concepts: list[ListedConcept], order: str) -> list[ListedConcept]:
    """`hybrid` by score and uses, `recent` by last use, `oldest` by first sight."""
    concepts = sorted(concepts, key=lambda one: one.key)
    if order == "hybrid":
        return sorted(concepts, key=lambda one: (-one.score, -one.counters.uses))
    if order == "recent":
        return sorted(concepts, key=lambda one: -_seconds(one.last_used, 0.0))
    return sorted(concepts, key=lambda one: _seconds(one.created_at, float("inf")))


def _seconds(at: datetime | None, unknown: float) -> float:
    return unknown if at is None else at.timestamp()


def concept_view(one: ListedConcept, documents: bool) -> dict[str, Any]:
    counters = one.counters
    uses = counters.uses if one.row else one.node.usage if one.node else 0
    best = best_tiers(one.row) if one.row else ()
    return {
        "concept_id": one.key,
        "concept": one.label,
        "label": one.label,
        "type": "routing" if one.source == "routing" else "content",
        "source": one.source,
        "score": one.score,
        "wilson_score": wilson_of(counters),
        "success_rate": success_rate(counters),
        "uses": uses,
        "usage_count": uses,
        "mentions": one.node.usage if one.node else 0,
        "best_collection": tier_name(best[0], documents) if best else None,
        "tier_stats": tier_stats(one.row, documents),
        "outcomes": {
            "positive": counters.worked,
            "negative": counters.failed,
            "partial": counters.partial,
            "unknown": counters.unknown,
        },
        "related_concepts": one.related,
        "created_at": one.created_at,
        "last_used": one.last_used,
    }


def tier_stats(row: RoutingRow | None, documents: bool) -> dict[str, dict[str, Any]]:
    return {
        tier_name(tier, documents): counters_view(counters)
        | {"success_rate": success_rate(counters), "wilson_score": wilson_of(counters)}
        for tier, counters in (row.tiers if row else {}).items()
    }


# Patterns in the answer (client contract).
PATTERNS = 50
# Rows are per tier, rollups are not: enough for the largest page of rollups.
ACTION_ROWS = MAX_PAGE * len(Tier)


async def graph(call: Call) -> Response:
    started = time.perf_counter()
    query = call.query_as(GraphQuery, GRAPH_ALIASES)
    found = await call.services.graphs.picture(call.reads, query.mode)
    if query.include_datagov:
        found = beside(found, await call.services.graphs.catalogue())
    return answer(
        {
            "success": True,
            "nodes": [node_view(node, call.documents) for node in found.nodes],
            "edges": [edge_view(edge) for edge in found.edges],
            "meta": {
                "built_ms": elapsed_ms(started),
                "node_count": len(found.nodes),
                "edge_count": len(found.edges),
            },
            "degraded": [],
        }
    )


async def kg(call: Call) -> Response:
    started = time.perf_counter()
    query = call.query_as(KgQuery)
    documents = call.documents
    listing = await call.services.graphs.listing(
        call.reads, query.mode, concepts=MAX_PAGE, actions=ACTION_ROWS
    )
    found = listed_concepts(listing.concepts, listing.picture)
    if query.mode == "content":
        found = [one for one in found if one.node is not None]
    shown = in_order(within(found, query.time_filter, call.services.clock.now()), query.sort_by)
    return answer(
        {
            "success": True,
            "concepts": [concept_view(one, documents) for one in shown[: query.limit]],
            "actionEffectiveness": action_views(listing.actions)[:MAX_PAGE],
            "meta": {
                "mode": query.mode,
                "routing_count": sum(one.row is not None for one in found),
                "content_count": sum(one.node is not None for one in found),
                "merged_count": len(found),
                "built_ms": elapsed_ms(started),
            },
            "degraded": [],
        }
    )


async def kg_note(call: Call) -> Response:
    call.body_as(KgBody)
    return answer(
        {
            "success": True,
            "stored": False,
            "message": "Nothing was stored: the graphs learn from memories and outcomes. "
            "Send POST /api/memory/outcomes.",
            "degraded": [],
        }
    )


async def action_rollups(call: Call) -> Response:
    started = time.perf_counter()
    query = call.query_as(RollupQuery)
    rows = await call.services.graphs.actions(
        call.reads, context_type=query.context_type, limit=ACTION_ROWS
    )
    rollups = rollup_views(rows, tiers=query.include_tiers, documents=call.documents)
    shown = rollups[: query.limit]
    return answer(
        {
            "success": True,
            "rollups": shown,
            "meta": {"built_ms": elapsed_ms(started), "count": len(shown)},
            "degraded": [],
        }
    )


async def definition(call: Call) -> Response:
    started = time.perf_counter()
    found = await call.services.graphs.definition(call.reads, call.concept_id())
    return answer(
        {
            "success": True,
            **definition_view(found, call.documents),
            "meta": {"built_ms": elapsed_ms(started)},
            "degraded": [],
        }
    )


async def path(call: Call) -> Response:
    started = time.perf_counter()
    query = call.query_as(PathQuery)
    found = await call.services.graphs.path(call.reads, query.source, query.target)
    return answer(
        {
            "success": True,
            "found": bool(found.nodes),
            "path": [node.label for node in found.nodes],
            "nodes": [path_node_view(node) for node in found.nodes],
            "edges": [path_edge_view(edge) for edge in found.edges],
            "meta": {"built_ms": elapsed_ms(started)},
            "degraded": [],
        }
    )


async def content_stats(call: Call) -> Response:
    started = time.perf_counter()
    found = await call.services.graphs.stats(call.reads)
    return answer(
        {
            "success": True,
            "stats": {
                "nodes": found.nodes,
                "edges": found.edges,
                "last_updated_at": found.last_updated_at,
            },
            "meta": {"built_ms": elapsed_ms(started)},
            "degraded": [],
        }
    )


async def backfill(call: Call) -> Response:
    started = time.perf_counter()
    body = call.body_as(BackfillBody) if call.body else BackfillBody()
    found = await call.services.graphs.backfill(call.writes, body.limit, dry_run=body.dry_run)
    return answer(
        {
            "success": True,
            "result": {
                "dry_run": found.dry_run,
                "processed_memories": found.processed,
                "node_ops": found.node_ops,
                "edge_ops": found.edge_ops,
                "duration_ms": found.duration_ms,
            },
            "meta": {"built_ms": elapsed_ms(started)},
            "degraded": [],
        }
    )


async def patterns(call: Call) -> Response:
    started = time.perf_counter()
    found = await call.services.graphs.patterns(call.reads, PATTERNS)
    return answer(
        {
            "success": True,
            "patterns": [pattern_view(item) for item in found],
            "meta": {"count": len(found), "built_ms": elapsed_ms(started)},
            "degraded": [],
        }
    )


_TAG = "graphs"
_BUILT = {"built_ms": 1.2}

OPERATIONS = (
    Operation(
        method="GET",
        path="/api/memory/graph",
        tag=_TAG,
        summary="Picture of the graphs",
        handler=graph,
        query=GraphQuery,
        example_query={"mode": "both"},
        aliases=GRAPH_ALIASES,
        answer=shapes.GraphAnswer,
        example={
            "success": True,
            "nodes": [NODE_EXAMPLE],
            "edges": [EDGE_EXAMPLE],
            "meta": _BUILT | {"node_count": 1, "edge_count": 1},
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path="/api/memory/kg",
        tag=_TAG,
        summary="List concepts",
        description="Concepts of both graphs, merged by their lemma, and how actions did.",
        handler=kg,
        query=KgQuery,
        example_query={"time_filter": "week", "sort_by": "hybrid", "limit": "50"},
        answer=shapes.KgAnswer,
        example={
            "success": True,
            "concepts": [CONCEPT_EXAMPLE],
            "actionEffectiveness": [],
            "meta": _BUILT
            | {"mode": "both", "routing_count": 1, "content_count": 1, "merged_count": 1},
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path="/api/memory/kg",
        tag=_TAG,
        summary="Acknowledge a concept",
        description="Stores nothing; kept for the first client.",
        handler=kg_note,
        body=KgBody,
        example_body={"concept": "Haifa", "tier": "working", "outcome": "worked"},
        answer=shapes.KgNoteAnswer,
        example={
            "success": True,
            "stored": False,
            "message": "Nothing was stored: the graphs learn from memories and outcomes. "
            "Send POST /api/memory/outcomes.",
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path="/api/memory/kg/action-rollups",
        tag=_TAG,
        summary="How actions did",
        description="By context type; the row with the tier `*` is over all tiers.",
        handler=action_rollups,
        query=RollupQuery,
        example_query={"limit": "50", "include_tiers": "true"},
        answer=shapes.RollupsAnswer,
        example={
            "success": True,
            "rollups": [ROLLUP_EXAMPLE],
            "meta": _BUILT | {"count": 1},
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path=CONCEPT,
        tag=_TAG,
        summary="Everything known of a concept",
        handler=definition,
        answer=shapes.DefinitionAnswer,
        example=DEFINITION_EXAMPLE,
        errors=(NotFound,),
    ),
    Operation(
        method="GET",
        path="/api/memory/kg/path",
        tag=_TAG,
        summary="Shortest way between two concepts",
        description="Over concepts that occur in the same memories; `found` false when there is "
        "no way.",
        handler=path,
        query=PathQuery,
        example_query={"source": "Dana", "target": "Haifa"},
        answer=shapes.PathAnswer,
        example={
            "success": True,
            "found": False,
            "path": [],
            "nodes": [],
            "edges": [],
            "meta": _BUILT,
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path="/api/memory/content-graph/stats",
        tag=_TAG,
        summary="Size of the content graph",
        handler=content_stats,
        answer=shapes.ContentStatsAnswer,
        example={
            "success": True,
            "stats": {"nodes": 2, "edges": 1, "last_updated_at": "2025-05-04T09:30:02Z"},
            "meta": _BUILT,
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path="/api/memory/content-graph/backfill",
        tag=_TAG,
        summary="Take memories up again",
        description="Asks for memories that the content graph does not know yet; they are added "
        "in the background within seconds.",
        handler=backfill,
        body=BackfillBody,
        body_required=False,
        example_body={"limit": 250, "dry_run": True},
        answer=shapes.BackfillAnswer,
        example={
            "success": True,
            "result": {
                "dry_run": True,
                "processed_memories": 3,
                "node_ops": 0,
                "edge_ops": 0,
                "duration_ms": 2.1,
            },
            "meta": _BUILT,
            "degraded": [],
        },
        writes=True,
    ),
    Operation(
        method="GET",
        path="/api/memory/patterns/performance",
        tag=_TAG,
        summary="The best patterns",
        handler=patterns,
        answer=shapes.PatternsAnswer,
        example={
            "success": True,
            "patterns": [PATTERN_EXAMPLE],
            "meta": _BUILT | {"count": 1},
            "degraded": [],
        },
    ),
)
