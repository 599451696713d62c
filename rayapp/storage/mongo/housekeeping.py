"""Rows over all users: sizes, cleanup, and the count of deleted memories."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pymongo
from pymongo import UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import OperationFailure

from rayapp.admin import ports
from rayapp.admin.rules import SESSION_USER
from rayapp.core.errors import InvalidInput
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.portability.rules.collections import KEPT_IN_RESET, Erasing, of_user
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.database import LONG_TIMEOUT_S, MongoDatabase, aggregated
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.predicates import (
    NOT_DELETED,
    UNATTACHED,
    mine,
    naming,
    of_everybody,
    others,
    own,
)

# How many memories a user deleted, per tier: deleted rows go with their points, counts stay.

Document = dict[str, Any]


class Deletions:
    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(indexes.DELETIONS)

    async def add(self, gone: Iterable[Mapping[str, Any]], session: AsyncClientSession) -> None:
        """Count these item rows, in the transaction that deletes them."""
        counts = Counter((row["user_id"], row["tier"]) for row in gone)
        if counts:
            changes = [
                UpdateOne({"user_id": user, "tier": tier}, {"$inc": {"count": count}}, upsert=True)
                for (user, tier), count in sorted(counts.items())
            ]
            await self._rows.bulk_write(changes, session=session)

    async def by_tier(self, scope: ReadScope | None) -> dict[str, int]:
        """Of one user, or of everybody."""
        match: list[Document] = [] if scope is None else [{"$match": mine(scope)}]
        group = {"$group": {"_id": "$tier", "count": {"$sum": "$count"}}}
        rows = await aggregated(self._rows, [*match, group])
        return {row["_id"]: row["count"] for row in rows}


OF_SESSIONS = {"user_id": {"$regex": SESSION_USER}}
# Session users of one answer; the rest is found when these are gone.
MOST_SESSION_USERS = 10_000
NAMESPACE_NOT_FOUND = 26


class MongoHousekeeping:
    """Implements `admin.ports.Housekeeping`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database

    async def sizes(self) -> list[ports.CollectionSize]:
        found = await asyncio.gather(*(self._size(name) for name in sorted(indexes.INDEXES)))
        return [size for size in found if size is not None]

    async def compact(self, collection: str, timeout_s: float) -> ports.Compaction:
        """`force`: without it a primary refuses. Since 4.4 the server goes on reading and writing
        meanwhile, and only waits with what changes the collection itself.
        """
        before = await self._size(_known(collection))
        if before is None:
            return ports.Compaction(collection=collection, before_bytes=0, after_bytes=0)
        error = None
        command = {"compact": collection, "force": True}
        try:
            with translated(passing=OperationFailure), pymongo.timeout(timeout_s):
                await self._database.collection(collection).database.command(command)
        except OperationFailure as refused:
            error = f"the server refused, code {refused.code}"
        after = await self._size(collection) or before
        return ports.Compaction(
            collection=collection,
            before_bytes=before.storage_bytes,
            after_bytes=after.storage_bytes,
            error=error,
        )

    async def aged(self, limit: ports.RetentionLimit, held: Collection[str]) -> dict[str, int]:
        name, where = _aged(limit, held)
        steps: list[Document] = [
            {"$match": where},
            {"$group": {"_id": "$user_id", "rows": {"$sum": 1}}},
            {"$sort": {"_id": 1}},
        ]
        with pymongo.timeout(LONG_TIMEOUT_S):
            rows = await aggregated(self._database.collection(name), steps)
        return {row["_id"]: row["rows"] for row in rows}

    async def session_users(self) -> list[ports.SessionUser]:
        pipeline: list[Document] = [
            {"$match": {**OF_SESSIONS, **NOT_DELETED}},
            {
                "$group": {
                    "_id": "$user_id",
                    "memories": {"$sum": 1},
                    "last_change": {"$max": "$updated_at"},
                }
            },
            {"$sort": {"last_change": 1, "_id": 1}},
            {"$limit": MOST_SESSION_USERS},
        ]
        with pymongo.timeout(LONG_TIMEOUT_S):
            rows = await aggregated(self._database.collection(indexes.ITEMS), pipeline)
        return [ports.SessionUser(user_id=row.pop("_id"), **row) for row in rows]

    async def forget_rows(self, user_id: str) -> int:
        owner = own(WriteScope(user_id))["user_id"]
        rows, remove = of_user(Erasing.ROWS, Erasing.POINTS), self._database.remove
        return sum([await remove(one.name, naming(one, owner)) for one in rows])

    async def remove_points(self, point_ids: Sequence[str]) -> int:
        if not point_ids:
            return 0
        where = {"point_id": {"$in": list(point_ids)}}
        return await self._database.remove(indexes.ITEMS, where)

    async def empty(self, collection: str) -> int:
        if _known(collection) in KEPT_IN_RESET:
            raise InvalidInput(f"{collection} is kept by a reset; name another collection.")
        return await self._database.remove(collection, {})

    async def _size(self, name: str) -> ports.CollectionSize | None:
        try:
            with translated(passing=OperationFailure):
                steps: list[Document] = [{"$collStats": {"storageStats": {}}}]
                cursor = await self._database.collection(name).aggregate(steps)
                rows = await cursor.to_list()
        except OperationFailure as error:
            if error.code == NAMESPACE_NOT_FOUND:
                return None
            with translated():
                raise
        stats = rows[0]["storageStats"]
        return ports.CollectionSize(
            name=name,
            count=int(stats["count"]),
            size_bytes=int(stats["size"]),
            storage_bytes=int(stats["storageSize"]),
            index_bytes=int(stats["totalIndexSize"]),
            free_bytes=int(stats.get("freeStorageSize", 0)),
        )


def _aged(limit: ports.RetentionLimit, held: Collection[str]) -> tuple[str, Document]:
    """The collection of a limit, and what of it is past the limit."""
    if limit.memories is not None:
        return indexes.ITEMS, of_everybody(limit.memories, held)
    whose, before = {"user_id": others(held)}, {"$lt": limit.before, "$type": "date"}
    if limit.kind is ports.RetentionKind.CONVERSATIONS:
        return indexes.SESSIONS, {**whose, "last_at": before}
    return indexes.DOCUMENTS, {**whose, "uploaded_at": before, **UNATTACHED}


def _known(collection: str) -> str:
    if collection not in indexes.INDEXES:
        raise InvalidInput("This is no collection of this service; see /api/system/data-sizes.")
    return collection
