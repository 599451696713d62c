"""Rows of the in-memory graphs and the increments on them, the same as the database makes."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from datetime import datetime

from rayapp.graphs import records
from rayapp.graphs.rules.content import (
    ALIASES,
    EDGE_GONE,
    MEMORY_IDS,
    handed_over,
    happened_to,
    inherited_at,
)
from rayapp.graphs.rules.routing import added
from rayapp.learning.rules.graph_effects import MAX_EXAMPLES
from rayapp.memory.item import MemoryItem
from tests.support.stores.rows import to_ms

Key = tuple[str, ...]


class GraphRows:
    """Every key starts with the user."""

    def __init__(self) -> None:
        self.routing: dict[Key, records.RoutingRow] = {}
        self.nodes: dict[Key, records.ContentNode] = {}
        self.edges: dict[Key, records.ContentEdge] = {}
        self.actions: dict[Key, records.ActionRow] = {}
        self.solutions: dict[Key, records.KnownSolution] = {}
        self.documents: dict[Key, records.DocumentEffect] = {}

    def add_routing(self, user_id: str, change: records.RoutingIncrement) -> None:
        if change.counters.uses < 1:
            self._take_routing(user_id, change)
            return
        key, label, at = (user_id, change.concept.key), change.concept.label, to_ms(change.at)
        row = self.routing.get(key) or records.RoutingRow(
            concept=change.concept.key, label=label, tiers={}, first_seen_at=at, last_seen_at=at
        )
        unseen = label not in row.aliases and len(row.aliases) < ALIASES
        before = row.tiers.get(change.tier, records.Counters())
        self.routing[key] = replace(
            row,
            tiers={**row.tiers, change.tier: added(before, change.counters)},
            first_seen_at=min(row.first_seen_at, at),
            last_seen_at=max(row.last_seen_at, at),
            aliases=(*row.aliases, label) if unseen else row.aliases,
            examples=_newest(row.examples, change.examples),
        )

    def add_action(self, user_id: str, change: records.ActionIncrement) -> None:
        key, at = _action_key(user_id, change), to_ms(change.at)
        if change.counters.uses < 1:
            self._take_action(key, change)
            return
        row = self.actions.get(key) or records.ActionRow(
            context_type=change.context_type,
            action=change.action,
            tier=change.tier,
            counters=records.Counters(),
            first_used_at=at,
            last_used_at=at,
        )
        self.actions[key] = replace(
            row,
            counters=added(row.counters, change.counters),
            first_used_at=min(row.first_used_at, at),
            last_used_at=max(row.last_used_at, at),
            examples=_newest(row.examples, change.examples),
        )

    def add_solution(self, user_id: str, change: records.SolutionIncrement) -> None:
        key, at = (user_id, change.problem_hash, change.memory_id), to_ms(change.at)
        if change.count < 1 and not _solved_often(self.solutions.get(key), -change.count):
            return
        row = self.solutions.get(key) or records.KnownSolution(
            problem_hash=change.problem_hash,
            memory_id=change.memory_id,
            point_id=change.point_id,
            success_count=0,
            last_used_at=at,
        )
        self.solutions[key] = replace(
            row,
            success_count=row.success_count + change.count,
            last_used_at=max(row.last_used_at, at),
        )
        if self.solutions[key].success_count <= 0:
            del self.solutions[key]

    def add_document(self, user_id: str, change: records.DocumentIncrement) -> None:
        key = (user_id, change.doc_id)
        if change.counters.uses < 1 and not (
            key in self.documents and _has(self.documents[key].counters, change.counters)
        ):
            return
        row = self.documents.get(key) or records.DocumentEffect(
            doc_id=change.doc_id, counters=records.Counters()
        )
        self.documents[key] = replace(row, counters=added(row.counters, change.counters))

    def _take_routing(self, user_id: str, change: records.RoutingIncrement) -> None:
        key = (user_id, change.concept.key)
        row = self.routing.get(key)
        before = row.tiers.get(change.tier) if row else None
        if row is None or before is None or not _has(before, change.counters):
            return
        tiers = {**row.tiers, change.tier: added(before, change.counters)}
        tiers = {tier: counters for tier, counters in tiers.items() if counters.uses > 0}
        self.routing[key] = replace(row, tiers=tiers, examples=_left(row.examples, change.examples))
        if not tiers:
            del self.routing[key]

    def _take_action(self, key: Key, change: records.ActionIncrement) -> None:
        row = self.actions.get(key)
        if row is None or not _has(row.counters, change.counters):
            return
        counters = added(row.counters, change.counters)
        self.actions[key] = replace(
            row, counters=counters, examples=_left(row.examples, change.examples)
        )
        if counters.uses <= 0:
            del self.actions[key]

    def add_node(self, user_id: str, change: records.NodeIncrement, at: datetime) -> None:
        key, row = (user_id, change.concept.key), self.nodes.get((user_id, change.concept.key))
        if row is None:
            if change.mentions < 1:
                return
            row = records.ContentNode(
                node_id=change.concept.key,
                label=change.concept.label,
                type=change.concept.type,
                mentions=0,
                quality_sum=0.0,
                first_seen_at=at,
                last_seen_at=at,
            )
        row = replace(
            row,
            mentions=row.mentions + change.mentions,
            quality_sum=row.quality_sum + change.quality,
        )
        if change.mentions > 0:
            row = replace(
                row,
                first_seen_at=min(row.first_seen_at, at),
                last_seen_at=max(row.last_seen_at, at),
                memory_ids=(change.memory_id, *row.memory_ids)[:MEMORY_IDS],
            )
        elif change.mentions < 0:
            row = replace(row, memory_ids=_without(row.memory_ids, {change.memory_id}))
        self.nodes[key] = row
        if row.mentions <= 0:
            self._remove_node(user_id, row.node_id)

    def add_edge(self, user_id: str, change: records.EdgeIncrement, at: datetime) -> None:
        key = (user_id, change.source, change.target)
        row = self.edges.get(key)
        if row is None:
            if change.weight <= 0:
                return
            row = records.ContentEdge(
                source=change.source,
                target=change.target,
                weight=0.0,
                first_seen_at=at,
                last_seen_at=at,
            )
        row = replace(row, weight=row.weight + change.weight)
        if change.weight > 0:
            first, last = min(row.first_seen_at, at), max(row.last_seen_at, at)
            row = replace(row, first_seen_at=first, last_seen_at=last)
        self.edges[key] = row
        if row.weight <= EDGE_GONE:
            del self.edges[key]

    def _remove_node(self, user_id: str, node_id: str) -> None:
        """A node goes with the last memory that carries it, and takes its edges along."""
        del self.nodes[user_id, node_id]
        for key, edge in list(self.edges.items()):
            if key[0] == user_id and node_id in (edge.source, edge.target):
                del self.edges[key]

    def forget(self, user_id: str, point_ids: set[str], memory_ids: set[str]) -> int:
        """How many rows named one of them."""
        forgotten = 0
        for key, solution in list(self.solutions.items()):
            if key[0] == user_id and solution.point_id in point_ids:
                del self.solutions[key]
                forgotten += 1
        for rows in (self.routing, self.actions):
            for key, row in rows.items():
                kept = tuple(one for one in row.examples if one.point_id not in point_ids)
                if key[0] == user_id and kept != row.examples:
                    rows[key] = replace(row, examples=kept)  # type: ignore[assignment]
                    forgotten += 1
        for key, node in self.nodes.items():
            names = _without(node.memory_ids, memory_ids)
            if key[0] == user_id and names != node.memory_ids:
                self.nodes[key] = replace(node, memory_ids=names)
                forgotten += 1
        return forgotten

    def hand_over(self, loser: MemoryItem, winner: MemoryItem) -> None:
        """What is remembered of `loser` is of `winner`, into which it was merged."""
        for key, row in list(self.solutions.items()):
            if _is_of(loser, key, row.point_id, row.last_used_at):
                del self.solutions[key]
                change = records.SolutionIncrement(
                    problem_hash=row.problem_hash,
                    memory_id=winner.memory_id,
                    point_id=winner.point_id,
                    at=inherited_at(winner, row.last_used_at),
                    count=row.success_count,
                )
                self.add_solution(winner.user_id, change)
        for rows in (self.routing, self.actions):
            for key, judged in rows.items():
                examples = tuple(
                    handed_over(one, winner) if _is_of(loser, key, one.point_id, one.at) else one
                    for one in judged.examples
                )
                rows[key] = replace(judged, examples=examples)  # type: ignore[assignment]

    def named(self) -> list[tuple[str, str]]:
        """(user_id, point_id) of every example and known solution."""
        pairs = [(key[0], row.point_id) for key, row in self.solutions.items()]
        for key, routing in self.routing.items():
            pairs += [(key[0], example.point_id) for example in routing.examples]
        for key, action in self.actions.items():
            pairs += [(key[0], example.point_id) for example in action.examples]
        return list(dict.fromkeys(pairs))


def _action_key(user_id: str, one: records.ActionIncrement) -> Key:
    return (user_id, one.context_type, one.action, one.tier or "")


def _newest(
    stored: Sequence[records.Example], new: Sequence[records.Example]
) -> tuple[records.Example, ...]:
    """The newest few, newest first."""
    found = [*stored, *(replace(example, at=to_ms(example.at)) for example in new)]
    found.sort(key=lambda example: example.memory_id)
    found.sort(key=lambda example: example.at, reverse=True)
    return tuple(found[:MAX_EXAMPLES])


def _left(
    stored: Sequence[records.Example], gone: Sequence[records.Example]
) -> tuple[records.Example, ...]:
    """A winner of a merge may have changed its tier since it was handed over."""
    taken = {(one.point_id, one.outcome, to_ms(one.at)) for one in gone}
    return tuple(one for one in stored if (one.point_id, one.outcome, one.at) not in taken)


def _has(stored: records.Counters, taken: records.Counters) -> bool:
    """Whether a row has so much to give: one that was cleared since has not."""
    return all(count >= 0 for count in astuple(added(stored, taken)))


def _solved_often(stored: records.KnownSolution | None, count: int) -> bool:
    return stored is not None and stored.success_count >= count


def _is_of(item: MemoryItem, key: Key, point_id: str, at: datetime) -> bool:
    """Whether a row under `key` remembers `item` itself, not a deleted memory with its id."""
    return (key[0], point_id) == (item.user_id, item.point_id) and happened_to(item, at)


def _without(memory_ids: Sequence[str], gone: set[str]) -> tuple[str, ...]:
    return tuple(memory_id for memory_id in memory_ids if memory_id not in gone)
