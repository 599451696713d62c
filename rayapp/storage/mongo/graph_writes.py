"""Writes about graphs in other transactions: increments, merges, references, follow-ups."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId
from bson.errors import InvalidId
from pymongo import ASCENDING, DeleteOne, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.core.errors import InvalidInput
from rayapp.graphs import records
from rayapp.graphs.rules import content
from rayapp.learning.rules.graph_effects import MAX_EXAMPLES
from rayapp.memory.item import MemoryItem, Outcome, Status
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import GARBAGE_SCORE
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.convert import from_document
from rayapp.storage.mongo.database import MongoDatabase, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.graph_convert import COUNTERS, contribution_of_document
from rayapp.storage.mongo.predicates import UNATTACHED, due, own
from rayapp.storage.mongo.rows import to_row, utc

# What the graphs remember of a memory goes to the one it was merged into, in that transaction.

Document = dict[str, Any]


class GraphMerges:
    def __init__(self, database: MongoDatabase) -> None:
        self._of = database.collection

    async def hand_over(
        self, loser: MemoryItem, winner: MemoryItem, session: AsyncClientSession
    ) -> None:
        """Examples and known solutions of `loser` name `winner`.

        What a deleted memory with the loser's id left behind stays where it is.
        """
        owner = own(WriteScope(loser.user_id))
        since = {"$gte": loser.stored_at - content.CLOCK_SKEW}
        await self._solutions(
            {**owner, "point_id": loser.point_id, "last_used_at": since}, winner, session
        )
        named = {
            "point_id": winner.point_id,
            "memory_id": winner.memory_id,
            "tier": winner.tier.value,
        }
        update: Document = {
            "$set": {f"examples.$[one].{field}": value for field, value in named.items()},
            # The same as `inherited_at`.
            "$max": {"examples.$[one].at": winner.stored_at},
        }
        for name in (indexes.ROUTING, indexes.ACTIONS):
            await self._of(name).update_many(
                {**owner, "examples.point_id": loser.point_id},
                update,
                array_filters=[{"one.point_id": loser.point_id, "one.at": since}],
                session=session,
            )

    async def _solutions(
        self, of_loser: Document, winner: MemoryItem, session: AsyncClientSession
    ) -> None:
        """A problem that both solved has one row afterwards, with the successes of both."""
        writes: list[UpdateOne | DeleteOne] = []
        async for row in self._of(indexes.SOLUTIONS).find(of_loser, session=session):
            key = {"user_id": row["user_id"], "problem_hash": row["problem_hash"]}
            writes += [
                DeleteOne({"user_id": row["user_id"], "_id": row["_id"]}),
                UpdateOne(
                    {**key, "memory_id": winner.memory_id},
                    {
                        "$inc": {"success_count": row["success_count"]},
                        "$setOnInsert": {"point_id": winner.point_id},
                        "$max": {"last_used_at": content.inherited_at(winner, row["last_used_at"])},
                    },
                    upsert=True,
                ),
            ]
        if writes:
            await self._of(indexes.SOLUTIONS).bulk_write(writes, session=session)


# References from the graphs to items: finding the dead ones, a page at a time, and removing them.
#
# Only live items are worth remembering as examples and solutions, and failures that were archived
# for it, which are still warned of; reads hydrate from the truth, so any other reference wastes a
# place and shows nothing.

# The order in which a round visits the collections.
REFERRING = (indexes.SOLUTIONS, indexes.ROUTING, indexes.ACTIONS)


# `buried` of the promotion rules, as a condition.
BURIED: Document = {
    "status": Status.ARCHIVED.value,
    "merged_into": None,
    "stats.last_outcome": Outcome.FAILED.value,
    "stats.score": {"$lt": GARBAGE_SCORE},
}
REMEMBERED: Document = {"$or": [{"status": Status.ACTIVE.value}, BURIED]}


class GraphReferences:
    def __init__(self, database: MongoDatabase) -> None:
        self._of = database.collection

    async def forget(self, scope: WriteScope, point_ids: Sequence[str]) -> int:
        """How many rows named one of them."""
        owner, dead = own(scope), {"$in": list(point_ids)}
        if not point_ids:
            return 0
        forgotten = 0
        with translated():
            solved = await self._of(indexes.SOLUTIONS).delete_many({**owner, "point_id": dead})
            forgotten += solved.deleted_count
            for name in (indexes.ROUTING, indexes.ACTIONS):
                pulled = await self._of(name).update_many(
                    {**owner, "examples.point_id": dead},
                    {"$pull": {"examples": {"point_id": dead}}},
                )
                forgotten += pulled.modified_count
            # Nodes hold memory ids; an item without a row took its own back when it went.
            cursor = self._of(indexes.ITEMS).find({**owner, "point_id": dead}, {"memory_id": 1})
            memory_ids = {"$in": [doc["memory_id"] async for doc in cursor]}
            if memory_ids["$in"]:
                nodes = await self._of(indexes.NODES).update_many(
                    {**owner, "memory_ids": memory_ids}, {"$pull": {"memory_ids": memory_ids}}
                )
                forgotten += nodes.modified_count
        return forgotten

    async def dead_references(
        self, limit: int, after: str | None
    ) -> tuple[list[tuple[str, str]], str | None]:
        """`limit` rows are looked at, in the order of their ids, one collection after another."""
        if limit < 1:
            return [], after
        name, last = _position(after)
        where: Document = {"_id": {"$gt": last}} if last is not None else {}
        fields = {"user_id": 1, "point_id": 1, "examples.point_id": 1}
        with translated():
            cursor = self._of(name).find(where, fields, sort=[("_id", ASCENDING)], limit=limit)
            docs = await cursor.to_list()
            named = list(dict.fromkeys(pair for doc in docs for pair in _named(doc)))
            living = self._of(indexes.ITEMS).find(
                {"point_id": {"$in": [point for _, point in named]}, **REMEMBERED},
                {"_id": 0, "user_id": 1, "point_id": 1},
            )
            alive = {(doc["user_id"], doc["point_id"]) async for doc in living}
        dead = [pair for pair in named if pair not in alive]
        if len(docs) == limit:
            return dead, f"{name}:{docs[-1]['_id']}"
        following = REFERRING.index(name) + 1
        return dead, f"{REFERRING[following]}:" if following < len(REFERRING) else None


def _named(doc: Document) -> list[tuple[str, str]]:
    points = [example["point_id"] for example in doc.get("examples", ())]
    if "point_id" in doc:
        points.append(doc["point_id"])
    return [(doc["user_id"], point) for point in points]


def _position(after: str | None) -> tuple[str, ObjectId | None]:
    if after is None:
        return REFERRING[0], None
    name, _, last = after.partition(":")
    try:
        if name in REFERRING:
            return name, ObjectId(last) if last else None
    except InvalidId:
        pass
    raise InvalidInput("The position in the graphs cannot be read: start again without one.")


# Items that must be looked at again, kept in `follow_up_at` of the items themselves.
#
# The mark is a date while a follow-up is owed. All comparisons use the server's time.

IS_DUE: Document = {**indexes.FOLLOW_UP_ONLY, **due("follow_up_at")}


class FollowUps:
    def __init__(self, database: MongoDatabase) -> None:
        self._items = database.collection(indexes.ITEMS)

    async def follow_ups(self, limit: int) -> list[records.FollowUp]:
        how = {"sort": [("follow_up_at", ASCENDING)], "hint": indexes.FOLLOW_UP.name}
        return await listed(self._items, IS_DUE, _follow_up, limit=limit, **how)

    async def postpone(self, point_id: str, until: datetime) -> None:
        """An item that was settled meanwhile stays settled."""
        with translated():
            await self._items.update_one(
                {"point_id": point_id, **indexes.FOLLOW_UP_ONLY},
                {"$set": {"follow_up_at": utc(until)}},
            )

    async def ask_follow_up(self, scope: WriteScope, limit: int, *, dry_run: bool) -> int:
        """The items that were looked at longest ago come first: some have no concept to give."""
        if limit < 1:
            return 0
        where: Document = {
            **own(scope),
            "tier": {"$in": sorted(content.CONTENT_TIERS)},
            "status": Status.ACTIVE.value,
            "contribution": None,
            **UNATTACHED,
        }
        with translated():
            if dry_run:
                return await self._items.count_documents(where, limit=limit)
            order = [("followed_at", ASCENDING), ("_id", ASCENDING)]
            cursor = self._items.find(where, {"_id": 1}, sort=order, limit=limit)
            chosen = [doc["_id"] async for doc in cursor]
            done = await self._items.update_many(
                {**where, "_id": {"$in": chosen}}, [{"$set": {"follow_up_at": "$$NOW"}}]
            )
        return done.matched_count


def _follow_up(doc: Document) -> records.FollowUp:
    contributed = contribution_of_document(doc.get("contribution"))[0]
    return records.FollowUp(item=from_document(doc), contributed=contributed)


Operation = UpdateOne | DeleteOne
Operations = list[Operation]


def outcome_writes(user_id: str, changes: records.OutcomeChanges) -> dict[str, Operations]:
    """Collection -> its operations, in order; collections without any are left out."""
    writes: dict[str, Operations] = {
        indexes.ROUTING: [op for change in changes.routing for op in _routing(user_id, change)],
        indexes.ACTIONS: [op for change in changes.actions for op in _action(user_id, change)],
        indexes.SOLUTIONS: [
            op for change in changes.solutions for op in _solution(user_id, change)
        ],
        indexes.BOOKS: [_document(user_id, change) for change in changes.documents],
    }
    return {name: operations for name, operations in writes.items() if operations}


def content_writes(
    user_id: str, changes: records.ContentChanges, at: datetime
) -> dict[str, Operations]:
    """The same for the content graph; rows that nothing carries any more are removed."""
    utc(at)
    writes: dict[str, Operations] = {
        indexes.NODES: [op for change in changes.nodes for op in _node(user_id, change, at)],
        indexes.EDGES: [op for change in changes.edges for op in _edge(user_id, change, at)],
    }
    return {name: operations for name, operations in writes.items() if operations}


def _routing(user_id: str, change: records.RoutingIncrement) -> Operations:
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
    unseen = {"aliases": {"$ne": label}, f"aliases.{content.ALIASES - 1}": {"$exists": False}}
    return [
        UpdateOne(key, update, upsert=True),
        UpdateOne({**key, **unseen}, {"$push": {"aliases": label}}),
    ]


def _action(user_id: str, change: records.ActionIncrement) -> Operations:
    key = {
        "user_id": user_id,
        "context_type": change.context_type,
        "action": change.action,
        "tier": None if change.tier is None else change.tier.value,
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


def _solution(user_id: str, change: records.SolutionIncrement) -> Operations:
    key = {"user_id": user_id, "problem_hash": change.problem_hash, "memory_id": change.memory_id}
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


def _document(user_id: str, change: records.DocumentIncrement) -> UpdateOne:
    if change.counters.uses < 1:
        key = {"user_id": user_id, "doc_id": change.doc_id}
        return _taken(key, "counters", change.counters)
    update: Document = {
        "$inc": _counted("counters", change.counters),
        "$max": {"last_judged_at": utc(change.at)},
    }
    return UpdateOne({"user_id": user_id, "doc_id": change.doc_id}, update, upsert=True)


def _node(user_id: str, change: records.NodeIncrement, at: datetime) -> Operations:
    key = {"user_id": user_id, "node_id": change.concept.key}
    update: Document = {"$inc": {"mentions": change.mentions, "quality_sum": float(change.quality)}}
    if change.mentions > 0:
        update |= {
            "$setOnInsert": {"label": change.concept.label, "type": change.concept.type},
            "$min": {"first_seen_at": at},
            "$max": {"last_seen_at": at},
            "$push": {"memory_ids": {"$each": [change.memory_id], "$slice": -content.MEMORY_IDS}},
        }
        return [UpdateOne(key, update, upsert=True)]
    if change.mentions == 0:
        return [UpdateOne(key, update)]
    update["$pull"] = {"memory_ids": change.memory_id}
    return [UpdateOne(key, update), DeleteOne({**key, "mentions": {"$lte": 0}})]


def _edge(user_id: str, change: records.EdgeIncrement, at: datetime) -> Operations:
    key = {
        "user_id": user_id,
        "source": change.source,
        "target": change.target,
        "relation": records.CO_OCCURS,
    }
    update: Document = {"$inc": {"weight": float(change.weight)}}
    if change.weight > 0:
        update |= {"$min": {"first_seen_at": at}, "$max": {"last_seen_at": at}}
        return [UpdateOne(key, update, upsert=True)]
    return [UpdateOne(key, update), DeleteOne({**key, "weight": {"$lte": content.EDGE_GONE}})]


def _counted(path: str, counters: records.Counters) -> Document:
    """`uses` is always named, so that a row never lacks it."""
    counts = {name: getattr(counters, name) for name in COUNTERS}
    return {f"{path}.{name}": n for name, n in counts.items() if n or name == "uses"}


def _taken(
    key: Document, path: str, counters: records.Counters, examples: Sequence[records.Example] = ()
) -> UpdateOne:
    """Takes back from a row that has so much: a row that was cleared since has nothing to give."""
    counts = {f"{path}.{name}": getattr(counters, name) for name in COUNTERS}
    enough = {name: {"$gte": -n} for name, n in counts.items() if n}
    update: Document = {"$inc": {f"{path}.uses": counters.uses}}
    update["$inc"] |= {name: n for name, n in counts.items() if n}
    if examples:
        # A winner of a merge may have changed its tier since it was handed over.
        gone = [to_row(example) for example in examples]
        gone = [{name: one[name] for name in one if name != "tier"} for one in gone]
        update["$pull"] = {"examples": {"$or": gone}}
    return UpdateOne({**key, f"{path}.uses": {"$gte": 0}, **enough}, update)


def _examples(found: Sequence[records.Example]) -> Document:
    if not found:
        return {}
    documents = [to_row(example) for example in found]
    order = {"at": 1, "memory_id": -1}
    return {"$push": {"examples": {"$each": documents, "$sort": order, "$slice": -MAX_EXAMPLES}}}
