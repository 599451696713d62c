"""The client of one MongoDB database: pool, time limits, write concern and schema."""

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pymongo
from bson.codec_options import CodecOptions
from pymongo import ASCENDING, AsyncMongoClient, ReturnDocument, UpdateOne, WriteConcern
from pymongo.asynchronous.change_stream import AsyncDatabaseChangeStream
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import BulkWriteError, ConnectionFailure, DuplicateKeyError, OperationFailure
from pymongo.read_concern import ReadConcern

from rayapp.core.errors import ConfigError, SchemaMismatch
from rayapp.core.settings.model import MongoSettings
from rayapp.storage.mongo.convert import readable, veiled
from rayapp.storage.mongo.errors import DUPLICATE_KEY, translated
from rayapp.storage.mongo.indexes import (
    CHANGES,
    INDEXES,
    ITEMS,
    RECEIPTS,
    RETIRED,
    VEILED_WORDS,
    IndexSpec,
    stored_options,
)
from rayapp.text.normalize import VEILED

Document = dict[str, Any]
Collection = AsyncCollection[Document]
Steps = Sequence[Mapping[str, Any]]
# Operators, or the steps of a pipeline.
Change = Mapping[str, Any] | Steps
T = TypeVar("T")

# Building indexes or touching every item of a large store takes minutes, not an operation's limit.
LONG_TIMEOUT_S = 600.0
# Counting index keys: a million take a second, on a busy machine ten.
COUNT_TIMEOUT_S = 30.0
UPSERT_TRIES = 5
# Rows of one write of `_unveil`: our choice.
UNVEILED_AT_ONCE = 500
# IndexOptionsConflict, IndexKeySpecsConflict, CannotCreateIndex (a second text index).
INDEX_CONFLICT_CODES = frozenset({85, 86, 67})
NAMESPACE_EXISTS = 48
INDEX_NOT_FOUND = 27

DURABLE = WriteConcern(w="majority", j=True)
# Receipts overlap with the answer and may be lost: the primary's word is enough. A change is noted
# before the write that it announces: where that one is durable, so is what stands before it.
FAST = WriteConcern(w=1)


class MongoDatabase:
    """Opens lazily: constructing it never waits for a server. Times come back tz-aware UTC."""

    def __init__(self, settings: MongoSettings) -> None:
        self.settings = settings
        self.client = _client(settings)
        self._database = self.client.get_database(
            settings.database,
            codec_options=CodecOptions(tz_aware=True, tzinfo=UTC),
            write_concern=DURABLE,
        )

    def __repr__(self) -> str:
        return f"MongoDatabase({redacted(self.settings.uri)}, {self.settings.database!r})"

    def collection(self, name: str) -> Collection:
        if name in (RECEIPTS, CHANGES):
            return self._database.get_collection(name, write_concern=FAST)
        return self._database.get_collection(name)

    async def read(self, command: Document) -> Document:
        """The server's whole answer to a command that only reads. Raises as the driver does."""
        answer: Document
        try:
            answer = await self._database.command(command)
        except ConnectionFailure:  # the driver repeats a find, not a command
            answer = await self._database.command(command)
        return answer

    async def ping(self) -> float:
        """Seconds of one round trip; raises StoreDown."""
        started = time.perf_counter()
        with translated():
            await self.client.admin.command("ping")
        return time.perf_counter() - started

    async def now(self) -> datetime:
        """The server's clock."""
        with translated():
            hello = await self.client.admin.command("hello")
        at: datetime = hello["localTime"]
        return at.replace(tzinfo=UTC)

    async def transaction(
        self,
        work: Callable[[AsyncClientSession], Coroutine[Any, Any, T]],
        *,
        passing: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> T:
        """`work` in one transaction, which the driver repeats with jitter when the server asks for
        that; errors as in `translated`."""
        with translated(passing=passing):
            # The session ends outside the limit: a transaction that is late is still aborted.
            async with self.client.start_session() as session:
                with pymongo.timeout(self.settings.timeout_s):
                    return await session.with_transaction(
                        work, read_concern=ReadConcern("snapshot"), write_concern=DURABLE
                    )

    async def ensure_schema(self) -> None:
        """Create what is missing, read all of it back; SchemaMismatch names what differs."""
        await self.ping()  # fails fast: within the long limit below, an absent server is waited for
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            for name, specs in INDEXES.items():
                await self._ensure_collection(name)
                if name == ITEMS and VEILED_WORDS.name not in await self.indexes(name):
                    await self._unveil()
                for spec in specs:
                    await self._ensure_index(name, spec)
                await self._check_indexes(name, specs)
            for name, index in RETIRED:
                await self._drop_index(name, index)

    async def _unveil(self) -> None:
        """Give rows of before the words that their texts veil; the index that comes after it says
        that this was done."""
        rows, seen = self.collection(ITEMS), {"$regex": VEILED.pattern}
        names = ("text", "summary", "tags")
        writes: list[UpdateOne] = []
        async with rows.find({"$or": [{name: seen} for name in names]}, names) as cursor:
            async for doc in cursor:
                # A row that cannot be read must not keep the service from starting.
                tags = filter(None, doc.get("tags") or ())
                words = veiled(doc.get("text") or "", doc.get("summary"), tags)
                if words:
                    writes.append(UpdateOne({"_id": doc["_id"]}, {"$set": words}))
                if len(writes) == UNVEILED_AT_ONCE:
                    await rows.bulk_write(writes, ordered=False)
                    writes = []
        if writes:
            await rows.bulk_write(writes, ordered=False)

    async def stop_expiry(self) -> None:
        """Drop the indexes by which the server removes what is past its time."""
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            for name, specs in INDEXES.items():
                for spec in specs:
                    if spec.ttl_s is not None:
                        await self._drop_index(name, spec.name)

    async def indexes(self, name: str) -> dict[str, Mapping[str, Any]]:
        """The indexes of a collection by name, as the server describes them."""
        with translated():
            async with await self.collection(name).list_indexes() as cursor:
                return {raw["name"]: raw async for raw in cursor}

    async def watch(
        self, pipeline: Sequence[Document], wait_ms: int, **start: Any
    ) -> AsyncDatabaseChangeStream[Document]:
        """What changes in all collections, with the row that an update left; raises as pymongo.

        Args:
            wait_ms: how long one look waits for a change.
            start: `resume_after` or `start_at_operation_time`; neither: from now on.
        """
        return await self._database.watch(
            pipeline, full_document="updateLookup", max_await_time_ms=wait_ms, **start
        )

    async def count(self, name: str, where: Document) -> int:
        """Rows of a collection, however long that takes."""
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            return await self.collection(name).count_documents(where)

    async def remove(self, name: str, where: Document) -> int:
        """Delete rows of a collection, however long that takes; how many."""
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            return (await self.collection(name).delete_many(where)).deleted_count

    async def close(self) -> None:
        await self.client.close()

    async def _ensure_collection(self, name: str) -> None:
        try:
            await self._database.command({"create": name})
        except OperationFailure as error:
            if error.code != NAMESPACE_EXISTS:
                raise

    async def _ensure_index(self, name: str, spec: IndexSpec) -> None:
        try:
            await self.collection(name).create_indexes([spec.model()])
        except OperationFailure as error:
            if error.code in INDEX_CONFLICT_CODES:
                raise _mismatch(name, spec.name) from None
            raise

    async def _drop_index(self, name: str, index: str) -> None:
        try:
            await self.collection(name).drop_index(index)
        except OperationFailure as error:
            if error.code != INDEX_NOT_FOUND:
                raise

    async def _check_indexes(self, name: str, specs: tuple[IndexSpec, ...]) -> None:
        stored = await self.indexes(name)
        for spec in specs:
            raw = stored.get(spec.name)
            if raw is None or stored_options(raw) != spec.as_stored():
                raise _mismatch(name, spec.name)


async def first(
    rows: Collection, where: Mapping[str, Any], read: Callable[[Document], T], **how: Any
) -> T | None:
    """What `read` makes of the first row, None when there is none; `how` as in `find_one`."""
    with translated():
        doc = await rows.find_one(where, **how)
    return None if doc is None else read(doc)


async def listed(
    rows: Collection,
    where: Mapping[str, Any],
    read: Callable[[Document], T],
    *,
    limit: int | None = None,
    **how: Any,
) -> list[T]:
    """What `read` makes of the rows that it can read; `how` as in `find`, None is no limit."""
    if limit is not None and limit < 1:
        return []
    with translated():
        docs = await rows.find(where, limit=limit or 0, **how).to_list()
    return readable(docs, read)


async def readable_first(
    rows: Collection,
    where: Mapping[str, Any],
    read: Callable[[Document], T],
    limit: int,
    **how: Any,
) -> list[T]:
    """As `listed`, row by row: one that cannot be read must not take the place of another."""
    found: list[T] = []
    if limit < 1:
        return found
    with translated():
        async with rows.find(where, batch_size=limit, **how) as cursor:
            async for doc in cursor:
                found += readable([doc], read)
                if len(found) == limit:
                    break
    return found


async def page_after(
    rows: Collection, key: str, after: tuple[str, str] | None, limit: int, kept: Mapping[str, Any]
) -> list[Document]:
    """The next rows of all users in the order of user and key, with these fields and `kept`."""
    where: Document = {}
    if after is not None:
        user_id, last = after
        where = {"$or": [{"user_id": user_id, key: {"$gt": last}}, {"user_id": {"$gt": user_id}}]}
    order = [("user_id", ASCENDING), (key, ASCENDING)]
    fields = {"user_id": True, key: True, **kept}
    return await listed(rows, where, dict, sort=order, limit=limit, projection=fields)


def last_of(page: Sequence[Document], key: str, limit: int) -> tuple[str, str] | None:
    """Where the next page begins; None: there is none."""
    return (page[-1]["user_id"], page[-1][key]) if len(page) >= limit > 0 else None


async def aggregated(rows: Collection, steps: Steps, **how: Any) -> list[Document]:
    """What the steps make of the rows; `how` as in `aggregate`."""
    with translated():
        return await (await rows.aggregate(steps, **how)).to_list()


async def changed(
    rows: Collection,
    where: Mapping[str, Any],
    change: Change,
    read: Callable[[Document], T],
    **how: Any,
) -> T | None:
    """What `read` makes of the first row after its change, None when there is none; `how` as in
    `find_one_and_update`."""
    with translated():
        doc = await rows.find_one_and_update(
            where, change, return_document=ReturnDocument.AFTER, **how
        )
    return None if doc is None else read(doc)


async def updated(rows: Collection, where: Mapping[str, Any], change: Change) -> bool:
    """Change the first row; whether there is one."""
    with translated():
        return (await rows.update_one(where, change)).matched_count > 0


async def upserted(write: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """A write that may add its row. Two first ones race: the one that lost finds the row then.

    Raises as the driver does; DuplicateKeyError: it lost every race.
    """
    for _ in range(UPSERT_TRIES - 1):
        with suppress(DuplicateKeyError):
            return await write()
    return await write()


async def unless_there(rows: Collection, writes: Sequence[UpdateOne]) -> list[int]:
    """Writes that may add their rows; which of them did not, because such a row is there already.

    Raises as the driver does.
    """
    try:
        await rows.bulk_write(writes, ordered=False)
    except BulkWriteError as error:
        details = error.details or {}
        refused = details.get("writeErrors", ())
        others = [one for one in refused if one["code"] != DUPLICATE_KEY]
        if others or details.get("writeConcernErrors"):
            raise
        return [int(one["index"]) for one in refused]
    return []


def _client(settings: MongoSettings) -> AsyncMongoClient[Document]:
    """Not `timeoutMS`: with it the driver waits that long for an absent server, not
    `serverSelectionTimeoutMS`, and a store that is down must be known quickly."""
    if not settings.uri:
        raise ConfigError("No MongoDB: set MONGODB_URI, or start the local stack.")
    if not settings.uri.startswith(("mongodb://", "mongodb+srv://")):
        raise ConfigError("MONGODB_URI must start with mongodb:// or mongodb+srv://.")
    try:
        with translated():
            return AsyncMongoClient(
                settings.uri,
                appname="rayapp",
                maxPoolSize=settings.pool_size,
                waitQueueTimeoutMS=round(settings.timeout_s * 1000),
                socketTimeoutMS=round(settings.timeout_s * 1000),
                serverSelectionTimeoutMS=round(settings.server_selection_s * 1000),
                connectTimeoutMS=round(settings.server_selection_s * 1000),
                retryReads=True,
                retryWrites=True,
            )
    except ValueError:
        raise ConfigError(
            "MONGODB_URI cannot be read: percent-encode the user and password, check the port."
        ) from None


def redacted(uri: str) -> str:
    """`uri` without user, password and options, for logs."""
    parts = urlsplit(uri)
    hosts = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{hosts}"


def _mismatch(collection: str, index: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"Index {index} of {collection} differs from this version's: drop it and start again.",
        details={"collection": collection, "index": index},
    )
