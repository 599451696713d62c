"""References from the graphs to items: finding the dead ones, a page at a time, and removing them.

Only live items are worth remembering as examples and solutions; reads hydrate from the truth, so a
dead reference wastes a place and shows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from bson.errors import InvalidId
from pymongo import ASCENDING

from rayapp.core.errors import InvalidInput
from rayapp.memory.item import Status
from rayapp.memory.scope import WriteScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import ACTIONS, ITEMS, NODES, ROUTING, SOLUTIONS
from rayapp.storage.mongo.predicates import own

Document = dict[str, Any]
# The order in which a round visits the collections.
REFERRING = (SOLUTIONS, ROUTING, ACTIONS)


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
            solved = await self._of(SOLUTIONS).delete_many({**owner, "point_id": dead})
            forgotten += solved.deleted_count
            for name in (ROUTING, ACTIONS):
                pulled = await self._of(name).update_many(
                    {**owner, "examples.point_id": dead},
                    {"$pull": {"examples": {"point_id": dead}}},
                )
                forgotten += pulled.modified_count
            # Nodes hold memory ids; an item without a row took its own back when it went.
            cursor = self._of(ITEMS).find({**owner, "point_id": dead}, {"memory_id": 1})
            memory_ids = {"$in": [doc["memory_id"] async for doc in cursor]}
            if memory_ids["$in"]:
                nodes = await self._of(NODES).update_many(
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
            living = self._of(ITEMS).find(
                {
                    "point_id": {"$in": [point for _, point in named]},
                    "status": Status.ACTIVE.value,
                },
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
