"""Conversations of users: one row each, and every change of a row is one update."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pymongo import DESCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from rayapp.assistant.ports import MAX_INJECTED, MAX_TURNS, ScoreGiven, Session, TurnRecord
from rayapp.core.errors import InvalidInput, Overloaded
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo.convert import readable, utc
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import SESSIONS
from rayapp.storage.mongo.predicates import mine, own

Document = dict[str, Any]
# The TTL monitor runs once a minute; an expired row counts as gone at once.
NOT_EXPIRED: Document = {"$expr": {"$gt": ["$expires_at", "$$NOW"]}}
NEWEST = [("updated_at", DESCENDING), ("conversation_id", DESCENDING)]
OWES: Document = {"$type": "string"}
# Two first writes of a conversation race: the one that lost finds the row then.
TRIES = 5


class MongoSessionStore:
    """Implements `assistant.ports.SessionStore`. `keep`: lifetime after the last change."""

    def __init__(self, database: MongoDatabase, keep: timedelta) -> None:
        self._rows = database.collection(SESSIONS)
        self._keep = keep

    async def get(self, scope: ReadScope, conversation_id: str) -> Session | None:
        where = {**mine(scope), "conversation_id": conversation_id, **NOT_EXPIRED}
        with translated():
            docs = await self._rows.find(where, limit=1).to_list()
        return next(iter(readable(docs, _session)), None)

    async def by_message(self, scope: ReadScope, message_id: str) -> Session | None:
        where = {**mine(scope), "turns.message_id": message_id, **NOT_EXPIRED}
        with translated():
            docs = await self._rows.find(where, sort=NEWEST, limit=1).to_list()
        return next(iter(readable(docs, _session)), None)

    async def remember_injected(
        self,
        scope: WriteScope,
        conversation_id: str,
        fingerprints: Sequence[str],
        at: datetime,
        receipt_id: str | None = None,
    ) -> None:
        new = list(dict.fromkeys(fingerprints))[-MAX_INJECTED:]
        # $setDifference keeps the order of the first array, and its cost does not multiply.
        older = {"$setDifference": [{"$ifNull": ["$injected", []]}, {"$literal": new}]}
        both = {"$concatArrays": [older, {"$literal": new}]}
        change: Document = {
            "injected": {"$slice": [both, -MAX_INJECTED]},
            "receipt_id": {"$literal": receipt_id},
            **self._times(at),
        }
        await self._change(scope, conversation_id, [{"$set": change}])

    async def add_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> bool:
        where = {**own(scope), "conversation_id": conversation_id}
        change: Document = dict(self._times(turn.at))
        if turn.required:
            change |= {"owed_message": turn.message_id, "owed_receipt": turn.receipt_id}
        update: Document = {
            "$set": change,
            "$inc": {"exchanges": 1},
            "$push": {"turns": {"$each": [_turn_document(turn)], "$slice": -MAX_TURNS}},
        }
        unknown = {**where, "turns.message_id": {"$ne": turn.message_id}}
        known = {**where, "turns.message_id": turn.message_id}
        for _ in range(TRIES):
            try:
                with translated(passing=DuplicateKeyError):
                    await self._rows.update_one(unknown, update, upsert=True)
            except DuplicateKeyError:
                with translated():
                    if await self._rows.find_one(known, {"_id": 1}) is not None:
                        return False
                continue
            return True
        raise _busy()

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        where, target = _target(scope, given)
        score = {"score": given.score} if given.score is not None else {}
        scored = {"$mergeObjects": ["$$this", {"scored_at": utc(given.at), **score}]}
        is_it = {"$eq": ["$$this.message_id", target]}
        turns = {"$ifNull": ["$turns", []]}
        paid = {"$eq": ["$owed_message", target]}
        change: Document = {
            "turns": {"$map": {"input": turns, "in": {"$cond": [is_it, scored, "$$this"]}}},
            "owed_message": {"$cond": [paid, None, "$owed_message"]},
            "owed_receipt": {"$cond": [paid, None, "$owed_receipt"]},
            **self._times(given.at),
        }
        with translated():
            found = await self._rows.find_one_and_update(
                where, [{"$set": change}], {"_id": 1}, sort=NEWEST
            )
        return found is not None

    async def refine(
        self, scope: WriteScope, conversation_id: str, turn_id: str, at: datetime
    ) -> int:
        same = {"$eq": ["$turn_id", {"$literal": turn_id}]}
        more = {"$add": [{"$ifNull": ["$refinements", 0]}, 1]}
        change: Document = {
            "refinements": {"$cond": [same, more, 1]},
            "turn_id": {"$literal": turn_id},
            **self._times(at),
        }
        doc = await self._change(scope, conversation_id, [{"$set": change}])
        return int(doc["refinements"])

    # --- inside

    def _times(self, at: datetime) -> Document:
        return {"updated_at": utc(at), "expires_at": utc(at + self._keep)}

    async def _change(
        self, scope: WriteScope, conversation_id: str, update: list[Document]
    ) -> Document:
        where = {**own(scope), "conversation_id": conversation_id}
        for _ in range(TRIES):
            try:
                with translated(passing=DuplicateKeyError):
                    doc = await self._rows.find_one_and_update(
                        where,
                        update,
                        {"refinements": 1},
                        upsert=True,
                        return_document=ReturnDocument.AFTER,
                    )
                return doc or {}
            except DuplicateKeyError:
                continue
        raise _busy()


def _target(scope: WriteScope, given: ScoreGiven) -> tuple[Document, Any]:
    """The row that a score is about, and its turn as an expression."""
    where = own(scope)
    if given.conversation_id is not None:
        where["conversation_id"] = given.conversation_id
    if given.message_id is not None:
        return {**where, "turns.message_id": given.message_id}, {"$literal": given.message_id}
    if given.conversation_id is None:
        if given.receipt_id is None:
            raise InvalidInput("A score names a conversation, a message or a receipt.")
        where["owed_receipt"] = given.receipt_id
    return {**where, "owed_message": OWES}, "$owed_message"


def _busy() -> Overloaded:
    return Overloaded("Too many writes of this conversation at once: retry.", retry_after_s=1.0)


def _turn_document(turn: TurnRecord) -> Document:
    return {
        "message_id": turn.message_id,
        "memory_id": turn.memory_id,
        "at": utc(turn.at),
        "required": turn.required,
        "receipt_id": turn.receipt_id,
        "scored_at": utc(turn.scored_at),
        "score": turn.score,
    }


def _session(doc: Document) -> Session:
    return Session(
        user_id=doc["user_id"],
        conversation_id=doc["conversation_id"],
        updated_at=doc["updated_at"],
        injected=tuple(doc.get("injected") or ()),
        receipt_id=doc.get("receipt_id"),
        exchanges=doc.get("exchanges", 0),
        turns=tuple(TurnRecord(**row) for row in doc.get("turns") or ()),
        owed_message=doc.get("owed_message"),
        owed_receipt=doc.get("owed_receipt"),
        turn_id=doc.get("turn_id"),
        refinements=doc.get("refinements", 0),
    )
