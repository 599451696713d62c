"""Answers of requests that carried an idempotency key, kept for 24 hours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pymongo.errors import DuplicateKeyError

from rayapp.admin.ports import IdempotencyRow
from rayapp.storage.mongo.convert import utc
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import IDEMPOTENCY, IDEMPOTENCY_TTL_S

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
