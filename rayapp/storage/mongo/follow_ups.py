"""Items that must be looked at again, kept in `follow_up_at` of the items themselves.

The mark is a date while a follow-up is owed. All comparisons use the server's time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pymongo import ASCENDING

from rayapp.graphs.records import FollowUp
from rayapp.graphs.rules.content import CONTENT_TIERS
from rayapp.memory.item import Status
from rayapp.memory.scope import WriteScope
from rayapp.storage.mongo.convert import from_document, readable, utc
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.graph_convert import contribution_of_document
from rayapp.storage.mongo.indexes import FOLLOW_UP, FOLLOW_UP_ONLY, ITEMS
from rayapp.storage.mongo.predicates import own

Document = dict[str, Any]
IS_DUE: Document = {**FOLLOW_UP_ONLY, "$expr": {"$lte": ["$follow_up_at", "$$NOW"]}}


class FollowUps:
    def __init__(self, database: MongoDatabase) -> None:
        self._items = database.collection(ITEMS)

    async def follow_ups(self, limit: int) -> list[FollowUp]:
        if limit < 1:
            return []
        with translated():
            cursor = self._items.find(
                IS_DUE, sort=[("follow_up_at", ASCENDING)], limit=limit, hint=FOLLOW_UP.name
            )
            docs = await cursor.to_list()
        return readable(docs, _follow_up)

    async def postpone(self, point_id: str, until: datetime) -> None:
        """An item that was settled meanwhile stays settled."""
        with translated():
            await self._items.update_one(
                {"point_id": point_id, **FOLLOW_UP_ONLY}, {"$set": {"follow_up_at": utc(until)}}
            )

    async def ask_follow_up(self, scope: WriteScope, limit: int, *, dry_run: bool) -> int:
        """The items that were looked at longest ago come first: some have no concept to give."""
        if limit < 1:
            return 0
        where: Document = {
            **own(scope),
            "tier": {"$in": sorted(CONTENT_TIERS)},
            "status": Status.ACTIVE.value,
            "contribution": None,
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


def _follow_up(doc: Document) -> FollowUp:
    contributed = contribution_of_document(doc.get("contribution"))[0]
    return FollowUp(item=from_document(doc), contributed=contributed)
