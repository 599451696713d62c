"""Rows of the graphs as people look at them: pictures, totals over tiers, paths. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from itertools import combinations
from typing import Literal

from rayapp.graphs import records
from rayapp.graphs.rules.routing import action_success_rate, added, success_rate, wilson_of
from rayapp.memory.item import NEUTRAL_SCORE
from rayapp.memory.tiers import Tier

ROUTING_PREFIX, CONTENT_PREFIX, ACTION_PREFIX = "routing_", "content_", "action_"

# How much one picture shows, and the range of its scores and weights (client contract).
MAX_ROUTING = 30
MAX_CONTENT = 200
MAX_ACTIONS = 25
MAX_EDGES = 2_000
LOWEST_SCORE, HIGHEST_SCORE = 0.3, 0.95
LIGHTEST_EDGE, HEAVIEST_EDGE = 0.2, 3.0
# A concept's best tiers: above this Wilson score, at most so many (the first client shows as many).
BEST_TIER_WILSON = 0.3
MAX_BEST_TIERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTotal:
    """One action in one context, over all tiers. `best_tier` has the highest Wilson score; a tool
    has none."""

    context_type: str
    action: str
    counters: records.Counters
    first_used_at: datetime
    last_used_at: datetime
    best_tier: Tier | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptTotal:
    """One concept over all tiers: of its routing row, else of its action."""

    kind: Literal["routing", "content", "action"]
    counters: records.Counters
    success_rate: float
    best_tier: Tier | None
    tiers: Mapping[Tier, records.Counters]
    first_seen_at: datetime | None
    last_seen_at: datetime | None


def total_of(row: records.RoutingRow) -> records.Counters:
    """The counters of a concept over all tiers."""
    return _sum(row.tiers.values())


def best_tiers(row: records.RoutingRow) -> tuple[Tier, ...]:
    """Tiers in which the concept did well, best first."""
    scored = [(wilson_of(counters), counters.uses, tier) for tier, counters in row.tiers.items()]
    scored.sort(key=lambda one: (-one[0], -one[1], one[2].value))
    return tuple(tier for wilson, uses, tier in scored if uses and wilson > BEST_TIER_WILSON)[
        :MAX_BEST_TIERS
    ]


def best_wilson(row: records.RoutingRow) -> float:
    """Of the best tier; neutral when nothing was judged."""
    return max((wilson_of(c) for c in row.tiers.values() if c.uses), default=NEUTRAL_SCORE)


def action_totals(rows: Iterable[records.ActionRow]) -> tuple[ActionTotal, ...]:
    """The rows of one action in one context together, most used first."""
    grouped: dict[tuple[str, str], list[records.ActionRow]] = {}
    for row in rows:
        grouped.setdefault((row.context_type, row.action), []).append(row)
    totals = [_action_total(group) for group in grouped.values()]
    totals.sort(key=lambda one: (-one.counters.uses, one.context_type, one.action))
    return tuple(totals)


def concept_total(found: records.ConceptDefinition) -> ConceptTotal:
    """What all rows of a concept say together."""
    routing, node = found.routing, found.node
    action = action_totals(found.actions)[0] if found.actions else None
    counters = total_of(routing) if routing else action.counters if action else records.Counters()
    seen = [(one.first_seen_at, one.last_seen_at) for one in (routing, node) if one is not None]
    seen += [(action.first_used_at, action.last_used_at)] if action else []
    best = next(iter(best_tiers(routing)), None) if routing else None
    return ConceptTotal(
        kind="content" if node else "action" if action else "routing",
        counters=counters,
        success_rate=action_success_rate(counters) if action else success_rate(counters),
        best_tier=action.best_tier if action and routing is None else best,
        tiers=routing.tiers if routing else _by_tier(found.actions),
        first_seen_at=min((first for first, _ in seen), default=None),
        last_seen_at=max((last for _, last in seen), default=None),
    )


def examples_of(
    rows: Iterable[records.RoutingRow | records.ActionRow],
) -> tuple[records.Example, ...]:
    """The remembered outcomes of all rows, newest first, those of one time by their memory."""
    found = {(e.point_id, e.outcome, e.at): e for row in rows for e in row.examples}
    by_memory = sorted(found.values(), key=lambda e: (e.memory_id, e.outcome))
    return tuple(sorted(by_memory, key=lambda e: e.at, reverse=True))


def _by_tier(rows: Iterable[records.ActionRow]) -> dict[Tier, records.Counters]:
    return {row.tier: row.counters for row in rows if row.tier is not None}


def _action_total(rows: Sequence[records.ActionRow]) -> ActionTotal:
    best = min(rows, key=lambda r: (-wilson_of(r.counters), -r.counters.uses, r.tier or ""))
    return ActionTotal(
        context_type=rows[0].context_type,
        action=rows[0].action,
        counters=_sum(row.counters for row in rows),
        first_used_at=min(row.first_used_at for row in rows),
        last_used_at=max(row.last_used_at for row in rows),
        best_tier=best.tier,
    )


def _sum(counters: Iterable[records.Counters]) -> records.Counters:
    return reduce(added, counters, records.Counters())


def graph_view(
    *,
    routing: Sequence[records.RoutingRow] = (),
    known: Sequence[records.RoutingRow] = (),
    nodes: Sequence[records.ContentNode] = (),
    edges: Sequence[records.ContentEdge] = (),
    actions: Sequence[records.ActionRow] = (),
) -> records.GraphView:
    """Nodes of all kinds and at most `MAX_EDGES` edges between them, heaviest first.

    `known`: routing rows that only say how well a content node did. `connections` counts the edges
    that are in the picture; one of which an end is not shown is left out.
    """
    rows = {row.concept: row for row in (*known, *routing)}
    shown = [
        *(_routing_view(row) for row in routing),
        *(_content_view(node, rows.get(node.node_id)) for node in nodes),
        *(_action_view(total) for total in action_totals(actions)[:MAX_ACTIONS]),
    ]
    links = [*_routing_edges(routing), *_content_edges(nodes, edges)]
    links.sort(key=lambda edge: (-edge.weight, edge.source, edge.target))
    del links[MAX_EDGES:]
    connections = Counter(end for edge in links for end in (edge.source, edge.target))
    return records.GraphView(
        nodes=tuple(replace(node, connections=connections[node.id]) for node in shown),
        edges=tuple(links),
    )


def beside(own: records.GraphView, shared: records.GraphView) -> records.GraphView:
    """Two pictures as one; what both have is the first one's, and the limits hold for each."""
    mine = {node.id for node in own.nodes}
    links = {(edge.source, edge.target) for edge in own.edges}
    return records.GraphView(
        nodes=(*own.nodes, *(node for node in shared.nodes if node.id not in mine)),
        edges=(*own.edges, *(e for e in shared.edges if (e.source, e.target) not in links)),
    )


def _routing_view(row: records.RoutingRow) -> records.GraphNodeView:
    total, best = total_of(row), best_tiers(row)
    return records.GraphNodeView(
        id=ROUTING_PREFIX + row.concept,
        concept=row.label,
        type="routing",
        score=_between(best_wilson(row), LOWEST_SCORE, HIGHEST_SCORE),
        usage=total.uses,
        success_rate=success_rate(total),
        created_at=row.first_seen_at,
        last_used=row.last_seen_at,
        best_tier=best[0] if best else None,
    )


def _content_view(
    node: records.ContentNode, routing: records.RoutingRow | None
) -> records.GraphNodeView:
    """How well a concept did is known by its routing row; without one the rate is neutral."""
    best = best_tiers(routing) if routing else ()
    return records.GraphNodeView(
        id=CONTENT_PREFIX + node.node_id,
        concept=node.label,
        type="content",
        score=_between(node.avg_quality, 0.0, 1.0),
        usage=node.mentions,
        success_rate=success_rate(total_of(routing)) if routing else NEUTRAL_SCORE,
        created_at=node.first_seen_at,
        last_used=node.last_seen_at,
        best_tier=best[0] if best else None,
    )


def _action_view(total: ActionTotal) -> records.GraphNodeView:
    return records.GraphNodeView(
        id=f"{ACTION_PREFIX}{total.context_type}_{total.action}",
        concept=f"{total.action}@{total.context_type}",
        type="action",
        score=wilson_of(total.counters),
        usage=total.counters.uses,
        success_rate=action_success_rate(total.counters),
        created_at=total.first_used_at,
        last_used=total.last_used_at,
        best_tier=total.best_tier,
    )


def _routing_edges(rows: Sequence[records.RoutingRow]) -> Iterator[records.GraphEdgeView]:
    """Two concepts that do well in the same tiers, as heavily as the weaker of both does."""
    good = [
        (row.concept, {tier: wilson_of(row.tiers[tier]) for tier in best_tiers(row)})
        for row in rows
    ]
    for (one, here), (other, there) in combinations(good, 2):
        shared = here.keys() & there.keys()
        if shared:
            weight = sum(min(here[tier], there[tier]) for tier in shared)
            yield records.GraphEdgeView(
                ROUTING_PREFIX + one,
                ROUTING_PREFIX + other,
                _between(weight, LIGHTEST_EDGE, HEAVIEST_EDGE),
            )


def _content_edges(
    nodes: Sequence[records.ContentNode], edges: Sequence[records.ContentEdge]
) -> Iterator[records.GraphEdgeView]:
    shown = {node.node_id for node in nodes}
    for edge in edges:
        if edge.source in shown and edge.target in shown:
            yield records.GraphEdgeView(
                CONTENT_PREFIX + edge.source, CONTENT_PREFIX + edge.target, edge.weight
            )


def _between(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))


class BidirectionalSearch:
    """Two breadth-first searches towards each other, one read of edges per step of both.

    After n steps every path of at most 2n edges is known, unless a read was cut.
    """

    def __init__(self, source: str, target: str) -> None:
        self.frontier: tuple[str, ...] = tuple(dict.fromkeys((source, target)))
        self._edges: list[records.ContentEdge] = []
        # How far each node is from the source, and from the target.
        self._near: dict[str, int] = {source: 0}
        self._far: dict[str, int] = {target: 0}
        self._steps = 0

    @property
    def met(self) -> bool:
        """Whether a path is known."""
        return not self._near.keys().isdisjoint(self._far)

    def step(self, edges: Sequence[records.ContentEdge], limit: int) -> None:
        """Add the edges of the frontier; the next frontier has at most `limit` nodes."""
        self._edges.extend(edges)
        self._steps += 1
        tried, known = set(self.frontier), self._near.keys() | self._far.keys()
        found: dict[str, None] = {}
        for side in (self._near, self._far):
            here = side.keys() & tried
            for edge in edges:
                for one, other in _both_ways(edge):
                    if one in here:
                        side.setdefault(other, self._steps)
                        found[other] = None
        self.frontier = tuple(node for node in found if node not in known)[:limit]

    def corridor(self) -> list[records.ContentEdge]:
        """The edges of all shortest paths: few, where the known part of a graph may be large."""
        both = self._near.keys() & self._far.keys()
        length = min((self._near[node] + self._far[node] for node in both), default=0)
        middle = {node for node in both if self._near[node] + self._far[node] == length}
        kept = set(middle)
        for side in (self._near, self._far):
            level = middle
            while level:
                level = {
                    other
                    for edge in self._edges
                    for one, other in _both_ways(edge)
                    if one in level and side.get(other) == side[one] - 1
                }
                kept |= level
        return [edge for edge in self._edges if edge.source in kept and edge.target in kept]


def _both_ways(edge: records.ContentEdge) -> tuple[tuple[str, str], tuple[str, str]]:
    return (edge.source, edge.target), (edge.target, edge.source)
