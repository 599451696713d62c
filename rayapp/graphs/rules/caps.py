"""What the caps of one user let into the graphs. Rows that are there already always go on growing.

What a cap keeps out is remembered with the item, so that it is never taken back later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.graphs.records import (
    ContentChanges,
    Contribution,
    EdgeIncrement,
    NodeIncrement,
    RoutingIncrement,
)

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
class Room:
    """Which of the named rows exist, and how many may still be created."""

    known: frozenset[object]
    free: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The part of an item's contribution that never came into the graph."""

    nodes: frozenset[str] = frozenset()
    edges: frozenset[EdgeKey] = frozenset()


def admitted_routing(
    changes: Sequence[RoutingIncrement], room: Room
) -> tuple[RoutingIncrement, ...]:
    """The increments of known concepts, and of the first new ones that there is room for.

    What is only taken back makes no concept.
    """
    gained = [change.concept.key for change in changes if change.counters.uses > 0]
    new = dict.fromkeys(key for key in gained if key not in room.known)
    taken = {*room.known, *list(new)[: max(0, room.free)]}
    return tuple(change for change in changes if change.concept.key in taken)


def admitted_content(
    changes: ContentChanges, after: Contribution, refused: Refused, nodes: Room, edges: Room
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
    changes: Sequence[NodeIncrement], refused: Refused, room: Room
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
    changes: Sequence[EdgeIncrement], no_nodes: set[str], refused: Refused, room: Room
) -> tuple[tuple[EdgeIncrement, ...], set[EdgeKey]]:
    """An edge needs both its nodes: one that was kept out keeps its edges out.

    Two concepts may stay while their edge goes, so an edge is taken off the list when it does.
    """
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
