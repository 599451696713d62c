"""Leases with fencing tokens. All times are the server's, so holders need no common clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from rayapp.bulk.ports import Lease
from rayapp.memory.paging import EPOCH
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import LEASES

Document = dict[str, Any]
ALIVE: Document = {"$gt": ["$expires_at", "$$NOW"]}


class MongoLeaseStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._leases = database.collection(LEASES)

    async def acquire(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """Renewing keeps the fence; any other way to get the lease raises it."""
        with translated():
            doc = await self._take(name, holder, ttl_s)
            if doc is None and await self._create(name):
                doc = await self._take(name, holder, ttl_s)
        return _lease(doc) if doc else None

    async def release(self, lease: Lease) -> None:
        """The row stays, so that the fence goes on growing."""
        with translated():
            await self._leases.update_one(
                {"_id": lease.name, "holder": lease.holder, "fence": lease.fence},
                [{"$set": {"holder": None, "expires_at": EPOCH, "released_at": "$$NOW"}}],
            )

    async def last_released(self, name: str) -> datetime | None:
        with translated():
            doc = await self._leases.find_one({"_id": name}, {"released_at": 1})
        return doc.get("released_at") if doc else None

    async def current(self, name: str) -> Lease | None:
        with translated():
            doc = await self._leases.find_one({"_id": name, "$expr": ALIVE})
        return _lease(doc) if doc else None

    async def _take(self, name: str, holder: str, ttl_s: float) -> Document | None:
        mine = {"$eq": ["$holder", {"$literal": holder}]}
        renewed = {"$and": [mine, ALIVE]}
        change = {
            "holder": {"$literal": holder},
            "fence": {"$cond": [renewed, "$fence", {"$add": ["$fence", 1]}]},
            "expires_at": {"$add": ["$$NOW", round(ttl_s * 1000)]},
        }
        return await self._leases.find_one_and_update(
            {"_id": name, "$expr": {"$or": [mine, {"$not": ALIVE}]}},
            [{"$set": change}],
            return_document=ReturnDocument.AFTER,
        )

    async def _create(self, name: str) -> bool:
        """Add the row of a new lease, free; False when it is there already."""
        try:
            await self._leases.insert_one(
                {"_id": name, "holder": None, "fence": 0, "expires_at": EPOCH}
            )
        except DuplicateKeyError:
            return False
        return True


def _lease(doc: Document) -> Lease:
    return Lease(
        name=doc["_id"], holder=doc["holder"], fence=doc["fence"], expires_at=doc["expires_at"]
    )
