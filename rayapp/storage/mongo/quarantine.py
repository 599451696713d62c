"""Points that were taken out of the index, whole, until the server forgets them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from pymongo import DESCENDING, UpdateOne

from rayapp.bulk.rules import plain
from rayapp.core.vectors import SparseVector
from rayapp.index.records import StoredPoint
from rayapp.index.rules.points import home_of
from rayapp.storage.mongo.database import MongoDatabase, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import QUARANTINE, QUARANTINE_TTL_S
from rayapp.storage.mongo.predicates import younger

Document = dict[str, Any]
Kept = tuple[StoredPoint, str, datetime]

FLOATS = "<f4"  # float32, little-endian: a quarter of what numbers in a document take


class MongoQuarantine:
    def __init__(self, database: MongoDatabase) -> None:
        self._points = database.collection(QUARANTINE)

    async def keep(self, points: Sequence[StoredPoint], reason: str) -> None:
        """A point that comes again is kept from now on; vectors that it had before stay."""
        if not points:
            return
        writes = [
            UpdateOne(
                {"point_id": point.point_id, "rev": int(point.payload.get("rev", 0))},
                {
                    "$set": {"reason": reason, "home": home_of(point.payload), **_parts(point)},
                    "$currentDate": {"at": True},
                },
                upsert=True,
            )
            for point in points
        ]
        with translated():
            await self._points.bulk_write(writes, ordered=False)

    async def purge(self, point_ids: Sequence[str]) -> None:
        if not point_ids:
            return
        any_of = {"$in": list(point_ids)}
        with translated():
            await self._points.delete_many({"$or": [{"point_id": any_of}, {"home": any_of}]})

    async def kept(self, limit: int) -> list[Kept]:
        order = [("at", DESCENDING)]
        return await listed(
            self._points, younger("at", QUARANTINE_TTL_S), _kept, sort=order, limit=limit
        )


def _parts(point: StoredPoint) -> Document:
    parts: Document = {"payload": plain(point.payload)}
    if point.dense is not None:
        parts["dense"] = np.asarray(point.dense, FLOATS).tobytes()
    if point.sparse is not None:
        parts["sparse"] = {"indices": point.sparse.indices, "values": point.sparse.values}
    return parts


def _kept(doc: Document) -> Kept:
    dense, sparse = doc.get("dense"), doc.get("sparse")
    point = StoredPoint(
        point_id=doc["point_id"],
        payload=doc["payload"],
        dense=None if dense is None else np.frombuffer(dense, FLOATS).astype(np.float32),
        sparse=None if sparse is None else SparseVector(sparse["indices"], sparse["values"]),
    )
    return point, doc["reason"], doc["at"]
