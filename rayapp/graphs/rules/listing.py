"""The list of concepts: both graphs merged, filtered by time, ordered. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rayapp.graphs.ports import GraphMode
from rayapp.graphs.records import Counters, GraphListing, GraphNodeView, GraphView, RoutingRow
from rayapp.graphs.rules.views import CONTENT_PREFIX, ROUTING_PREFIX, best_wilson, total_of
from rayapp.memory.item import NEUTRAL_SCORE

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
    def source(self) -> GraphMode:
        if self.row and self.node:
            return "both"
        return "routing" if self.row else "content"

    @property
    def counters(self) -> Counters:
        return total_of(self.row) if self.row else Counters()

    @property
    def mentions(self) -> int:
        return self.node.usage if self.node else 0

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


def listed_concepts(listing: GraphListing) -> list[ListedConcept]:
    """Every concept once, whichever graph knows it."""
    routing = {row.concept: row for row in listing.concepts}
    nodes = {
        node.id.removeprefix(CONTENT_PREFIX): node
        for node in listing.picture.nodes
        if node.type == "content"
    }
    near = _neighbours(listing.picture)
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
