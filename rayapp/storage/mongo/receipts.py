"""Receipts of what was shown, and first answers by idempotency key. Both expire."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from pymongo import DESCENDING
from pymongo.errors import DuplicateKeyError

from rayapp.admin.ports import IdempotencyRow
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, Shown
from rayapp.storage.mongo.convert import readable, utc
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import IDEMPOTENCY, IDEMPOTENCY_TTL_S, RECEIPTS
from rayapp.storage.mongo.predicates import mine

# Answers of requests that carried an idempotency key, kept for 24 hours.

Document = dict[str, Any]
FIELDS = ("user_id", "route", "key", "body_sha256", "state", "at", "status", "response")
LIFETIME = timedelta(seconds=IDEMPOTENCY_TTL_S)


class MongoIdempotencyStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(IDEMPOTENCY)

    async def begin(self, row: IdempotencyRow) -> IdempotencyRow | None:
        doc: Document = {name: getattr(row, name) for name in FIELDS}
        utc(row.at)
        with translated():
            while True:
                try:
                    await self._rows.insert_one({**doc})
                    return None
                except DuplicateKeyError:
                    first = await self._rows.find_one(_key(row))
                # Gone, or due for the TTL monitor (which runs once a minute): try again.
                if first is not None and first["at"] > row.at - LIFETIME:
                    return IdempotencyRow(**{name: first[name] for name in FIELDS})
                if first is not None:
                    await self._rows.delete_one({"_id": first["_id"], "at": first["at"]})

    async def finish(self, row: IdempotencyRow) -> None:
        change = {"state": row.state, "status": row.status, "response": row.response}
        with translated():
            await self._rows.update_one(_key(row), {"$set": change})

    async def drop(self, row: IdempotencyRow) -> None:
        with translated():
            await self._rows.delete_one({**_key(row), "state": "running", "at": utc(row.at)})


def _key(row: IdempotencyRow) -> Document:
    return {"user_id": row.user_id, "route": row.route, "key": row.key}


# The TTL monitor runs once a minute; an expired row counts as gone at once.
NEWEST = [("at", DESCENDING), ("receipt_id", DESCENDING)]
NOT_EXPIRED: Document = {"$expr": {"$gt": ["$expires_at", "$$NOW"]}}


class MongoReceiptStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._receipts = database.collection(RECEIPTS)

    async def put(self, receipt: Receipt) -> None:
        with translated():
            await self._receipts.insert_one(_to_document(receipt))

    async def get(self, scope: ReadScope, receipt_id: str) -> Receipt | None:
        with translated():
            doc = await self._receipts.find_one(
                {**mine(scope), "receipt_id": receipt_id, **NOT_EXPIRED}
            )
        return receipt_from_document(doc) if doc else None

    async def latest(
        self, scope: ReadScope, conversation_id: str, limit: int, *, unscored: bool = False
    ) -> list[Receipt]:
        if limit < 1:
            return []
        where = living(scope, conversation_id)
        if unscored:
            where["scored_at"] = None
        with translated():
            docs = await self._receipts.find(where, sort=NEWEST, limit=limit).to_list()
        return readable(docs, receipt_from_document)

    async def questions(
        self,
        scope: ReadScope,
        conversation_id: str,
        limit: int,
        *,
        besides_turn: str | None = None,
    ) -> list[tuple[str, tuple[str, ...], datetime]]:
        if limit < 1:
            return []
        where, fields = living(scope, conversation_id), ("query", "concepts", "at")
        if besides_turn is not None:
            where["turn_id"] = {"$ne": besides_turn}
        with translated():
            docs = await self._receipts.find(where, fields, sort=NEWEST, limit=limit).to_list()
        return [(doc["query"], tuple(doc["concepts"]), doc["at"]) for doc in docs]

    async def recent(self, limit: int) -> list[Receipt]:
        """No user is named: a reindex replays what all of them asked, and shows it to nobody.

        `_id` grows with time, so the newest are found without one more index to write.
        """
        if limit < 1:
            return []
        with translated():
            docs = await self._receipts.find(
                NOT_EXPIRED, sort=[("_id", DESCENDING)], limit=limit
            ).to_list()
        found = readable(docs, receipt_from_document)
        return sorted(found, key=lambda one: (one.at, one.receipt_id), reverse=True)


def living(scope: ReadScope, conversation_id: str) -> Document:
    """The index is partial: it answers only a query that says what it keeps."""
    conversation = {"$eq": conversation_id, "$type": "string"}
    return {**mine(scope), "conversation_id": conversation, **NOT_EXPIRED}


def _to_document(receipt: Receipt) -> Document:
    return {
        "receipt_id": receipt.receipt_id,
        "user_id": receipt.user_id,
        "conversation_id": receipt.conversation_id,
        "turn_id": receipt.turn_id,
        "query": receipt.query,
        "recipe": receipt.recipe,
        "concepts": list(receipt.concepts),
        "context_type": receipt.context_type,
        "shown": [
            {
                "position": shown.position,
                "memory_id": shown.memory_id,
                "tier": shown.tier.value,
                "final": shown.final,
                "ranks": shown.ranks,
            }
            for shown in receipt.shown
        ],
        "timings": receipt.timings,
        "degraded": list(receipt.degraded),
        "principal": receipt.principal,
        "scored_at": utc(receipt.scored_at),
        "at": utc(receipt.at),
        "expires_at": utc(receipt.expires_at),
    }


def receipt_from_document(doc: Document) -> Receipt:
    shown = [Shown(**{**row, "tier": Tier(row["tier"])}) for row in doc["shown"]]
    return Receipt(
        receipt_id=doc["receipt_id"],
        user_id=doc["user_id"],
        conversation_id=doc["conversation_id"],
        turn_id=doc["turn_id"],
        query=doc["query"],
        recipe=doc["recipe"],
        concepts=tuple(doc["concepts"]),
        context_type=doc["context_type"],
        shown=tuple(shown),
        timings=doc["timings"],
        degraded=tuple(doc["degraded"]),
        principal=doc.get("principal", ""),
        scored_at=doc.get("scored_at"),
        at=doc["at"],
        expires_at=doc["expires_at"],
    )
