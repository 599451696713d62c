"""The whole database as it stood at one moment, collection by collection, as BSON."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pymongo
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, PyMongoError

from rayapp.core.ids import WARM_UP_USER
from rayapp.core.settings.model import MongoSettings
from rayapp.memory.item import Status
from rayapp.portability.rules.collections import BY_NAME, COLLECTIONS, ITEMS, Owner
from rayapp.storage.mongo.database import LONG_TIMEOUT_S, MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import INDEXES
from rayapp.storage.mongo.predicates import text_terms, worded
from rayapp.storage.mongo.user_keys import MongoUserKeys

RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
# Documents of one page, and bytes after which it ends before.
PAGE, PAGE_BYTES = 1_000, 8 << 20
NAMES = tuple(one.name for one in COLLECTIONS if one.backed_up)
OF_USERS = tuple(one.name for one in COLLECTIONS if one.backed_up and one.owner is Owner.USER)
# How long the server keeps the moment that a session reads, seconds.
WINDOW, WINDOW_S = "minSnapshotHistoryWindowInSeconds", 3_600
# The server's code for a second row with the key of a unique index.
CLASH = 11000


class MongoSnapshot:
    """Documents as the server sends them."""

    def __init__(self, database: MongoDatabase, session: AsyncClientSession | None) -> None:
        self._database, self._session = database, session

    async def pages(self, name: str) -> AsyncIterator[list[bytes]]:
        """In the order of their ids."""
        async for page in self._pages(name, "_id"):
            yield [bytes(row.raw) for row in page]

    async def owned_pages(self, name: str) -> AsyncIterator[list[tuple[str, bytes]]]:
        """Those of a user stand together."""
        paths = BY_NAME[name].owner_fields
        by_owner = [
            spec.name
            for spec in INDEXES.get(name, ())
            if spec.keys[0][0] == paths[0] and not spec.only and not spec.weights
        ]
        async for page in self._pages(name, *paths, hint=by_owner[0] if by_owner else None):
            yield [(_owner_of(row, paths), bytes(row.raw)) for row in page]

    async def _pages(
        self, name: str, *order: str, hint: str | None = None
    ) -> AsyncIterator[list[RawBSONDocument]]:
        rows = self._database.collection(name).with_options(codec_options=RAW)
        page: list[RawBSONDocument] = []
        size = 0
        with translated():
            found = rows.find(
                {},
                sort=[(path, 1) for path in order],
                batch_size=PAGE,
                session=self._session,
                hint=hint,
            )
            async with found as cursor:
                async for row in cursor:
                    page.append(row)
                    size += len(row.raw)
                    if len(page) == PAGE or size >= PAGE_BYTES:
                        yield page
                        page, size = [], 0
        if page:
            yield page


def _owner_of(row: RawBSONDocument, paths: Sequence[str]) -> str:
    """Empty: nobody."""
    for path in paths:
        value: Any = row
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, str):
            return value
    return ""


class MongoBackups:
    """Implements what `portability.backup.BackupService` reads and writes."""

    names: Sequence[str] = NAMES

    def __init__(self, settings: MongoSettings, *, expires: bool = True) -> None:
        """`expires` False: rows past their time stay, so that they can be compared."""
        self._settings, self._expires = settings, expires
        self._database = MongoDatabase(settings)
        self.user_keys = MongoUserKeys(self._database)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[MongoSnapshot]:
        """All collections as of one time of the cluster, which the server keeps as long as this
        takes, where it lets us say so."""
        async with (
            self._long_window(),
            self._database.client.start_session(snapshot=True) as session,
        ):
            yield MongoSnapshot(self._database, session)

    @asynccontextmanager
    async def _long_window(self) -> AsyncIterator[None]:
        """The server's own 300 s end every backup of a large store. Not longer always: what changes
        replace is kept for that time, which costs 7 % of the writes (measured)."""
        before: int | None = None
        with suppress(PyMongoError):  # whose right that is not, or a server without it
            found = await self._database.client.admin.command({"getParameter": 1, WINDOW: 1})
            if found[WINDOW] < WINDOW_S:  # else somebody chose it, or another backup reads
                await self._database.client.admin.command({"setParameter": 1, WINDOW: WINDOW_S})
                before = found[WINDOW]
        try:
            yield
        finally:
            if before is not None:
                with suppress(PyMongoError):
                    await self._database.client.admin.command({"setParameter": 1, WINDOW: before})

    @asynccontextmanager
    async def scratch(self, name: str) -> "AsyncIterator[MongoBackups]":
        """Another database on the same server, which is dropped afterwards."""
        settings = self._settings.model_copy(update={"database": name})
        other = MongoBackups(settings, expires=False)
        try:
            yield other
        finally:
            await other.drop(name)
            await other.close()

    async def databases(self) -> list[str]:
        """Those of the server that may be seen."""
        with translated():
            return await self._database.client.list_database_names()

    async def drop(self, name: str) -> None:
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            await self._database.client.drop_database(name)

    async def prepare(self) -> None:
        """Collections and indexes."""
        await self._database.ensure_schema()
        if not self._expires:
            await self._database.stop_expiry()

    async def total(self) -> int:
        """Documents of users, but what a start leaves by itself. What the service keeps of its own,
        a row per day or the key of an operator, does not make a new machine a used one."""
        where = {"user_id": {"$ne": WARM_UP_USER}}
        return sum([await self._database.count(one, where) for one in OF_USERS])

    async def empty(self) -> None:
        for name in self.names:
            await self._database.remove(name, {})

    async def load(self, name: str, rows: Iterable[bytes]) -> None:
        """Write documents; those that are there (a repeat) are replaced, and so is one with the
        same unique key, such as today's row of the service."""
        writes: list[Any] = [
            pymongo.ReplaceOne({"_id": doc["_id"]}, doc, upsert=True)
            for doc in map(RawBSONDocument, rows)
        ]
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            if not writes:
                return
            target = self._database.collection(name)
            try:
                await target.bulk_write(writes, ordered=False)
            except BulkWriteError as error:
                refused = error.details["writeErrors"]
                if any(one["code"] != CLASH for one in refused):
                    raise
                await target.delete_many({"$or": [one["keyValue"] for one in refused]})
                await target.bulk_write(writes, ordered=False)

    async def pages(self, name: str) -> AsyncIterator[list[bytes]]:
        async for page in MongoSnapshot(self._database, None).pages(name):
            yield page

    async def finds(self, memory: bytes) -> bool | None:
        """By the text index, as the search does that has no vector index."""
        doc = RawBSONDocument(memory)
        terms = text_terms(str(doc["text"]))
        if not terms or doc["status"] == Status.DELETED.value:
            return None
        where = {"_id": doc["_id"], **worded(doc["user_id"], terms)}
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            return await self._database.collection(ITEMS).find_one(where, {"_id": 1}) is not None

    async def close(self) -> None:
        await self._database.close()
