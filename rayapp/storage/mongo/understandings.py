"""The MongoDB implementation of `UnderstandingStore`: rows of sources, and marks of memories."""

from collections.abc import Sequence
from datetime import datetime

from pymongo import ASCENDING, DESCENDING

from rayapp.core.claims import Queued
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.claims import MongoClaimQueue
from rayapp.storage.mongo.convert import from_document
from rayapp.storage.mongo.database import MongoDatabase, first, listed, updated
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

    async def unmark(self, item: MemoryItem) -> bool:
        as_read = {"point_id": item.point_id, "version": item.version, "status": item.status.value}
        return await updated(self._items, as_read, {"$set": {"understand_at": None}})

    async def find(self, scope: ReadScope, memory_id: str) -> Queued[Understanding] | None:
        where = {**mine(scope), "memory_id": {"$eq": memory_id}}
        return await first(self.rows, where, self.queued)

    async def same(self, scope: ReadScope, source_hash: str) -> Understanding | None:
        where = {**mine(scope), "source_hash": source_hash, "gone": False}
        order = [("said_at", DESCENDING)]
        return await first(self.rows, where, reader(Understanding), sort=order)

    async def mentions(
        self, scope: ReadScope, topics: Sequence[str], since: datetime
    ) -> list[Mention]:
        if not topics:
            return []
        where: Document = {
            **mine(scope),
            "topics": {"$in": list(topics)},
            "said_at": {"$gte": since},
            "gone": False,
        }
        rows = await listed(
            self.rows,
            where,
            reader(Understanding),
            sort=[("said_at", DESCENDING)],
            limit=MOST_MENTIONS,
        )
        return [mention for row in rows for mention in row.mentions]

    async def hear(self, scope: WriteScope, memory_id: str, again: Mention) -> None:
        where = {**own(scope), "memory_id": {"$eq": memory_id}}
        longer = {"$each": [to_row(again)], "$slice": -MOST_HEARD}
        await updated(self.rows, where, {"$push": {"heard": longer}})
