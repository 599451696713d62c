"""The MongoDB implementation of `LifecycleStore`: what rules may touch, and their transitions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo import ASCENDING, ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, DuplicateKeyError

from rayapp.bulk.ports import Lease
from rayapp.core.errors import Conflict, DuplicateMemory, NotFound, RayappError, VersionConflict
from rayapp.learning.ports import Walk
from rayapp.learning.records import Move
from rayapp.learning.rules import promotion as rules
from rayapp.learning.rules.promotion import after_move, not_found, winner_of
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.ports import Event
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import GARBAGE_SCORE, SURVIVES_EXPIRY_SCORE, Tier
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.convert import from_document, readable, version_document
from rayapp.storage.mongo.database import MongoDatabase, aggregated, first, listed
from rayapp.storage.mongo.errors import DUPLICATE_KEY, translate, translated
from rayapp.storage.mongo.event_stream import event_document
from rayapp.storage.mongo.graph_writes import GraphMerges
from rayapp.storage.mongo.memory_store import revision_document
from rayapp.storage.mongo.predicates import NOT_DELETED, active_text, own, owned_by, text_is

Document = dict[str, Any]
RULED: Document = {"tier": {"$in": [tier.value for tier in rules.RULED_TIERS]}}
IN_ORDER = [("user_id", ASCENDING), ("point_id", ASCENDING)]
# What a unique index says, for one write and for a batch.
DUPLICATES = (DuplicateKeyError, BulkWriteError)


class MongoLifecycleStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._transaction = database.transaction
        self._items = database.collection(indexes.ITEMS)
        self._versions = database.collection(indexes.VERSIONS)
        self._events = database.collection(indexes.EVENTS)
        self._leases = database.collection(indexes.LEASES)
        self._changes = MongoChangeLog(database)
        self._graphs = GraphMerges(database)

    async def candidates(
        self, walk: Walk, after: MemoryItem | None, limit: int
    ) -> list[MemoryItem]:
        """Exactly what a rule could touch.

        The thresholds of all rules are in the query, so a cycle without work gets no item but
        those that only the other policy would move. The server walks one partial index in the
        order of pages, and each page goes on where the last one ended: over all pages it looks
        once at each judged item, or at each unjudged one whose time is over.
        """
        index = indexes.JUDGED.name if walk.judged else indexes.EXPIRING.name
        where: Document = {**indexes.ACTIVE_ONLY, "stats.uses": 0, **_expired(walk.now)}
        if walk.judged:
            alternatives = [*_judged(walk.now), _expired(walk.now)]
            where = {**indexes.ACTIVE_ONLY, "stats.uses": {"$gt": 0}, "$or": alternatives}
        last = None if after is None else (after.user_id, after.point_id)
        found: list[MemoryItem] = []
        while (wanted := limit - len(found)) > 0:
            docs = await self._page(where, index, _after(walk.user_id, last), wanted)
            found += readable(docs, from_document)
            if len(docs) < wanted:
                break
            # Rows that cannot be read do not make a page shorter: that would end the cycle.
            last = docs[-1]["user_id"], docs[-1]["point_id"]
        return found

    async def by_ids(self, user_id: str, memory_ids: Sequence[str]) -> list[MemoryItem]:
        if not memory_ids:
            return []
        named = {"memory_id": {"$in": list(memory_ids)}}
        where = {**own(WriteScope(user_id)), **named, **indexes.ACTIVE_ONLY}
        return await listed(self._items, where, from_document)

    async def same_text(self, item: MemoryItem, tier: Tier) -> MemoryItem | None:
        same = active_text(item.user_id, tier, item.dedup_scope, item.content_hash)
        others = {**same, "memory_id": {"$ne": item.memory_id}}
        return await first(self._items, others, from_document)

    async def transition(
        self, moves: Sequence[Move], events: Sequence[Event], *, lease: Lease | None = None
    ) -> list[MemoryItem]:
        """One transaction.

        A transition whose events are there already, and whose items have left the version that
        was read, was made by an earlier try whose answer was lost: it changes nothing and answers
        the items as they are.
        """

        async def change(session: AsyncClientSession) -> list[MemoryItem]:
            if lease is not None:
                await self._touch(lease, session)
            return await self._write(moves, events, session)

        try:
            return await self._transaction(change, passing=DUPLICATES)
        except (*DUPLICATES, VersionConflict, NotFound) as error:
            done = await self._happened(moves, events) if events else None
            if done is not None:
                return done
            raise await self._refusal(error, moves) from None

    async def activity(self, since: datetime) -> list[tuple[str, int, int]]:
        """Counts every exchange, those that were archived or deleted meanwhile too."""
        stages: list[Document] = [
            {"$match": {"tier": Tier.WORKING.value, "stored_at": {"$gte": since}}},
            {
                "$group": {
                    "_id": "$user_id",
                    "stored": {"$sum": 1},
                    "conversations": {"$addToSet": "$source.conversation_id"},
                }
            },
            {"$sort": {"stored": -1, "_id": 1}},
        ]
        rows = await aggregated(self._items, stages, hint=indexes.WORKING_STORED.name)
        return [
            (row["_id"], row["stored"], sum(c is not None for c in row["conversations"]))
            for row in rows
        ]

    # --- inside

    async def _page(
        self, where: Document, index: str, ranges: Sequence[Document], limit: int
    ) -> list[Document]:
        docs: list[Document] = []
        with translated():
            for one in ranges:
                if len(docs) < limit:
                    cursor = self._items.find(
                        {**one, **where}, sort=IN_ORDER, limit=limit - len(docs), hint=index
                    )
                    docs += await cursor.to_list()
        return docs

    async def _touch(self, lease: Lease, session: AsyncClientSession) -> None:
        """Writing the row makes this transaction and a takeover exclude each other."""
        done = await self._leases.update_one(
            {"_id": lease.name, "holder": lease.holder, "fence": lease.fence},
            {"$inc": {"checked": 1}},
            session=session,
        )
        if not done.matched_count:
            raise Conflict(
                "Another owner took over: nothing was moved, it goes on with the work.",
                code="lease_lost",
                details={"lease": lease.name},
            )

    async def _write(
        self, moves: Sequence[Move], events: Sequence[Event], session: AsyncClientSession
    ) -> list[MemoryItem]:
        """A constant number of round trips, however many moves."""
        stored = await self._stored(moves, session)
        items, writes = [], []
        for move in moves:
            doc = stored.get(move.item.point_id)
            if doc is None:
                raise not_found(move)
            item = after_move(from_document(doc), move)
            items.append(item)
            writes.append(ReplaceOne({"_id": doc["_id"]}, revision_document(item, doc)))
        if writes:
            await self._changes.note(((i.user_id, i.point_id) for i in items), session)
            await self._items.bulk_write(writes, session=session)
            rows = [version_document(move.row) for move in moves]
            await self._versions.insert_many(rows, session=session)
        for item in items:
            if item.merged_into is not None:
                await self._repoint(item, items, session)
        if events:
            await self._events.insert_many([event_document(e) for e in events], session=session)
        return items

    async def _stored(
        self, moves: Sequence[Move], session: AsyncClientSession | None = None
    ) -> dict[str, Document]:
        where = {
            **owned_by([move.item.user_id for move in moves]),
            "point_id": {"$in": [move.item.point_id for move in moves]},
            **NOT_DELETED,
        }
        docs = await self._items.find(where, session=session).to_list()
        return {doc["point_id"]: doc for doc in docs}

    async def _repoint(
        self, loser: MemoryItem, items: Sequence[MemoryItem], session: AsyncClientSession
    ) -> None:
        """Chains are flattened when they are written, so that a read follows one step. The winner
        is one of `items`, the items of this transition."""
        await self._items.update_many(
            {**own(WriteScope(loser.user_id)), "merged_into": text_is(loser.memory_id)},
            {"$set": {"merged_into": loser.merged_into}},
            session=session,
        )
        winner = winner_of(loser, items)
        if winner is not None:
            await self._graphs.hand_over(loser, winner, session)

    async def _happened(
        self, moves: Sequence[Move], events: Sequence[Event]
    ) -> list[MemoryItem] | None:
        """The items as they are when an earlier try moved all of them, else None. The events alone
        prove nothing: the items themselves must have left the version read."""
        where = {
            **owned_by([event.user_id for event in events]),
            "event_id": {"$in": [event.event_id for event in events]},
        }
        with translated():
            if await self._events.count_documents(where) < len(events):
                return None
            stored = await self._stored(moves)
        docs = [stored.get(move.item.point_id) for move in moves]
        items = readable([doc for doc in docs if doc is not None], from_document)
        if len(items) < len(moves):
            return None
        advanced = all(
            item.version > move.expected_version for item, move in zip(items, moves, strict=True)
        )
        return items if advanced else None

    async def _refusal(self, error: Exception, moves: Sequence[Move]) -> RayappError:
        """Why nothing was written; an equal active text is named."""
        if isinstance(error, RayappError):
            return error
        if _violated(error) != indexes.ACTIVE_TEXT.name:
            return translate(error)
        others = [
            await self.same_text(move.item, move.item.tier)
            for move in moves
            if move.item.status is Status.ACTIVE
        ]
        other = next((item.memory_id for item in others if item is not None), None)
        return DuplicateMemory(
            f"An active memory with this text exists: use {other}.", details={"memory_id": other}
        )


def _violated(error: Exception) -> str | None:
    """The unique index that a single or a batched write ran into."""
    details: Document = getattr(error, "details", None) or {}
    refused = details.get("writeErrors") or [details]
    codes = {entry.get("code") for entry in refused}
    return indexes.violated_index(refused[0]) if codes == {DUPLICATE_KEY} else None


def _after(user_id: str | None, last: tuple[str, str] | None) -> list[Document]:
    """What comes after the pair `last` of user and point, as ranges of the index, in order. Without
    a bound on the first key the server does not use the second one."""
    if user_id is not None:
        point_id = "" if last is None else last[1]
        return [{**own(WriteScope(user_id)), "point_id": {"$gt": point_id}}]
    if last is None:
        return [{"user_id": {"$gt": ""}}]
    return [{"user_id": last[0], "point_id": {"$gt": last[1]}}, {"user_id": {"$gt": last[0]}}]


def _judged(now: datetime) -> list[Document]:
    """What promotes, demotes or archives by evidence, under any policy."""
    score, wilson, old = "stats.score", "stats.wilson_score", now - rules.YOUNG

    def convincing(bound: float) -> list[Document]:
        return [{score: {"$gte": bound}}, {wilson: {"$gte": bound}}]

    garbage = [
        {score: {"$lt": rules.YOUNG_GARBAGE_SCORE}},
        {score: {"$lt": GARBAGE_SCORE}, "stored_at": {"$lte": old}},
    ]
    return [
        {
            "tier": Tier.WORKING.value,
            "stats.uses": {"$gte": rules.HISTORY_USES},
            "$or": convincing(rules.HISTORY_SCORE),
        },
        {
            "tier": Tier.HISTORY.value,
            "stats.tier_uses": {"$gte": rules.PATTERNS_TIER_USES},
            "stats.tier_success": {"$gte": rules.PATTERNS_TIER_SUCCESS},
            "$or": convincing(rules.PATTERNS_SCORE),
        },
        {"tier": Tier.PATTERNS.value, score: {"$lt": rules.DEMOTION_SCORE}},
        {
            "tier": {"$in": [Tier.WORKING.value, Tier.HISTORY.value]},
            "stats.uses": {"$gt": 0},
            "instruction": None,
            "$or": garbage,
        },
    ]


def _expired(now: datetime) -> Document:
    """The condition on the type lets the server use the partial index."""
    return {
        **RULED,
        "expires_at": {"$lte": now, "$type": "date"},
        "stats.score": {"$lt": SURVIVES_EXPIRY_SCORE},
    }
