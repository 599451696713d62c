"""Kept conversations: their rows in `sessions`, the words of their turns in `turns`."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pymongo
from pymongo import ASCENDING, DESCENDING

from rayapp.assistant import ports
from rayapp.assistant.history.rules import title_left, turn_terms
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.database import (
    LONG_TIMEOUT_S,
    MongoDatabase,
    aggregated,
    first,
    listed,
    updated,
    upserted,
)
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.predicates import mine, own, text_is
from rayapp.storage.mongo.rows import may_lack, reader, to_row, utc

Document = dict[str, Any]
may_lack(ports.Conversation)
may_lack(ports.KeptTurn)
# What a list reads of a row: fingerprints and turns stay on the server.
SHOWN = tuple(ports.Conversation.__dataclass_fields__)
# The type is what lets the server use the partial index.
KEPT: Document = {"last_at": {"$type": "date"}}
NEWEST = [("last_at", DESCENDING), ("conversation_id", DESCENDING)]
NEWEST_TURNS = [("at", DESCENDING), ("message_id", DESCENDING)]
OLDEST_TURNS = [("at", ASCENDING), ("message_id", ASCENDING)]
PLACE = ("user_id", "conversation_id", "at", "message_id")
# Turns with the words of a search among which the newest of each conversation is taken.
LOOKED_AT = 1_000
_EMPTY = ("words", "citations", "tools", "runs")
BLANK: Document = {"question": "", "answer": "", "feedback": None, **{name: [] for name in _EMPTY}}


class MongoConversationStore:
    """Implements `assistant.ports.ConversationStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._rows = database.collection(indexes.SESSIONS)
        self._turns = database.collection(indexes.TURNS)

    async def keep(self, scope: WriteScope, turn: ports.KeptTurn, title: str) -> None:
        row = to_row(turn) | {
            "point_id": point_id_of(turn.user_id, turn.memory_id),
            "words": list(turn_terms(turn.question, turn.answer)),
        }
        where = _one(scope, turn.conversation_id)
        said = {**where, "message_id": turn.message_id}
        with translated():
            await upserted(
                lambda: self._turns.update_one(said, [{"$set": _literal(row)}], upsert=True)
            )
        at = utc(turn.at)
        begun = {"title": title, "titled_by": "words", "created_at": at, "updated_at": at}
        change: Document = {
            name: {"$ifNull": [f"${name}", {"$literal": value}]} for name, value in begun.items()
        }
        change |= {"last_at": {"$max": ["$last_at", at]}, "expires_at": None}
        with translated():
            await upserted(lambda: self._rows.update_one(where, [{"$set": change}], upsert=True))

    async def turn(
        self, scope: ReadScope, conversation_id: str, message_id: str
    ) -> ports.KeptTurn | None:
        where = {**mine(scope), "conversation_id": conversation_id, "message_id": message_id}
        return await first(self._turns, where, reader(ports.KeptTurn))

    async def get(self, scope: ReadScope, conversation_id: str) -> ports.Conversation | None:
        where = {**mine(scope), "conversation_id": conversation_id, **KEPT}
        return await first(self._rows, where, reader(ports.Conversation), projection=SHOWN)

    async def page(
        self, scope: ReadScope, *, limit: int, before: ports.Place | None = None
    ) -> list[ports.Conversation]:
        where = {**mine(scope), **KEPT, **_behind("last_at", "conversation_id", before)}
        read = reader(ports.Conversation)
        return await listed(self._rows, where, read, sort=NEWEST, limit=limit, projection=SHOWN)

    async def turns(
        self,
        scope: ReadScope,
        conversation_id: str,
        *,
        limit: int,
        before: ports.Place | None = None,
    ) -> list[ports.KeptTurn]:
        where = {**mine(scope), "conversation_id": conversation_id}
        where |= _behind("at", "message_id", before)
        read = reader(ports.KeptTurn)
        return await listed(self._turns, where, read, sort=NEWEST_TURNS, limit=limit)

    async def find(
        self, scope: ReadScope, words: Sequence[Sequence[int]], limit: int
    ) -> list[ports.KeptTurn]:
        if not words or limit < 1:
            return []
        fits = [{"words": {"$in": list(one)}} for one in words]
        steps: list[Document] = [
            {"$match": {**mine(scope), "$and": fits}},
            {"$project": {"conversation_id": 1, "message_id": 1, "at": 1}},
            {"$sort": dict(NEWEST_TURNS)},
            {"$limit": LOOKED_AT},
        ]
        newest: dict[str, Any] = {}
        for doc in await aggregated(self._turns, steps):
            newest.setdefault(doc["conversation_id"], doc["_id"])
        ids = {"_id": {"$in": list(newest.values())[:limit]}}
        return await listed(self._turns, ids, reader(ports.KeptTurn), sort=NEWEST_TURNS)

    async def name(
        self, scope: WriteScope, conversation_id: str, title: str, by: ports.TitledBy
    ) -> bool:
        where = {**_one(scope, conversation_id), **KEPT}
        if by != "person":
            where["titled_by"] = "words"
        return await updated(self._rows, where, {"$set": {"title": title, "titled_by": by}})

    async def comment(
        self, scope: WriteScope, conversation_id: str, message_id: str, feedback: str
    ) -> bool:
        where = {**_one(scope, conversation_id), "message_id": message_id, "answer": {"$ne": ""}}
        return await updated(self._turns, where, {"$set": {"feedback": feedback}})

    async def sum_up(
        self, scope: WriteScope, conversation_id: str, bullets: Sequence[str], summed: int
    ) -> bool:
        where = {**_one(scope, conversation_id), **KEPT, "summed": {"$not": {"$gte": summed}}}
        told = {"bullets": list(bullets), "summed": summed}
        return await updated(self._rows, where, {"$set": told})

    async def untell(self, scope: WriteScope, conversation_id: str, title: str | None) -> None:
        where = {**_one(scope, conversation_id), **KEPT}
        await updated(self._rows, where, {"$unset": {"bullets": "", "summed": ""}})
        if title is not None:
            named = {"title": title, "titled_by": "words"}
            await updated(self._rows, {**where, "titled_by": {"$ne": "person"}}, {"$set": named})

    async def activate(self, scope: WriteScope, conversation_id: str | None, at: datetime) -> None:
        if conversation_id is None:
            active = {**own(scope), "active_at": {"$type": "date"}}
            with translated():
                await self._rows.update_many(active, {"$unset": {"active_at": ""}})
            return
        where = {**_one(scope, conversation_id), **KEPT}
        if not await updated(self._rows, where, {"$set": {"active_at": utc(at)}}):
            # One that does not exist yet: whoever was active is not any more.
            await self.activate(scope, None, at)

    async def active(self, scope: ReadScope) -> str | None:
        where = {**mine(scope), "active_at": {"$type": "date"}}
        order = [("active_at", DESCENDING)]
        return await first(
            self._rows,
            where,
            lambda doc: str(doc["conversation_id"]),
            sort=order,
            projection=("conversation_id",),
        )

    async def purge(self, point_ids: Sequence[str]) -> None:
        if not point_ids:
            return
        where = {"point_id": {"$in": list(point_ids)}}
        with translated():
            await self._turns.update_many(where, {"$set": BLANK})
            # What was said of the conversation may say it too, and is said anew without it.
            gone: dict[tuple[str, str], Document] = {}
            for one in await self._turns.find(where, PLACE, sort=OLDEST_TURNS).to_list():
                gone.setdefault((one["user_id"], one["conversation_id"]), one)
            for (user_id, conversation_id), one in gone.items():
                row = {"user_id": user_id, "conversation_id": conversation_id}
                await self._rows.update_one(row, {"$unset": {"bullets": "", "summed": ""}})
                await self._name_anew(row, one)

    async def _name_anew(self, row: Document, gone: Document) -> None:
        """Its name is made of the first words that were said in it, and goes with them. `gone`: the
        first turn that went."""
        left = await self._turns.find_one({**row, "question": {"$ne": ""}}, sort=OLDEST_TURNS)
        if left is not None and (left["at"], left["message_id"]) < (gone["at"], gone["message_id"]):
            return
        named = {"title": title_left(left["question"] if left else None), "titled_by": "words"}
        await self._rows.update_one(
            {**row, "titled_by": {"$ne": "person"}, **KEPT}, {"$set": named}
        )

    async def forget(self, scope: WriteScope, conversation_id: str) -> Mapping[str, int]:
        where = _one(scope, conversation_id)
        noted = {**own(scope), "data.conversation_id": text_is(conversation_id)}
        shown = {**own(scope), "conversation_id": text_is(conversation_id)}
        remove = self._database.remove
        return {
            "exchanges": await remove(indexes.EXCHANGES, where),
            "receipts": await remove(indexes.RECEIPTS, shown),
            "events": await remove(indexes.EVENTS, noted),
            "answers": await self._remove_answers(scope, conversation_id),
            "turns": await remove(indexes.TURNS, where),
            "conversation": await remove(indexes.SESSIONS, where),
        }

    # --- inside

    async def _remove_answers(self, scope: WriteScope, conversation_id: str) -> int:
        """First answers that are kept for repeats, of the last day: what they say names it."""
        name = json.dumps(conversation_id, ensure_ascii=False).encode()
        rows = self._database.collection(indexes.IDEMPOTENCY)
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            cursor = rows.find({**own(scope), "response": {"$ne": None}}, {"response": 1})
            ids = [doc["_id"] async for doc in cursor if name in bytes(doc["response"])]
            return (await rows.delete_many({"_id": {"$in": ids}})).deleted_count


def _literal(row: Document) -> Document:
    """What is said is a value, never an expression."""
    return {name: {"$literal": value} for name, value in row.items()}


def _one(scope: WriteScope, conversation_id: str) -> Document:
    return {**own(scope), "conversation_id": conversation_id}


def _behind(time: str, name: str, place: ports.Place | None) -> Document:
    if place is None:
        return {}
    at = utc(place[0])
    return {"$or": [{time: {"$lt": at}}, {time: at, name: {"$lt": place[1]}}]}
