"""The work queue of the indexer, kept in the `index` field of the items themselves.

A pending item is due from `index.next_attempt_at`. Claiming it moves that time to the end of the
claim, so one index finds new, backed-off and abandoned items alike. All times are the server's.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pymongo
from pymongo import DeleteOne, UpdateOne

from rayapp.core.vectors import IndexSchema
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.ports import IndexBacklog, IndexResult
from rayapp.memory.scope import WriteScope
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.convert import from_document, readable
from rayapp.storage.mongo.database import (
    COUNT_TIMEOUT_S,
    LONG_TIMEOUT_S,
    MongoDatabase,
    aggregated,
    readable_first,
)
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.predicates import due, in_seconds, later, own
from rayapp.storage.mongo.rows import utc

Document = dict[str, Any]

RELEASED: Document = {"index.claim": None, "index.next_attempt_at": "$$NOW"}
_ALREADY = {"$eq": ["$index.sync_state", SyncState.PENDING.value]}
_DELETED = {"$eq": ["$index.op", IndexOp.DELETE.value]}


def queue_again() -> Document:
    """The `$set` stage of an item that becomes due with the op it has: next rev, no claim, no
    back-off. An item that waits already goes on waiting since the same moment."""
    return {
        "index.rev": {"$add": ["$index.rev", 1]},
        "index.sync_state": SyncState.PENDING.value,
        "index.pending_since": {"$cond": [_ALREADY, "$index.pending_since", "$$NOW"]},
        "index.attempts": 0,
        "index.last_error": None,
        **RELEASED,
    }


def queue_synced(op: IndexOp) -> Document:
    """`queue_again` of a synced item, for `op`; the point of a deleted one must be made anew."""
    if op is not IndexOp.PAYLOAD:
        return {**queue_again(), "index.op": op.value}
    whole, some = IndexOp.VECTOR.value, IndexOp.PAYLOAD.value
    return {**queue_again(), "index.op": {"$cond": [_DELETED, whole, some]}}


_ACTIVE = {"$eq": ["$status", Status.ACTIVE.value]}
# The engine refuses a write below the rev that it holds, which may be of any later moment than the
# backup. No item changes a thousand times in a second: milliseconds are above all of its revs.
_ABOVE_ALL = {"$max": [{"$add": ["$index.rev", 1]}, {"$toLong": "$$NOW"}]}
RESTORED: Document = {
    **queue_again(),
    "index.op": {"$cond": [_ACTIVE, IndexOp.VECTOR.value, IndexOp.DELETE.value]},
    "index.rev": _ABOVE_ALL,
}

# Users served by one claim before the rest of the batch goes to the oldest items. Each costs two
# index seeks; the next claim continues after the last of them.
USERS_PER_CLAIM = 32

# Of what is in order the rest is told by the size of the collection, which is known without reading
# a million keys every ten seconds; after a crash it may be wrong by what was written last.
MOST_COUNTED = 20_000

IS_PENDING = indexes.PENDING_ONLY
IS_FAILED = {"index.sync_state": SyncState.FAILED.value}
IS_DUE = due("index.next_attempt_at")
IS_LATER = later("index.next_attempt_at")


class IndexQueue:
    """Claims, results and counts of items that wait for the index."""

    def __init__(self, database: MongoDatabase) -> None:
        self._items = database.collection(indexes.ITEMS)
        self._changes = MongoChangeLog(database)
        self._ping = database.ping
        self._last_user = ""

    async def claim(self, *, token: str, limit: int, claim_s: float) -> list[MemoryItem]:
        """Take due items: a share per waiting user, newest and oldest, then the oldest of all."""
        if limit < 1:
            return []
        with translated():
            # Asked ten times a second of an idle store: one look at an index, not three.
            if (
                await self._items.find_one(IS_PENDING, {"_id": 1}, hint=indexes.SYNC_DUE.name)
                is None
            ):
                return []
            chosen = await self._shares(limit)
            if len(chosen) < limit:
                chosen += await self._oldest(limit - len(chosen), chosen)
            if not chosen:
                return []
            ends = in_seconds(claim_s)
            await self._items.update_many(
                {"_id": {"$in": chosen}, **IS_PENDING, **IS_DUE},
                [{"$set": {"index.claim": token, "index.next_attempt_at": ends}}],
            )
            docs = await self._items.find({"_id": {"$in": chosen}, "index.claim": token}).to_list()
        by_id = {doc["_id"]: doc for doc in docs}
        return readable([by_id[_id] for _id in chosen if _id in by_id], from_document)

    async def finish(self, token: str, results: Sequence[IndexResult], schema: IndexSchema) -> int:
        """Write results back under (point_id, rev, claim); items changed meanwhile become due."""
        if not results:
            return 0
        writes: list[UpdateOne | DeleteOne] = []
        for result in results:
            writes += _finish_writes(token, result, schema)
        points = [result.point_id for result in results]
        with translated():
            async with self._changes.around((one.user_id, one.point_id) for one in results):
                done = await self._items.bulk_write(writes, ordered=False)
            if done.matched_count + done.deleted_count < len(results):
                # What still carries the claim has another rev: it changed while it was indexed.
                await self._items.update_many(
                    {"point_id": {"$in": points}, "index.claim": token, **IS_PENDING},
                    [{"$set": RELEASED}],
                )
        return done.matched_count + done.deleted_count

    async def mark_all_pending(self) -> int:
        """Queue a vector write of every active item; returns how many."""
        change = {"index.op": IndexOp.VECTOR.value, **queue_again()}
        await self._ping()  # fails fast: within the long limit, an absent server is waited for
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            unfailed = {"index.sync_state": {"$ne": SyncState.FAILED.value}}
            done = await self._items.update_many(
                {**indexes.ACTIVE_ONLY, **unfailed}, [{"$set": change}]
            )
        return done.modified_count

    async def mark_restored(self) -> int:
        """One statement for items of every status, and those that gave up: what was to fail may
        have been indexed since."""
        await self._ping()
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            done = await self._items.update_many({}, [{"$set": RESTORED}])
        return done.modified_count

    async def failures(self, limit: int, user_id: str | None = None) -> list[MemoryItem]:
        return await readable_first(
            self._items, {**IS_FAILED, **_owner(user_id)}, from_document, limit
        )

    async def retry_failed(self, user_id: str | None = None) -> int:
        """One atomic statement: an item that changes meanwhile is not touched twice."""
        with translated():
            done = await self._items.update_many(
                {**IS_FAILED, **_owner(user_id)}, [{"$set": queue_again()}]
            )
        return done.modified_count

    async def requeue(self, user_id: str | None) -> int:
        """Failed items first: after that they are due, and the second statement leaves them."""
        retried = await self.retry_failed(user_id)
        with translated():
            done = await self._items.update_many(
                {**IS_PENDING, **_owner(user_id), "index.claim": None, **IS_LATER},
                [{"$set": {"index.next_attempt_at": "$$NOW"}}],
            )
        return retried + done.modified_count

    async def waiting(self, user_id: str | None) -> int:
        all_users = user_id is None
        total = 0
        with translated():
            for where, index in (
                (IS_PENDING, indexes.PENDING_BY_USER),
                (IS_FAILED, indexes.FAILED_BY_USER),
            ):
                total += await self._items.count_documents(
                    {**where, **_owner(user_id)},
                    hint=(indexes.SYNC_DUE if all_users else index).name,
                )
        return total

    async def waiting_since(self, user_id: str | None, since: datetime) -> int:
        where = {**IS_PENDING, **_owner(user_id), "index.pending_since": {"$lte": since}}
        index = indexes.PENDING_SINCE if user_id is None else indexes.PENDING_BY_USER
        with translated():
            return await self._items.count_documents(where, hint=index.name)

    async def backlog(self) -> IndexBacklog:
        """Counts from index keys alone; the two ages read the documents they name."""
        await self._ping()  # fails fast: within the long limit, an absent server is waited for
        with translated(), pymongo.timeout(COUNT_TIMEOUT_S):
            pending = await self._in(SyncState.PENDING)
            failed = await self._in(SyncState.FAILED)
            synced = await self._in(SyncState.SYNCED, MOST_COUNTED)
            if synced == MOST_COUNTED:
                total = await self._items.estimated_document_count()
                synced = max(synced, total - pending - failed)
            oldest_s = await self._oldest_s(IS_PENDING)
            untried_s = await self._oldest_s({**IS_PENDING, "index.attempts": 0})
        return IndexBacklog(
            pending=pending,
            synced=synced,
            failed=failed,
            oldest_pending_s=oldest_s or 0.0,
            oldest_untried_s=untried_s,
        )

    async def _in(self, state: SyncState, most: int | None = None) -> int:
        """Items in this state; with `most` no more are counted."""
        limit: dict[str, Any] = {} if most is None else {"limit": most}
        return await self._items.count_documents(
            {"index.sync_state": state.value}, hint=indexes.SYNC_DUE.name, **limit
        )

    async def _oldest_s(self, where: Document) -> float | None:
        age = {"$divide": [{"$subtract": ["$$NOW", "$index.pending_since"]}, 1000]}
        stages: list[Document] = [
            {"$match": where},
            {"$sort": {"index.sync_state": 1, "index.pending_since": 1}},
            {"$limit": 1},
            {"$project": {"age_s": age}},
        ]
        found = await aggregated(self._items, stages, hint=indexes.PENDING_SINCE.name)
        return max(0.0, found[0]["age_s"]) if found else None

    async def _shares(self, limit: int) -> list[Any]:
        """Ids of due items, an equal share per user, round-robin over all who wait."""
        users = await self._waiting_users()
        if not users:
            return []
        users = users[:limit]
        self._last_user = users[-1]
        share = max(1, limit // len(users))
        first, *rest = [
            stages
            for user in users
            for count, direction in (((share + 1) // 2, -1), (share // 2, 1))
            if count
            for stages in [_due_of(user, count, direction)]
        ]
        unions = [{"$unionWith": {"coll": indexes.ITEMS, "pipeline": stages}} for stages in rest]
        docs = await aggregated(self._items, first + unions)
        return list(dict.fromkeys(doc["_id"] for doc in docs))[:limit]

    async def _waiting_users(self) -> list[str]:
        """The next users with pending items, in id order after the last one served."""
        users: list[str] = []
        for bound in ({"$gt": self._last_user}, {"$lte": self._last_user}):
            room = USERS_PER_CLAIM - len(users)
            if room:
                stages: list[Document] = [
                    {"$match": {**IS_PENDING, "user_id": bound}},
                    {"$group": {"_id": "$user_id"}},
                    {"$sort": {"_id": 1}},
                    {"$limit": room},
                ]
                how = {"hint": indexes.PENDING_BY_USER.name}
                users += [doc["_id"] for doc in await aggregated(self._items, stages, **how)]
        return users

    async def _oldest(self, count: int, chosen: list[Any]) -> list[Any]:
        cursor = (
            self._items.find({**IS_PENDING, **IS_DUE}, {"_id": 1})
            .sort([("index.sync_state", 1), ("index.next_attempt_at", 1)])
            .hint(indexes.SYNC_DUE.name)
            .limit(count + len(chosen))
        )
        taken = set(chosen)
        return [doc["_id"] async for doc in cursor if doc["_id"] not in taken][:count]


def _owner(user_id: str | None) -> Document:
    """None: the queue is one for all users."""
    return {} if user_id is None else own(WriteScope(user_id))


def _due_of(user: str, count: int, direction: int) -> list[Document]:
    """Stages that give `count` due items of `user`, newest (-1) or oldest (1) first."""
    return [
        {"$match": {**IS_PENDING, "user_id": user, **IS_DUE}},
        {"$sort": {"index.sync_state": 1, "user_id": 1, "index.next_attempt_at": direction}},
        {"$limit": count},
        {"$project": {"_id": 1}},
    ]


def _finish_writes(
    token: str, result: IndexResult, schema: IndexSchema
) -> list[UpdateOne | DeleteOne]:
    guard: Document = {"point_id": result.point_id, "index.rev": result.rev, "index.claim": token}
    if result.error is not None:
        return [UpdateOne(guard, [{"$set": {**_failure(result), **_prefix(result)}}])]
    writes: list[UpdateOne | DeleteOne] = []
    if result.op is IndexOp.DELETE:
        # The two filters exclude each other: an unordered bulk runs them in any order. A tombstone
        # that still counts in the content graph stays until that was taken back.
        dead = {"status": Status.DELETED.value, "contribution": None}
        writes.append(DeleteOne({**guard, **dead}))
        guard["$nor"] = [dead]
    writes.append(UpdateOne(guard, [{"$set": {**_success(result, schema), **_prefix(result)}}]))
    return writes


def _prefix(result: IndexResult) -> Document:
    said = result.context_prefix
    return {"context_prefix": {"$literal": said}} if said else {}


def _success(result: IndexResult, schema: IndexSchema) -> Document:
    change: Document = {
        "index.sync_state": SyncState.SYNCED.value,
        "index.pending_since": None,
        "index.attempts": 0,
        "index.next_attempt_at": None,
        "index.claim": None,
        "index.last_error": None,
        "index.indexed_at": "$$NOW",
    }
    if result.op is IndexOp.VECTOR:
        change |= {
            "index.model": {"$literal": schema.model},
            "index.dims": schema.dims,
            "index.analyser": {"$literal": schema.analyser},
            "index.vector_hash": {"$literal": result.vector_hash},
        }
    return change


def _failure(result: IndexResult) -> Document:
    state = SyncState.FAILED if result.failed else SyncState.PENDING
    retry_at = utc(result.next_attempt_at) or "$$NOW"
    return {
        "index.sync_state": state.value,
        "index.attempts": {"$add": ["$index.attempts", int(result.blamed)]},
        "index.next_attempt_at": None if result.failed else retry_at,
        "index.claim": None,
        "index.last_error": {"$literal": result.error},
        **({"index.pending_since": None} if result.failed else {}),
    }
