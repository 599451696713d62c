"""Rows as the server sends them, a reply at a time, each decoded when it is taken."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import bson
from bson import json_util
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import Status
from rayapp.portability.ports import RowsSize
from rayapp.portability.rules.archive import Row
from rayapp.portability.rules.collections import ITEMS, Collection
from rayapp.storage.mongo.convert import PLAIN
from rayapp.storage.mongo.database import Collection as Rows
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated

# Rows of one reply at most; the server ends it at 16 MB too.
PAGE = 1_000
BY_ID = "_id_"


async def raw_pages(
    rows: Rows,
    where: dict[str, Any],
    left_out: dict[str, int],
    session: AsyncClientSession | None = None,
    **how: Any,
) -> AsyncIterator[tuple[Iterator[Row], int]]:
    """The rows and their bytes; `how` as in `find`. Raises as the driver does.

    Take them off the loop. A row that is let go of before the next one is decoded costs a fifth:
    a page of them is work for the garbage collector (measured: 42 us for each, not 8). Times have
    no zone, they are UTC: giving each its zone is a third of the rest.
    """
    found = rows.find_raw_batches(where, left_out, batch_size=PAGE, session=session, **how)
    async with found as cursor:
        reply: Any  # bytes, whatever the driver declares
        async for reply in cursor:
            if reply:
                yield bson.decode_iter(reply, PLAIN), len(reply)


class MongoAllRows:
    """Implements `portability.parquet.AllRows`: a place is an `_id`, in the order of its index."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database

    async def size(self, collection: Collection) -> RowsSize:
        with translated():
            found = await self._database.read({"collStats": collection.name})
        return RowsSize(int(found["count"]), int(found["size"]))

    async def places(self, collection: Collection, every: int) -> list[str]:
        found, seen = [], 0
        rows = self._database.collection(collection.name)
        with translated():
            ids = raw_pages(rows, {}, {"_id": 1}, hint=BY_ID, sort=[("_id", 1)])
            async for page, _ in ids:
                first = -seen % every or (0 if seen else every)
                many = await asyncio.to_thread(list, page)
                found += [_place(row["_id"]) for row in many[first::every]]
                seen += len(many)
        return found

    async def pages(
        self, collection: Collection, after: str | None, until: str | None
    ) -> AsyncIterator[tuple[Iterator[Row], int]]:
        where: dict[str, Any] = {"user_id": {"$type": "string", "$ne": SYSTEM_USER}}
        if collection.name == ITEMS:
            where["status"] = {"$ne": Status.DELETED.value}
        left_out = dict.fromkeys(("_id", *collection.renewed), 0)
        # Bounds of the index, because a comparison sees ids of one type alone.
        how: dict[str, Any] = {"hint": BY_ID}
        if after is not None:
            how["min"] = {"_id": _id(after)}
        if until is not None:
            how["max"] = {"_id": _id(until)}
        rows = self._database.collection(collection.name)
        with translated():
            async for page in raw_pages(rows, where, left_out, **how):
                yield page


def _place(value: Any) -> str:
    return json_util.dumps({"_id": value}, json_options=json_util.CANONICAL_JSON_OPTIONS)


def _id(place: str) -> Any:
    return json_util.loads(place, json_options=json_util.CANONICAL_JSON_OPTIONS)["_id"]
