"""Increments of the graphs as bulk operations. Pure: nothing here reads or talks to a server.

Concept keys, actions and ids are values, never field names; tiers are names of an enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo import DeleteOne, UpdateOne

from rayapp.graphs.records import (
    CO_OCCURS,
    ActionIncrement,
    ContentChanges,
    Counters,
    DocumentIncrement,
    EdgeIncrement,
    Example,
    NodeIncrement,
    OutcomeChanges,
    RoutingIncrement,
    SolutionIncrement,
)
from rayapp.graphs.rules.caps import ALIASES, EDGE_GONE, MEMORY_IDS
from rayapp.learning.rules.graph_effects import MAX_EXAMPLES
from rayapp.storage.mongo.convert import utc
from rayapp.storage.mongo.graph_convert import COUNTERS, example_document
from rayapp.storage.mongo.indexes import ACTIONS, BOOKS, EDGES, NODES, ROUTING, SOLUTIONS

Document = dict[str, Any]
Operation = UpdateOne | DeleteOne
Operations = list[Operation]


def outcome_writes(user_id: str, changes: OutcomeChanges) -> dict[str, Operations]:
    """Collection -> its operations, in order; collections without any are left out."""
    writes: dict[str, Operations] = {
        ROUTING: [op for change in changes.routing for op in _routing(user_id, change)],
        ACTIONS: [op for change in changes.actions for op in _action(user_id, change)],
        SOLUTIONS: [op for change in changes.solutions for op in _solution(user_id, change)],
        BOOKS: [_document(user_id, change) for change in changes.documents],
    }
    return {name: operations for name, operations in writes.items() if operations}


def content_writes(user_id: str, changes: ContentChanges, at: datetime) -> dict[str, Operations]:
    """The same for the content graph; rows that nothing carries any more are removed."""
    utc(at)
    writes: dict[str, Operations] = {
        NODES: [op for change in changes.nodes for op in _node(user_id, change, at)],
        EDGES: [op for change in changes.edges for op in _edge(user_id, change, at)],
    }
    return {name: operations for name, operations in writes.items() if operations}


def _routing(user_id: str, change: RoutingIncrement) -> Operations:
    key = {"user_id": user_id, "concept": change.concept.key}
    if change.counters.uses < 1:
        path = f"tiers.{change.tier.value}"
        return [
            _taken(key, path, change.counters, change.examples),
            UpdateOne({**key, f"{path}.uses": {"$lte": 0}}, {"$unset": {path: ""}}),
            DeleteOne({**key, "tiers": {}}),
        ]
    label = change.concept.label
    update: Document = {
        "$inc": _counted(f"tiers.{change.tier.value}", change.counters),
        "$setOnInsert": {"label": label, "aliases": [label]},
        "$min": {"first_seen_at": utc(change.at)},
        "$max": {"last_seen_at": utc(change.at)},
        **_examples(change.examples),
    }
    # `$addToSet` has no bound: a new spelling is added while the last place is free.
    unseen = {"aliases": {"$ne": label}, f"aliases.{ALIASES - 1}": {"$exists": False}}
    return [
        UpdateOne(key, update, upsert=True),
        UpdateOne({**key, **unseen}, {"$push": {"aliases": label}}),
    ]


def _action(user_id: str, change: ActionIncrement) -> Operations:
    key = {
        "user_id": user_id,
        "context_type": change.context_type,
        "action": change.action,
        "tier": change.tier.value,
    }
    if change.counters.uses < 1:
        taken = _taken(key, "counters", change.counters, change.examples)
        return [taken, DeleteOne({**key, "counters.uses": {"$lte": 0}})]
    update: Document = {
        "$inc": _counted("counters", change.counters),
        "$min": {"first_used_at": utc(change.at)},
        "$max": {"last_used_at": utc(change.at)},
        **_examples(change.examples),
    }
    return [UpdateOne(key, update, upsert=True)]


def _solution(user_id: str, change: SolutionIncrement) -> Operations:
    key = {
        "user_id": user_id,
        "problem_hash": change.problem_hash,
        "memory_id": change.memory_id,
    }
    if change.count < 1:
        enough = {**key, "success_count": {"$gte": -change.count}}
        taken = UpdateOne(enough, {"$inc": {"success_count": change.count}})
        return [taken, DeleteOne({**key, "success_count": {"$lte": 0}})]
    update: Document = {
        "$inc": {"success_count": change.count},
        "$setOnInsert": {"point_id": change.point_id},
        "$max": {"last_used_at": utc(change.at)},
    }
    return [UpdateOne(key, update, upsert=True)]


def _document(user_id: str, change: DocumentIncrement) -> UpdateOne:
    if change.counters.uses < 1:
        key = {"user_id": user_id, "doc_id": change.doc_id}
        return _taken(key, "counters", change.counters)
    update: Document = {
        "$inc": _counted("counters", change.counters),
        "$max": {"last_judged_at": utc(change.at)},
    }
    return UpdateOne({"user_id": user_id, "doc_id": change.doc_id}, update, upsert=True)


def _node(user_id: str, change: NodeIncrement, at: datetime) -> Operations:
    key = {"user_id": user_id, "node_id": change.concept.key}
    update: Document = {
        "$inc": {"mentions": change.mentions, "quality_sum": float(change.quality)},
    }
    if change.mentions > 0:
        update |= {
            "$setOnInsert": {"label": change.concept.label, "type": change.concept.type},
            "$min": {"first_seen_at": at},
            "$max": {"last_seen_at": at},
            "$push": {"memory_ids": {"$each": [change.memory_id], "$slice": -MEMORY_IDS}},
        }
        return [UpdateOne(key, update, upsert=True)]
    if change.mentions == 0:
        return [UpdateOne(key, update)]
    update["$pull"] = {"memory_ids": change.memory_id}
    return [UpdateOne(key, update), DeleteOne({**key, "mentions": {"$lte": 0}})]


def _edge(user_id: str, change: EdgeIncrement, at: datetime) -> Operations:
    key = {
        "user_id": user_id,
        "source": change.source,
        "target": change.target,
        "relation": CO_OCCURS,
    }
    update: Document = {"$inc": {"weight": float(change.weight)}}
    if change.weight > 0:
        update |= {"$min": {"first_seen_at": at}, "$max": {"last_seen_at": at}}
        return [UpdateOne(key, update, upsert=True)]
    return [UpdateOne(key, update), DeleteOne({**key, "weight": {"$lte": EDGE_GONE}})]


def _counted(path: str, counters: Counters) -> Document:
    """`uses` is always named, so that a row never lacks it."""
    counts = {name: getattr(counters, name) for name in COUNTERS}
    return {f"{path}.{name}": n for name, n in counts.items() if n or name == "uses"}


def _taken(
    key: Document, path: str, counters: Counters, examples: Sequence[Example] = ()
) -> UpdateOne:
    """Takes back from a row that has so much: a row that was cleared since has nothing to give."""
    counts = {f"{path}.{name}": getattr(counters, name) for name in COUNTERS}
    enough = {name: {"$gte": -n} for name, n in counts.items() if n}
    update: Document = {"$inc": {f"{path}.uses": counters.uses}}
    update["$inc"] |= {name: n for name, n in counts.items() if n}
    if examples:
        gone = [example_document(example) for example in examples]
        update["$pull"] = {"examples": {"$or": gone}}
    return UpdateOne({**key, f"{path}.uses": {"$gte": 0}, **enough}, update)


def _examples(found: Sequence[Example]) -> Document:
    if not found:
        return {}
    documents = [example_document(example) for example in found]
    order = {"at": 1, "memory_id": -1}
    return {"$push": {"examples": {"$each": documents, "$sort": order, "$slice": -MAX_EXAMPLES}}}
