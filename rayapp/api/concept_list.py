"""The list of concepts: both graphs merged, filtered by time, ordered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from rayapp.graphs.records import Counters, RoutingRow
from rayapp.graphs.requests import GraphNodeView, GraphView
from rayapp.graphs.rules.rates import success_rate, wilson_of
from rayapp.graphs.rules.views import (
    CONTENT_PREFIX,
    ROUTING_PREFIX,
    best_tiers,
    best_wilson,
    total_of,
)
from rayapp.memory.item import NEUTRAL_SCORE
from rayapp.memory.tiers import tier_name
from rayapp.wire.views.graphs import counters_view

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
