"""Settling what outcomes and changed items owe the graphs: flags and increments together.

Two processes that settle the same rows at once conflict; the driver repeats the transaction of the
one that lost, with a growing jittered pause, so nothing is counted twice or dropped.
"""

import time
from collections.abc import Callable, Coroutine, Sequence, Set
from typing import Any, NamedTuple

from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.core.errors import InvalidInput
from rayapp.core.settings.model import GraphSettings
from rayapp.graphs.records import (
    CO_OCCURS,
    ContentChanges,
    Contribution,
    FollowUp,
    OutcomeChanges,
    RoutingIncrement,
)
from rayapp.graphs.rules.content import (
    GraphQuota,
    Refused,
    admitted_content,
    admitted_routing,
    points_of,
    told_of_winners,
)
from rayapp.learning.records import OutcomeEvent, Withdrawn
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.scope import WriteScope
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.convert import from_document, readable
from rayapp.storage.mongo.database import Collection, MongoDatabase
from rayapp.storage.mongo.graph_convert import contribution_document, contribution_of_document
from rayapp.storage.mongo.graph_writes import Operations, content_writes, outcome_writes
from rayapp.storage.mongo.indexes import EDGES, FOLLOW_UP_ONLY, ITEMS, NODES, OUTCOMES, ROUTING
from rayapp.storage.mongo.predicates import own

Document = dict[str, Any]
# Whether the graphs change; None: the rows are not as they were read.
Settle = Callable[[AsyncClientSession], Coroutine[Any, Any, bool | None]]
# Between two notes that a user's graphs gain something, seconds. They say it to who holds a user
# without a graph; of a book a hundred items are settled in a second, and each search would read
# their notes. Who finds a note takes the user for one with a graph, even if it was emptied since.
NOTE_S = 1.0
# Of whom something is remembered.
MOST_USERS = 10_000
# A tombstone whose point is gone: nothing holds it once it counts nowhere.
GONE: Document = {
    "status": Status.DELETED.value,
    "index.op": IndexOp.DELETE.value,
    "index.sync_state": SyncState.SYNCED.value,
}


class GraphSettlement:
    def __init__(self, database: MongoDatabase, settings: GraphSettings) -> None:
        self._database = database
        self._caps = settings
        self._room = Room()
        self._noted: dict[str, float] = {}

    async def settle_outcomes(
        self, events: Sequence[OutcomeEvent], changes: OutcomeChanges
    ) -> bool:
        """The cleared flags are the guard: every event must still have had its own."""
        if not events:
            return True
        owner = own(WriteScope(one_user(events)))
        owing = {"$or": [{**owner, **one, "effects.graph": True} for one in _as_read(events)]}

        async def settle(session: AsyncClientSession) -> bool | None:
            cleared = await self._database.collection(OUTCOMES).update_many(
                owing, {"$set": {"effects.graph": False}}, session=session
            )
            if cleared.modified_count != len(events):
                await session.abort_transaction()
                return None
            told = await self._told_of_winners(owner, changes, session)
            admitted = OutcomeChanges(
                routing=await self._admit(owner, told.routing, session),
                actions=told.actions,
                solutions=told.solutions,
                documents=told.documents,
            )
            return await self._write(outcome_writes(owner["user_id"], admitted), session)

        return await self._settled(owner["user_id"], settle)

    async def settle_content(
        self, done: FollowUp, contribution: Contribution, changes: ContentChanges
    ) -> bool:
        """The item is the guard: the version that was read, still due, with what was stored."""
        item = done.item
        owner = own(WriteScope(item.user_id))
        items = self._database.collection(ITEMS)

        async def settle(session: AsyncClientSession) -> bool | None:
            doc = await items.find_one(
                {**owner, **_read_state(item)}, {"contribution": 1}, session=session
            )
            stored, refused = contribution_of_document(doc.get("contribution") if doc else None)
            if doc is None or stored != done.contributed:
                await session.abort_transaction()
                return None
            admitted, outside = await self._admitted_content(
                owner, changes, contribution, refused, session
            )
            known = contribution_document(contribution, outside)
            await items.update_one(
                {"_id": doc["_id"]},
                [{"$set": {"contribution": {"$literal": known}, **SETTLED}}],
                session=session,
            )
            writes = content_writes(owner["user_id"], admitted, item.updated_at)
            changed = await self._write(writes, session)
            await self._remove_orphans(owner, admitted, session)
            if known is None:
                await items.delete_one({"_id": doc["_id"], **GONE}, session=session)
            return changed

        return await self._settled(owner["user_id"], settle)

    async def _settled(self, user_id: str, settle: Settle) -> bool:
        now = time.monotonic()
        due = now - self._noted.get(user_id, -NOTE_S) >= NOTE_S

        async def work(session: AsyncClientSession) -> tuple[bool, bool]:
            changed = await settle(session)
            noted = due and bool(changed)
            if noted:
                await MongoChangeLog(self._database).note_graphs(user_id, session)
            return changed is not None, noted

        done, noted = await self._database.transaction(work)
        if noted:
            if len(self._noted) > MOST_USERS:
                self._noted.clear()
            self._noted[user_id] = now
        return done

    async def _write(self, writes: dict[str, Operations], session: AsyncClientSession) -> bool:
        """Whether there was something to write."""
        for name, operations in writes.items():
            await self._database.collection(name).bulk_write(operations, session=session)
        return bool(writes)

    async def _told_of_winners(
        self, owner: Document, changes: OutcomeChanges, session: AsyncClientSession
    ) -> OutcomeChanges:
        """What was remembered of a memory that was merged stands under its winner since."""
        points = {"$in": list(points_of(changes))}
        if not points["$in"]:
            return changes
        items = self._database.collection(ITEMS)
        where = {**owner, "point_id": points, "merged_into": {"$type": "string"}}
        docs = await items.find(where, session=session).to_list()
        losers = readable(docs, from_document)
        if not losers:
            return changes
        into = {"$in": [one.merged_into for one in losers]}
        docs = await items.find({**owner, "memory_id": into}, session=session).to_list()
        winners = {one.memory_id: one for one in readable(docs, from_document)}
        merged = {
            one.point_id: (one, winner)
            for one in losers
            if (winner := winners.get(one.merged_into or "")) is not None
        }
        return told_of_winners(changes, merged)

    async def _admit(
        self, owner: Document, changes: Sequence[RoutingIncrement], session: AsyncClientSession
    ) -> tuple[RoutingIncrement, ...]:
        keys = {change.concept.key for change in changes}
        rows = self._database.collection(ROUTING)
        where = {"concept": {"$in": sorted(keys)}}
        found = await _fields(rows, {**owner, **where}, ("concept",), session)
        known = frozenset(key for (key,) in found)
        free = await self._room.free(rows, owner, self._caps.max_concepts, keys - known, session)
        return admitted_routing(changes, GraphQuota(known, free))

    async def _admitted_content(
        self,
        owner: Document,
        changes: ContentChanges,
        after: Contribution,
        refused: Refused,
        session: AsyncClientSession,
    ) -> tuple[ContentChanges, Refused]:
        keys = {change.concept.key for change in changes.nodes if change.mentions > 0}
        pairs = {(change.source, change.target) for change in changes.edges if change.weight > 0}
        nodes, edges = self._database.collection(NODES), self._database.collection(EDGES)
        where: Document = {"node_id": {"$in": sorted(keys)}}
        found = await _fields(nodes, {**owner, **where}, ("node_id",), session) if keys else []
        known_nodes = frozenset(key for (key,) in found)
        known_edges: frozenset[tuple[str, ...]] = frozenset()
        if pairs:
            where = {"source": {"$in": sorted({source for source, _ in pairs})}}
            where["target"] = {"$in": sorted({target for _, target in pairs})}
            where["relation"] = CO_OCCURS
            found = await _fields(edges, {**owner, **where}, ("source", "target"), session)
            known_edges = frozenset(found)
        if any(one.mentions < 0 for one in changes.nodes) or any(
            one.weight < 0 for one in changes.edges
        ):
            self._room.forget(owner["user_id"])
        new_nodes, new_edges = keys - known_nodes, pairs - known_edges
        free = self._room.free
        free_nodes = await free(nodes, owner, self._caps.max_nodes, new_nodes, session)
        free_edges = await free(edges, owner, self._caps.max_edges, new_edges, session)
        return admitted_content(
            changes,
            after,
            refused,
            GraphQuota(known_nodes, free_nodes),
            GraphQuota(known_edges, free_edges),
        )

    async def _remove_orphans(
        self, owner: Document, changes: ContentChanges, session: AsyncClientSession
    ) -> None:
        """Edges of nodes that were removed with their last memory."""
        keys = {change.concept.key for change in changes.nodes if change.mentions < 0}
        if not keys:
            return
        where = {**owner, "node_id": {"$in": sorted(keys)}}
        found = await _fields(self._database.collection(NODES), where, ("node_id",), session)
        gone = {"$in": sorted(keys - {key for (key,) in found})}
        if gone["$in"]:
            await self._database.collection(EDGES).delete_many(
                {"$or": [{**owner, "source": gone}, {**owner, "target": gone}]}, session=session
            )


# `$$NOW` inside a transaction is when it began. Backfill looks at what was looked at longest ago.
SETTLED: Document = {"follow_up_at": None, "followed_at": "$$NOW"}


def _as_read(events: Sequence[OutcomeEvent]) -> list[Document]:
    """The rows of these events with no more withdrawn than when they were read."""
    plain = [event.idempotency_key for event in events if event.withdrawn == Withdrawn()]
    revised = [
        {"idempotency_key": event.idempotency_key, **_withdrawn_so_far(event.withdrawn)}
        for event in events
        if event.withdrawn != Withdrawn()
    ]
    return [{"idempotency_key": {"$in": plain}, "withdrawn": None}, *revised]


def _withdrawn_so_far(withdrawn: Withdrawn) -> Document:
    """Rows of older versions have no tools."""
    return {
        "withdrawn.points": list(withdrawn.points),
        "withdrawn.documents": list(withdrawn.documents),
        "withdrawn.tools": list(withdrawn.tools) or {"$in": [None, []]},
    }


def one_user(events: Sequence[OutcomeEvent]) -> str:
    users = {event.user_id for event in events}
    if len(users) != 1:
        raise InvalidInput("Outcomes of several users were settled at once: settle each user's.")
    return users.pop()


def _read_state(item: MemoryItem) -> Document:
    """The row as the follow-up read it, still due."""
    return {
        "point_id": item.point_id,
        "version": item.version,
        "status": item.status.value,
        **FOLLOW_UP_ONLY,
    }


async def _fields(
    collection: Collection, where: Document, names: tuple[str, ...], session: AsyncClientSession
) -> list[tuple[str, ...]]:
    """Values of `names` of the matching rows; answered from the unique index alone."""
    projection: Document = {"_id": 0, **dict.fromkeys(names, 1)}
    cursor = collection.find(where, projection, session=session)
    return [tuple(doc[name] for name in names) async for doc in cursor]


# A count of a user's 20,000 edges takes 10 ms, most of what an item owes, so one serves many items:
# until this process has used a part of the room, which others use as well, or some seconds are
# over. A graph that is full is looked at more often: what a cap keeps out of it stays out. Few rows
# are counted for every item.
COUNT_S, PART, FULL_S, FEW = 10.0, 8, 1.0, 1_000


class _Counted(NamedTuple):
    """How many rows there was room for, how many new ones were asked for since, until when this is
    good."""

    room: int
    used: int
    until: float

    def serves(self, new: int, now: float) -> bool:
        return now < self.until and (not self.room or self.used + new <= self.room // PART)


class Room:
    """How many rows users may still get."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], _Counted] = {}

    async def free(
        self,
        collection: Collection,
        owner: Document,
        cap: int,
        unknown: Set[object],
        session: AsyncClientSession,
    ) -> int:
        """Counted only when a new one is asked for."""
        if not unknown:
            return 0
        key, now = (collection.name, owner["user_id"]), time.monotonic()
        found = self._counts.get(key)
        if found is None or cap <= FEW or not found.serves(len(unknown), now):
            room = cap - await collection.count_documents(owner, limit=cap, session=session)
            found = _Counted(room, 0, now + (COUNT_S if room else FULL_S))
            if len(self._counts) > MOST_USERS:
                self._counts.clear()
        # Of a transaction that ends otherwise as well: then it is only counted a little earlier.
        self._counts[key] = found._replace(used=found.used + len(unknown))
        return max(found.room - found.used, 0)

    def forget(self, user_id: str) -> None:
        """Rows of the user are removed."""
        for name in (NODES, EDGES):
            self._counts.pop((name, user_id), None)
