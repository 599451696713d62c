"""The content graph's rules: whose it is, what an item adds and takes back, caps, paths."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations

from rayapp.graphs.records import (
    ActionIncrement,
    ContentChanges,
    ContentEdge,
    Contribution,
    EdgeIncrement,
    Example,
    NodeIncrement,
    OutcomeChanges,
    RoutingIncrement,
)
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept
from rayapp.text.concepts import extract_concepts
from rayapp.text.expansions import Expansions

# Whether what the graphs remember under an id happened to the memory that has the id now.

# An outcome and a memory may be timed by two processes whose clocks differ by this much.
CLOCK_SKEW = timedelta(seconds=1)


def happened_to(item: MemoryItem, at: datetime) -> bool:
    """True unless it happened before `item` was stored.

    An id may be used again after its memory was deleted, and the graphs remember the deleted one
    for a while: what it did is not the new memory's doing.
    """
    return at >= item.stored_at - CLOCK_SKEW


def inherited_at(winner: MemoryItem, at: datetime) -> datetime:
    """When an outcome of a memory that was merged into `winner` counts for it.

    The copy that is kept may be the later one: older outcomes count from when it was stored.
    """
    return max(at, winner.stored_at)


def handed_over(example: Example, winner: MemoryItem) -> Example:
    """What is remembered of a memory, as of the one that it was merged into."""
    return replace(
        example,
        memory_id=winner.memory_id,
        point_id=winner.point_id,
        tier=winner.tier,
        at=inherited_at(winner, example.at),
    )


def points_of(changes: OutcomeChanges) -> tuple[str, ...]:
    """Points of the memories that outcomes are told of."""
    rows: tuple[RoutingIncrement | ActionIncrement, ...] = (*changes.routing, *changes.actions)
    told = [example.point_id for row in rows for example in row.examples]
    return tuple(dict.fromkeys([*told, *(one.point_id for one in changes.solutions)]))


def told_of_winners(
    changes: OutcomeChanges, merged: Mapping[str, tuple[MemoryItem, MemoryItem]]
) -> OutcomeChanges:
    """`changes` where rows that they meet were handed over to winners of merges. `merged`: loser
    and winner by the loser's point."""

    def winner_of(point_id: str, at: datetime) -> MemoryItem | None:
        pair = merged.get(point_id)
        return pair[1] if pair is not None and happened_to(pair[0], at) else None

    def told(examples: Sequence[Example]) -> tuple[Example, ...]:
        found = ((one, winner_of(one.point_id, one.at)) for one in examples)
        return tuple(handed_over(one, into) if into else one for one, into in found)

    solutions = []
    for one in changes.solutions:
        if into := winner_of(one.point_id, one.at):
            at = inherited_at(into, one.at)
            one = replace(one, memory_id=into.memory_id, point_id=into.point_id, at=at)
        solutions.append(one)
    return replace(
        changes,
        routing=tuple(replace(one, examples=told(one.examples)) for one in changes.routing),
        actions=tuple(replace(one, examples=told(one.examples)) for one in changes.actions),
        solutions=tuple(solutions),
    )


# What the caps of one user let into the graphs. Rows that are there already always go on growing.
#
# What a cap keeps out is remembered with the item, so that it is never taken back later.

EdgeKey = tuple[str, str]

# Rows keep so many spellings and memory ids: enough to explain a row, few enough that it stays one
# small document. Our choice.
ALIASES = 8
MEMORY_IDS = 20
# What one read of the priors brings at most: a search looks at the best few of each.
PRIOR_ACTIONS = 50
PRIOR_SOLUTIONS = 10
# A book speaks for itself from three judgements on, like an item.
JUDGED_OFTEN = 3
JUDGED_BOOKS = 50
# Added and taken back, floats leave a rest of about 1e-16 per step; real weights are far above.
EDGE_GONE = 1e-6


@dataclass(frozen=True, slots=True)
class GraphQuota:
    """Which of the named rows exist, and how many may still be created."""

    known: frozenset[object]
    free: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The part of an item's contribution that never came into the graph."""

    nodes: frozenset[str] = frozenset()
    edges: frozenset[EdgeKey] = frozenset()


def admitted_routing(
    changes: Sequence[RoutingIncrement], room: GraphQuota
) -> tuple[RoutingIncrement, ...]:
    """The increments of known concepts, and of the first new ones that there is room for.

    What is only taken back makes no concept.
    """
    gained = [change.concept.key for change in changes if change.counters.uses > 0]
    new = dict.fromkeys(key for key in gained if key not in room.known)
    taken = {*room.known, *list(new)[: max(0, room.free)]}
    return tuple(change for change in changes if change.concept.key in taken)


def admitted_content(
    changes: ContentChanges,
    after: Contribution,
    refused: Refused,
    nodes: GraphQuota,
    edges: GraphQuota,
) -> tuple[ContentChanges, Refused]:
    """The increments that are written, and what of `after` stays outside the graph.

    `refused` is what the item's stored contribution had to leave out.
    """
    node_changes, no_nodes = _admitted_nodes(changes.nodes, refused, nodes)
    edge_changes, no_edges = _admitted_edges(changes.edges, no_nodes, refused, edges)
    kept = {concept.key for concept in after.concepts}
    outside = Refused(
        nodes=frozenset(key for key in no_nodes if key in kept),
        edges=frozenset(edge for edge in no_edges if kept.issuperset(edge)),
    )
    return ContentChanges(nodes=node_changes, edges=edge_changes), outside


def _admitted_nodes(
    changes: Sequence[NodeIncrement], refused: Refused, room: GraphQuota
) -> tuple[tuple[NodeIncrement, ...], set[str]]:
    outside, free = set(refused.nodes), room.free
    admitted = []
    for change in changes:
        key = change.concept.key
        if key in outside:
            continue
        if change.mentions > 0 and key not in room.known:
            if free < 1:
                outside.add(key)
                continue
            free -= 1
        admitted.append(change)
    return tuple(admitted), outside


def _admitted_edges(
    changes: Sequence[EdgeIncrement], no_nodes: set[str], refused: Refused, room: GraphQuota
) -> tuple[tuple[EdgeIncrement, ...], set[EdgeKey]]:
    """An edge needs both its nodes: one that was kept out keeps its edges out. Two concepts may
    stay while their edge goes, so an edge is taken off the list when it does."""
    outside, free = set(refused.edges), room.free
    admitted = []
    for change in changes:
        key = (change.source, change.target)
        if key in outside:
            if change.weight < 0:
                outside.discard(key)
            continue
        if change.weight > 0:
            new = key not in room.known
            if not no_nodes.isdisjoint(key) or (new and free < 1):
                outside.add(key)
                continue
            free -= int(new)
        admitted.append(change)
    return tuple(admitted), outside


# Other followed tiers are looked at for near-duplicates only.
CONTENT_TIERS = frozenset({Tier.MEMORY_BANK, Tier.BOOKS})
# Concepts of one item that are linked with each other: 28 edges at most. Concepts come most
# telling first, so the ones left out say the least. Our choice.
MAX_LINKED = 8
# A longer way between two concepts explains nothing to a reader. Our choice.
MAX_PATH_STEPS = 6
# Nodes looked at before a path is given up; keeps a request in the low milliseconds.
MAX_PATH_NODES = 2_000


def contribution_of(item: MemoryItem, expansions: Expansions | None = None) -> Contribution:
    """What `item` adds: nothing unless it is active and of memory_bank or books."""
    if item.status is not Status.ACTIVE or item.tier not in CONTENT_TIERS:
        return Contribution()
    concepts = extract_concepts(
        item.text, tags=item.tags, entities=item.entities, expansions=expansions
    )
    return Contribution(concepts, item.quality.quality_score) if concepts else Contribution()


def content_changes(before: Contribution, after: Contribution, memory_id: str) -> ContentChanges:
    """The increments from `before` to `after`; those from `after` to `before` are the inverse."""
    had = {concept.key: concept for concept in before.concepts}
    has = {concept.key: concept for concept in after.concepts}
    nodes = [
        *(
            NodeIncrement(
                concept=concept, mentions=-1, quality=-before.quality, memory_id=memory_id
            )
            for key, concept in had.items()
            if key not in has
        ),
        *(
            NodeIncrement(
                concept=concept,
                mentions=0 if key in had else 1,
                quality=after.quality - (before.quality if key in had else 0.0),
                memory_id=memory_id,
            )
            for key, concept in has.items()
            if key not in had or before.quality != after.quality
        ),
    ]
    old, new = set(edges_between(before.concepts)), set(edges_between(after.concepts))
    edges = [
        *(EdgeIncrement(source=a, target=b, weight=-1.0) for a, b in sorted(old - new)),
        *(EdgeIncrement(source=a, target=b, weight=1.0) for a, b in sorted(new - old)),
    ]
    return ContentChanges(nodes=tuple(nodes), edges=tuple(edges))


def edges_between(concepts: Iterable[Concept]) -> tuple[tuple[str, str], ...]:
    """(source, target) of every pair of the first concepts; source < target."""
    keys = list(dict.fromkeys(concept.key for concept in concepts))[:MAX_LINKED]
    return tuple(combinations(sorted(keys), 2))


def shortest_path(edges: Sequence[ContentEdge], source: str, target: str) -> list[str]:
    """The nodes of the shortest way, both ends included; empty when there is none.

    Of two ways of one length the one that starts with heavier edges wins, then the smaller id.
    """
    if source == target:
        return [source]
    neighbours = _neighbours(edges)
    came_from: dict[str, str] = {source: source}
    level = [source]
    for _ in range(MAX_PATH_STEPS):
        following: list[str] = []
        for node in level:
            for other in neighbours.get(node, ()):
                if other in came_from:
                    continue
                came_from[other] = node
                if other == target:
                    return _walk_back(came_from, target)
                following.append(other)
        if not following or len(came_from) > MAX_PATH_NODES:
            break
        level = following
    return []


def _neighbours(edges: Sequence[ContentEdge]) -> dict[str, list[str]]:
    """The other ends of each node's edges, heavier edges first, then by id."""
    weighted: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for edge in edges:
        weighted[edge.source].append((-edge.weight, edge.target))
        weighted[edge.target].append((-edge.weight, edge.source))
    return {node: [other for _, other in sorted(ends)] for node, ends in weighted.items()}


def _walk_back(came_from: dict[str, str], target: str) -> list[str]:
    path = [target]
    while came_from[path[-1]] != path[-1]:
        path.append(came_from[path[-1]])
    return path[::-1]
