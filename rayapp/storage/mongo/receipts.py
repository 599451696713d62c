"""Receipts of what was shown, and first answers by idempotency key. Both expire."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pymongo import DESCENDING
from pymongo.errors import DuplicateKeyError

from rayapp.admin.ports import IdempotencyRow
from rayapp.memory.scope import ReadScope
from rayapp.search.ports import Receipt
from rayapp.storage.mongo.database import MongoDatabase, first, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import IDEMPOTENCY, IDEMPOTENCY_TTL_S, RECEIPTS
from rayapp.storage.mongo.predicates import later, mine, text_is
from rayapp.storage.mongo.rows import from_row, may_lack, reader, to_row, utc

Document = dict[str, Any]
may_lack(Receipt, "principal", "scored_at")
_receipt = reader(Receipt)
LIFETIME = timedelta(seconds=IDEMPOTENCY_TTL_S)


class MongoIdempotencyStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(IDEMPOTENCY)

    async def begin(self, row: IdempotencyRow) -> IdempotencyRow | None:
        doc = to_row(row)
        with translated():
            while True:
                try:
                    await self._rows.insert_one({**doc})
                    return None
                except DuplicateKeyError:
                    first = await self._rows.find_one(_key(row))
                # Gone, or due for the TTL monitor (which runs once a minute): try again.
                if first is not None and first["at"] > row.at - LIFETIME:
                    return from_row(IdempotencyRow, first)
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


NEWEST = [("at", DESCENDING), ("receipt_id", DESCENDING)]
NOT_EXPIRED = later("expires_at")


class MongoReceiptStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._receipts = database.collection(RECEIPTS)

    async def put_many(self, receipts: Sequence[Receipt]) -> None:
        with translated():
            await self._receipts.insert_many(map(to_row, receipts), ordered=False)

    async def get(self, scope: ReadScope, receipt_id: str) -> Receipt | None:
        where = {**mine(scope), "receipt_id": receipt_id, **NOT_EXPIRED}
        return await first(self._receipts, where, _receipt)

    async def latest(
        self, scope: ReadScope, conversation_id: str, limit: int, *, unscored: bool = False
    ) -> list[Receipt]:
        where = living(scope, conversation_id)
        if unscored:
            where["scored_at"] = None
        return await listed(self._receipts, where, _receipt, sort=NEWEST, limit=limit)

    async def questions(
        self, scope: ReadScope, conversation_id: str, limit: int, *, besides_turn: str | None = None
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
        order = [("_id", DESCENDING)]
        found = await listed(self._receipts, NOT_EXPIRED, _receipt, sort=order, limit=limit)
        return sorted(found, key=lambda one: (one.at, one.receipt_id), reverse=True)


def living(scope: ReadScope, conversation_id: str) -> Document:
    return {**mine(scope), "conversation_id": text_is(conversation_id), **NOT_EXPIRED}
