"""The MongoDB implementation of `UnderstandingStore`: rows of sources, and marks of memories."""

from collections.abc import Sequence
from datetime import datetime

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError

from rayapp.core.claims import Queued, WorkState
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.claims import MongoClaimQueue
from rayapp.storage.mongo.convert import from_document
from rayapp.storage.mongo.database import MongoDatabase, first, listed, updated
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.predicates import due, in_seconds, mine, own
from rayapp.storage.mongo.rows import Document, may_lack, reader, to_row
from rayapp.understanding.records import MOST_HEARD, MOST_MENTIONS, Mention, Understanding

IS_MARKED: Document = {"understand_at": indexes.IS_DATE}
may_lack(Understanding)


class MongoUnderstandingStore(MongoClaimQueue[Understanding]):
    """Implements `understanding.ports.UnderstandingStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        rows = database.collection(indexes.UNDERSTANDINGS)
        super().__init__(rows, Understanding, ("user_id", "memory_id"))
        self._items = database.collection(indexes.ITEMS)

    async def marked(self, limit: int, settle_s: float) -> list[MemoryItem]:
        how = {"sort": [("understand_at", ASCENDING)], "hint": indexes.UNDERSTAND.name}
        ripe = {"$expr": {"$lte": ["$understand_at", in_seconds(-settle_s)]}}
        oldest = await first(self._items, {**IS_MARKED, **ripe}, dict, projection={"_id": 1}, **how)
        if oldest is None:
            return []
        where = {**IS_MARKED, **due("understand_at")}
        return await listed(self._items, where, from_document, limit=limit, **how)

    async def unmark(self, items: Sequence[MemoryItem]) -> int:
        as_read = [
            {"point_id": item.point_id, "version": item.version, "status": item.status.value}
            for item in items
        ]
        if not as_read:
            return 0
        with translated():
            done = await self._items.update_many(
                {"$or": as_read}, {"$set": {"understand_at": None}}
            )
        return done.matched_count

    async def find(self, scope: ReadScope, memory_id: str) -> Queued[Understanding] | None:
        where = {**mine(scope), "memory_id": {"$eq": memory_id}}
        return await first(self.rows, where, self.queued)

    async def rows_of(self, items: Sequence[MemoryItem]) -> list[Understanding]:
        if not items:
            return []
        ids: dict[str, list[str]] = {}
        for item in items:
            ids.setdefault(item.user_id, []).append(item.memory_id)
        where = {
            "$or": [{"user_id": user, "memory_id": {"$in": found}} for user, found in ids.items()]
        }
        return await listed(self.rows, where, reader(Understanding))

    async def same(self, scope: ReadScope, source_hash: str) -> Understanding | None:
        where = {**mine(scope), "source_hash": source_hash, "gone": False}
        order = [("said_at", DESCENDING)]
        return await first(self.rows, where, reader(Understanding), sort=order)

    async def speaking_of(
        self, scope: ReadScope, topics: Sequence[str], since: datetime
    ) -> list[Understanding]:
        if not topics:
            return []
        where: Document = {
            **mine(scope),
            "topics": {"$in": list(topics)},
            "said_at": {"$gte": since},
            "gone": False,
        }
        return await listed(
            self.rows,
            where,
            reader(Understanding),
            sort=[("said_at", DESCENDING)],
            limit=MOST_MENTIONS,
        )

    async def hear(self, scope: WriteScope, memory_id: str, again: Mention) -> None:
        where = {**own(scope), "memory_id": {"$eq": memory_id}}
        longer = {"$each": [to_row(again)], "$slice": -MOST_HEARD}
        await updated(self.rows, where, {"$push": {"heard": longer}})

    async def settle(self, row: Understanding) -> bool:
        where = {"user_id": row.user_id, "memory_id": {"$eq": row.memory_id}}
        older = {**where, "version": {"$lte": row.version}}
        work = {"state": WorkState.DONE.value, "owner": None, "due_at": None, "error": None}
        change: list[Document] = [
            {"$set": {name: {"$literal": value} for name, value in to_row(row).items()}},
            {
                "$set": {
                    **{f"work.{name}": value for name, value in work.items()},
                    "work.fence": {"$add": [{"$ifNull": ["$work.fence", 0]}, 1]},
                    "work.tries": {"$ifNull": ["$work.tries", 0]},
                    "work.priority": {"$ifNull": ["$work.priority", 0]},
                }
            },
        ]
        with translated():
            try:
                await self.rows.update_one(older, change, upsert=True)
            except DuplicateKeyError:
                await self.offer_again(where)
                return False
        return True

    async def users_after(self, user_id: str, limit: int) -> list[str]:
        found: list[str] = []
        order = [("user_id", ASCENDING), ("memory_id", ASCENDING)]
        while len(found) < limit:
            above = {"user_id": {"$gt": found[-1] if found else user_id}}
            one = await first(self._items, above, dict, projection={"user_id": 1}, sort=order)
            if one is None:
                break
            found.append(one["user_id"])
        return found

    async def memories_after(
        self, scope: ReadScope, memory_id: str, limit: int
    ) -> list[MemoryItem]:
        where = {**mine(scope), "memory_id": {"$gt": memory_id}, "status": Status.ACTIVE.value}
        order = [("memory_id", ASCENDING)]
        return await listed(self._items, where, from_document, sort=order, limit=limit)

    async def stored(self, scope: ReadScope) -> int:
        with translated():
            return await self._items.count_documents({**mine(scope), "status": Status.ACTIVE.value})
