"""The content graph's rules: what an item adds, what a change of it adds and takes back, paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

from rayapp.graphs.records import (
    ContentChanges,
    ContentEdge,
    Contribution,
    EdgeIncrement,
    NodeIncrement,
)
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.tiers import Tier
from rayapp.text.concepts import Concept, extract_concepts
from rayapp.text.expansions import Expansions

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
