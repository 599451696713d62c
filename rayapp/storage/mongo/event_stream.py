"""Events: rows that changes leave, and change streams that follow them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from bson.timestamp import Timestamp
from pymongo import DESCENDING
from pymongo.asynchronous.change_stream import AsyncDatabaseChangeStream
from pymongo.errors import OperationFailure

from rayapp.admin.ports import StreamEvent, StreamKind
from rayapp.core.errors import NotFound
from rayapp.memory.item import ChangeType, Status, SyncState
from rayapp.memory.ports import Event
from rayapp.memory.scope import ReadScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import RETRY_CODES, translated
from rayapp.storage.mongo.indexes import EVENTS, ITEMS, JOBS, OUTCOMES, UNDERSTANDINGS, VERSIONS
from rayapp.storage.mongo.predicates import mine, owned_by, text_is
from rayapp.storage.mongo.rows import from_row, to_row
from rayapp.understanding.records import Fate

event_document = to_row


class MongoEventStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._events = database.collection(EVENTS)

    async def add(self, event: Event) -> None:
        with translated():
            await self._events.insert_one(event_document(event))

    async def recent(self, scope: ReadScope, kind: str | None, limit: int) -> list[Event]:
        """Newest first."""
        if limit < 1:
            return []
        where: dict[str, Any] = {**mine(scope)}
        if kind is not None:
            where["kind"] = kind
        return await self._newest_first(where, limit)

    async def of_conversation(
        self, scope: ReadScope, conversation_id: str, kind: str
    ) -> list[Event]:
        return await self._newest_first(told_in(scope, conversation_id, kind), 0)

    async def _newest_first(self, where: dict[str, Any], limit: int) -> list[Event]:
        """`limit` 0: all."""
        order = [("at", DESCENDING), ("event_id", DESCENDING)]
        with translated():
            cursor = self._events.find(where, sort=order, limit=limit)
            return [from_row(Event, doc) async for doc in cursor]


Document = dict[str, Any]


def told_in(scope: ReadScope, conversation_id: str, kind: str) -> Document:
    return {**mine(scope), "data.conversation_id": text_is(conversation_id), "kind": kind}


# A resume token is hex; ours have about 100 to 400 characters with their document's key.
_POSITION = re.compile(r"(?:[0-9A-Fa-f]{2}){9,1024}")
_TIME_FIRST = "82"
# What the server answers to a token that it cannot go on from: not of its making (9, 40649, 50811
# and other numbers of its parser), of another stream (260, 280), older than its log (136, 286).
LOST_CODES = frozenset({9, 136, 260, 280, 286, 40647, 40649, 50811})
# The token's event exists and this pipeline does not let it pass: kinds or user were others then.
NOT_IN_THIS_STREAM = 280
# Numbers of the server's own assertions, among them those of the parser of tokens.
FIRST_LOCATION = 10_000

# Kinds by the row that a change leaves behind.
MOVED = {"promoted": StreamKind.PROMOTED, "demoted": StreamKind.DEMOTED}
# What a conversation taught, and what is told of it beside the memory and the turn.
TAUGHT: Mapping[str, tuple[StreamKind, tuple[str, ...]]] = {
    "learned": (StreamKind.LEARNED, ("tier",)),
    "extended": (StreamKind.EXTENDED, ()),
    "outcome_detected": (StreamKind.DETECTED, ("outcome", "confidence", "receipt_id")),
}
# What was derived, by the kind of its row; told by its id alone.
DERIVED: Mapping[str, StreamKind] = {"thought": StreamKind.THOUGHT, "episode": StreamKind.EPISODE}
ONTOLOGY = "ontology"
BY_EVENT = {
    **MOVED,
    **DERIVED,
    ONTOLOGY: StreamKind.ONTOLOGY,
    **{name: kind for name, (kind, _) in TAUGHT.items()},
}
BY_VERSION = {
    ChangeType.ARCHIVE.value: StreamKind.ARCHIVED,
    ChangeType.RESTORE.value: StreamKind.RESTORED,
    ChangeType.UPDATE.value: StreamKind.UPDATED,
    ChangeType.MERGE.value: StreamKind.MERGED,
}
SYNCED = SyncState.SYNCED.value
# Rows name changed fields by their whole path, which an ordinary condition reads as a nesting.
_CHANGED_STATE: Document = {
    "$getField": {"field": "index.sync_state", "input": "$updateDescription.updatedFields"}
}
_CHANGED_FATE: Document = {
    "$getField": {"field": "fate", "input": "$updateDescription.updatedFields"}
}
_MATTERS: Document = {
    "$anyElementTrue": {
        "$map": {
            "input": "$fullDocument.sides",
            "in": {"$gt": ["$$this.score", "$$this.threshold"]},
        }
    }
}
_IS_JOB: Document = {"ns.coll": JOBS}
# Texts, queries and reasons given by people stay on the server.
_TOLD = (
    *("user_id", "memory_id", "tier", "kind", "change_type", "outcome", "receipt_id"),
    *("conversation_id", "source.type", "source.conversation_id", "applied.memory_id"),
    *("data.tier", "data.outcome", "data.confidence", "data.receipt_id"),
    *("data.conversation_id", "data.message_id", "data.id", "data.version", "tools"),
    *("data.from", "data.to", "data.rule", "job_id", "state", "stage", "total", "done", "failed"),
)


class MongoEventStream:
    """Implements `EventStream`. Opens its connections with the first stream."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database

    async def open(
        self,
        users: Collection[str],
        *,
        after: str | None,
        kinds: frozenset[StreamKind],
        poll_s: float,
    ) -> MongoEventFeed:
        if after is not None and not _POSITION.fullmatch(after):
            raise position_lost()
        stages, wait_ms = pipeline(users, kinds), max(1, round(poll_s * 1000))
        start: Document = {} if after is None else {"resume_after": {"_data": after}}
        try:
            with translated(passing=OperationFailure):
                try:
                    stream = await self._database.watch(stages, wait_ms, **start)
                except OperationFailure as error:
                    if after is None or error.code != NOT_IN_THIS_STREAM:
                        raise
                    # Its event is none of those asked for now: the same moment, by the clock.
                    start = {"start_at_operation_time": moment_of(after)}
                    stream = await self._database.watch(stages, wait_ms, **start)
        except OperationFailure as error:
            _raise_lost(error, resuming=after is not None)
            with translated():
                raise
        return MongoEventFeed(stream, after or "")


class MongoEventFeed:
    """Implements `EventFeed`. What lies at or before `after` was heard."""

    def __init__(self, stream: AsyncDatabaseChangeStream[Document], after: str) -> None:
        self._stream = stream
        self._after = after.upper()

    @property
    def position(self) -> str:
        token = self._stream.resume_token
        return str(token["_data"]) if token else ""

    async def next(self) -> StreamEvent | None:
        """A short break of the connection is mended by the driver, from where it was."""
        while True:
            try:
                with translated(passing=OperationFailure):
                    change = await self._stream.try_next()
            except OperationFailure as error:
                _raise_lost(error, resuming=True)
                with translated():
                    raise
            if change is None:
                return None
            if change["_id"]["_data"].upper() > self._after:
                return event_of(change)

    async def close(self) -> None:
        with translated():
            await self._stream.close()


def pipeline(users: Collection[str], kinds: frozenset[StreamKind]) -> list[Document]:
    """Stages of the stream: what is cheap to know first, then whose it is, then what is told.

    The first two stages need no document, so the server looks up only those of changes that
    interest somebody. An `$or` of both kinds of conditions would be moved as a whole, and the
    server (6.0) then loses updates.
    """
    coarse, exact = _conditions(kinds)
    owned = {f"fullDocument.{name}": value for name, value in owned_by(users).items()}
    whose: Document = {"$or": [owned, _IS_JOB]} if StreamKind.JOB in kinds else owned
    told = {f"fullDocument.{name}": True for name in _TOLD}
    return [
        {"$match": {"operationType": {"$in": ["insert", "update", "replace"]}}},
        {"$match": {"$expr": {"$or": coarse or [False]}}},
        {"$match": whose},
        {"$match": {"$or": exact or [{"operationType": "none"}]}},
        {"$project": {"operationType": True, "ns": True, "wallTime": True, **told}},
    ]


def _conditions(kinds: frozenset[StreamKind]) -> tuple[list[Document], list[Document]]:
    """What a change must be: without its document, and with it."""
    inserted: Document = {"operationType": "insert"}
    coarse: list[Document] = []
    exact: list[Document] = []
    if StreamKind.STORED in kinds:
        coarse.append(_is(ITEMS, "insert"))
        exact.append({"ns.coll": ITEMS, **inserted})
    if StreamKind.INDEXED in kinds:
        changed = {"$eq": [_CHANGED_STATE, SYNCED]}
        # The server logs a change as a whole new row when that is shorter.
        coarse += [{"$and": [_is(ITEMS, "update"), changed]}, _is(ITEMS, "replace")]
        # The row is that of the moment of looking: what has left meanwhile is not told, and the
        # removal of what was archived from the index is no news.
        active: Document = {"ns.coll": ITEMS, "fullDocument.status": Status.ACTIVE.value}
        exact.append({**active, "operationType": "update"})
        exact.append(
            {**active, "operationType": "replace", "fullDocument.index.sync_state": SYNCED}
        )
    if StreamKind.OUTCOME in kinds:
        coarse.append(_is(OUTCOMES, "insert"))
        exact.append({"ns.coll": OUTCOMES, **inserted})
    for collection, path, table in (
        (EVENTS, "kind", BY_EVENT),
        (VERSIONS, "change_type", BY_VERSION),
    ):
        names = sorted(name for name, kind in table.items() if kind in kinds)
        if names:
            coarse.append(_is(collection, "insert"))
            exact.append({"ns.coll": collection, f"fullDocument.{path}": {"$in": names}})
    if StreamKind.IMPORTANT in kinds:
        # Its row is written often; it is news once, when it was derived from.
        coarse += [
            {"$and": [_is(UNDERSTANDINGS, "update"), {"$gt": [_CHANGED_FATE, None]}]},
            _is(UNDERSTANDINGS, "replace"),
        ]
        derived = {"fullDocument.fate": Fate.DERIVED.value, "$expr": _MATTERS}
        exact.append({"ns.coll": UNDERSTANDINGS, **derived})
    if StreamKind.JOB in kinds:
        coarse.append({"$eq": ["$ns.coll", JOBS]})
        exact.append({**_IS_JOB, "fullDocument.job_id": {"$type": "string"}})
    return coarse, exact


def _is(collection: str, operation: str) -> Document:
    return {"$and": [{"$eq": ["$ns.coll", collection]}, {"$eq": ["$operationType", operation]}]}


def event_of(change: Mapping[str, Any]) -> StreamEvent:
    """The event behind a change that passed the pipeline."""
    collection, doc = change["ns"]["coll"], change["fullDocument"]
    kind, data = _READERS[collection](change["operationType"], doc)
    at: datetime = change["wallTime"]
    return StreamEvent(
        position=str(change["_id"]["_data"]),
        kind=kind,
        at=at if at.tzinfo is not None else at.replace(tzinfo=UTC),
        user_id=None if kind is StreamKind.JOB else doc["user_id"],
        data=data,
    )


def _item(operation: str, doc: Document) -> tuple[StreamKind, Document]:
    data = {"memory_id": doc["memory_id"], "tier": doc["tier"]}
    if operation != "insert":
        return StreamKind.INDEXED, data
    source = doc.get("source") or {}
    more = {"source": source.get("type"), "conversation_id": source.get("conversation_id")}
    return StreamKind.STORED, data | more


def _outcome(_: str, doc: Document) -> tuple[StreamKind, Document]:
    return StreamKind.OUTCOME, {
        "outcome": doc["outcome"],
        "memory_ids": [one["memory_id"] for one in doc.get("applied", ())],
        "receipt_id": doc.get("receipt_id"),
        "conversation_id": doc.get("conversation_id"),
        **({"tools": tools} if (tools := doc.get("tools")) else {}),
    }


def _event(operation: str, doc: Document) -> tuple[StreamKind, Document]:
    if doc["kind"] in DERIVED:
        return DERIVED[doc["kind"]], {"id": (doc.get("data") or {}).get("id")}
    if doc["kind"] == ONTOLOGY:
        return StreamKind.ONTOLOGY, {"version": (doc.get("data") or {}).get("version")}
    if doc["kind"] not in TAUGHT:
        return _transition(operation, doc)
    kind, more = TAUGHT[doc["kind"]]
    said = {**(doc.get("data") or {}), "memory_id": doc["memory_id"]}
    names = ("memory_id", "conversation_id", "message_id", *more)
    return kind, {name: said.get(name) for name in names}


def _transition(_: str, doc: Document) -> tuple[StreamKind, Document]:
    moved = doc.get("data") or {}
    return BY_EVENT[doc["kind"]], {
        "memory_id": doc["memory_id"],
        "from": moved.get("from"),
        "tier": moved.get("to"),
        "rule": moved.get("rule"),
    }


def _version(_: str, doc: Document) -> tuple[StreamKind, Document]:
    return BY_VERSION[doc["change_type"]], {"memory_id": doc["memory_id"]}


def _matters(_: str, doc: Document) -> tuple[StreamKind, Document]:
    return StreamKind.IMPORTANT, {"memory_id": doc["memory_id"]}


def _job(_: str, doc: Document) -> tuple[StreamKind, Document]:
    names = ("job_id", "kind", "state", "stage", "total", "done", "failed")
    return StreamKind.JOB, {name: doc.get(name) for name in names}


_READERS: dict[str, Callable[[str, Document], tuple[StreamKind, Document]]] = {
    ITEMS: _item,
    OUTCOMES: _outcome,
    EVENTS: _event,
    VERSIONS: _version,
    UNDERSTANDINGS: _matters,
    JOBS: _job,
}


def moment_of(after: str) -> Timestamp:
    """The server's time in a token. Tokens are made to be compared: a mark of the type, the time,
    then what tells apart the changes of one moment."""
    if not after.startswith(_TIME_FIRST):
        raise position_lost()
    return Timestamp(int(after[2:10], 16), int(after[10:18], 16))


def position_lost() -> NotFound:
    return NotFound(
        "This event id cannot be gone on from: it is unknown or too old. Read again what you show.",
        code="position_lost",
    )


def means_lost(code: int | None) -> bool:
    """Whether a refusal is about the token, and not about the server, which then says "later"."""
    code = code or 0
    return code in LOST_CODES or (code >= FIRST_LOCATION and code not in RETRY_CODES)


def _raise_lost(error: OperationFailure, *, resuming: bool) -> None:
    """A refused token is the follower's; any other refusal is translated like every one."""
    if resuming and means_lost(error.code):
        raise position_lost() from None
