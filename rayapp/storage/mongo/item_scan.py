"""Reads and repairs over the items of all users, for jobs and maintenance.

No query here names a user. A reindex or a sweep has to see every row, those of users it has never
heard of too, and to know a user first would mean to read every row anyway. So nothing of this
crosses to the API: services that answer people get stores that ask for a scope.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pymongo
from pymongo import ASCENDING, UpdateOne

from rayapp.core.errors import InvalidInput
from rayapp.index.ports import Requeue, RowState
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.convert import PLAIN, from_document, from_plain, readable
from rayapp.storage.mongo.database import (
    COUNT_TIMEOUT_S,
    LONG_TIMEOUT_S,
    Collection,
    MongoDatabase,
    listed,
    readable_first,
)
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.index_queue import queue_synced
from rayapp.storage.mongo.indexes import (
    ACTIVE_ONLY,
    INDEXED,
    ITEMS,
    POINT,
    SYNC_DUE,
    USER_TIER_STATUS,
)
from rayapp.storage.mongo.predicates import later
from rayapp.storage.mongo.rows import utc

Document = dict[str, Any]

STATE: Document = {
    "point_id": 1,
    "status": 1,
    "content_hash": 1,
    "context_prefix": 1,
    "index.sync_state": 1,
    "index.rev": 1,
}
BY_POINT = [("point_id", ASCENDING)]
BY_INDEXED = [("index.indexed_at", ASCENDING), ("point_id", ASCENDING)]
# All three keys are given, so that the server counts index keys and reads no document.
ACTIVE: Document = {
    "user_id": {"$gt": ""},
    "tier": {"$in": [tier.value for tier in Tier]},
    **ACTIVE_ONLY,
}
ACTIVE_FAILED: Document = {"index.sync_state": SyncState.FAILED.value, **ACTIVE_ONLY}
IN_FLIGHT: Document = {
    "index.sync_state": SyncState.PENDING.value,
    "index.claim": {"$ne": None},
    **later("index.next_attempt_at"),
}


class MongoItemScan:
    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._items: Collection = database.collection(ITEMS)
        self._plain: Collection = self._items.with_options(codec_options=PLAIN)

    async def page(
        self, *, after: str | None, until: str | None, limit: int
    ) -> tuple[list[MemoryItem], str | None]:
        if limit < 1:
            raise InvalidInput("A page holds at least one item: ask for a limit of 1 or more.")
        items: list[MemoryItem] = []
        # Again while rows that cannot be read leave a page short: they must not end it.
        while True:
            wanted = limit - len(items)
            docs = await self._rows(after, until, wanted + 1)
            items += readable(docs[:wanted], from_plain)
            if len(docs) <= wanted:
                return items, None
            after = docs[wanted - 1]["point_id"]
            if len(items) == limit:
                return items, after

    async def _rows(self, after: str | None, until: str | None, limit: int) -> list[Document]:
        # One more than the limit, so that the server closes its cursor with the first batch.
        find = {"sort": BY_POINT, "hint": POINT.name, "batch_size": limit + 1, "limit": limit}
        with translated():
            return await self._plain.find(in_range(after, until), **find).to_list()

    async def by_points(self, point_ids: Sequence[str]) -> list[MemoryItem]:
        if not point_ids:
            return []
        where = {"point_id": {"$in": list(point_ids)}}
        return await listed(self._items, where, from_document)

    async def states(self, point_ids: Sequence[str]) -> list[RowState]:
        if not point_ids:
            return []
        where = {"point_id": {"$in": list(point_ids)}}
        return await listed(self._items, where, _state_of, projection=STATE)

    async def existing(self, point_ids: Sequence[str]) -> set[str]:
        if not point_ids:
            return set()
        where, only = {"point_id": {"$in": list(point_ids)}}, {"_id": 0, "point_id": 1}
        with translated():
            docs = await self._items.find(where, only).to_list()
        return {doc["point_id"] for doc in docs}

    async def indexed_since(
        self, since: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[MemoryItem]:
        find = {"sort": BY_INDEXED, "hint": INDEXED.name}
        where = indexed_after(since, after)
        return await readable_first(self._plain, where, from_plain, limit, **find)

    async def total(self) -> int:
        """Two counts: an index over both fields would be written at every change of any item. The
        documents that the second one reads are the few that gave up."""
        await self._database.ping()  # fails fast: an absent server is not waited for
        with translated(), pymongo.timeout(COUNT_TIMEOUT_S):
            active = await self._items.count_documents(ACTIVE, hint=USER_TIER_STATUS.name)
            failed = await self._items.count_documents(ACTIVE_FAILED, hint=SYNC_DUE.name)
        return max(0, active - failed)

    async def in_flight(self) -> int:
        with translated():
            return await self._items.count_documents(IN_FLIGHT, hint=SYNC_DUE.name)

    async def requeue(self, wanted: Sequence[Requeue]) -> int:
        if not wanted:
            return 0
        writes = [
            UpdateOne(
                {
                    "point_id": one.point_id,
                    "index.rev": one.rev,
                    "index.sync_state": SyncState.SYNCED.value,
                },
                [{"$set": queue_synced(one.op)}],
            )
            for one in wanted
        ]
        with translated():
            done = await self._items.bulk_write(writes, ordered=False)
        return done.modified_count

    async def requeue_indexed_since(self, since: datetime) -> int:
        """Pending and failed ones too: the write they wait for may count on an index that is no
        longer in use."""
        await self._database.ping()  # fails fast: an absent server is not waited for
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            done = await self._items.update_many(
                indexed_after(since, None), [{"$set": queue_synced(IndexOp.VECTOR)}]
            )
        return done.modified_count

    async def now(self) -> datetime:
        return await self._database.now()


def _state_of(doc: Document) -> RowState:
    index = doc["index"]
    return RowState(
        doc["point_id"],
        Status(doc["status"]),
        SyncState(index["sync_state"]),
        index["rev"],
        doc["content_hash"],
        doc.get("context_prefix", ""),
    )


def in_range(after: str | None, until: str | None) -> Document:
    bounds: Document = {"$gt": after or ""}
    if until is not None:
        bounds["$lte"] = until
    return {"point_id": bounds}


def indexed_after(since: datetime, after: tuple[datetime, str] | None) -> Document:
    """The index is partial: it answers only a query that says what it keeps."""
    start = utc(since)
    where: Document = {**ACTIVE_ONLY}
    if after is not None:
        at, point_id = utc(after[0]), after[1]
        start = max(since, after[0])
        where["$or"] = [
            {"index.indexed_at": {"$gt": at}},
            {"index.indexed_at": at, "point_id": {"$gt": point_id}},
        ]
    where["index.indexed_at"] = {"$gte": start, "$type": "date"}
    return where
