"""The MongoDB implementation of `SharedItems`: the catalogue's items and graph, in transactions."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pymongo
from pymongo import DeleteOne, InsertOne, ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, DuplicateKeyError

from rayapp.core.errors import NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.datagov.ports import PutCounts
from rayapp.datagov.rules.changes import (
    Change,
    check_shared,
    graph_changes,
    put_change,
    retire_change,
)
from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import DATAGOV_TIERS
from rayapp.storage.mongo import convert
from rayapp.storage.mongo.database import LONG_TIMEOUT_S, MongoDatabase
from rayapp.storage.mongo.errors import translate, translated
from rayapp.storage.mongo.graph_convert import content_edge, content_node
from rayapp.storage.mongo.indexes import EDGES, ITEMS, NODES, VERSIONS
from rayapp.storage.mongo.memory_store import INSERT_TRIES, revision_document
from rayapp.storage.mongo.predicates import own
from rayapp.storage.mongo.rows import to_row

Document = dict[str, Any]
SHARED: Document = own(WriteScope(SYSTEM_USER))
# Items of one transaction: about 0.2 s of work, far below the limit of an operation.
BATCH = 250
# What two drivers that write the same item run into; the later one looks again.
EDGE_KEY = ("source", "target", "relation")
DUPLICATES = (DuplicateKeyError, BulkWriteError)


class MongoSharedItems:
    def __init__(self, database: MongoDatabase) -> None:
        self._transaction = database.transaction
        self._items = database.collection(ITEMS)
        self._versions = database.collection(VERSIONS)
        self._nodes = database.collection(NODES)
        self._edges = database.collection(EDGES)

    async def record_hashes(
        self, memory_ids: Sequence[str] | None = None
    ) -> dict[str, tuple[str, Status]]:
        where: Document = {**SHARED, "tier": {"$in": [tier.value for tier in DATAGOV_TIERS]}}
        if memory_ids is not None:
            where["memory_id"] = {"$in": list(memory_ids)}
        fields = {"memory_id": 1, "status": 1, "source.datagov.record_hash": 1}
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            docs = await self._items.find(where, fields).to_list()
        return dict(convert.readable(docs, _hash_of))

    async def put(self, items: Sequence[MemoryItem]) -> PutCounts:
        check_shared(items)
        inserted = updated = 0
        for batch in _batches(list({item.memory_id: item for item in items}.values())):
            by_id = {item.memory_id: item for item in batch}

            def change(
                memory_id: str, stored: MemoryItem | None, wanted: dict[str, MemoryItem] = by_id
            ) -> Change | None:
                return put_change(stored, wanted[memory_id])

            counted = await self._change(list(by_id), change)
            inserted += counted[0]
            updated += counted[1]
        return PutCounts(inserted=inserted, updated=updated)

    async def retire(self, memory_ids: Sequence[str], reason: str, at: datetime) -> int:
        def change(memory_id: str, stored: MemoryItem | None) -> Change | None:
            return None if stored is None else retire_change(stored, reason, at)

        retired = 0
        for batch in _batches(list(dict.fromkeys(memory_ids))):
            retired += (await self._change(batch, change))[1]
        return retired

    async def put_graph(self, nodes: Sequence[ContentNode], edges: Sequence[ContentEdge]) -> int:
        async def write(session: AsyncClientSession) -> int:
            # Ids that a reader could not convert are written anew: they are not among the stored.
            docs = await self._nodes.find(SHARED, session=session).to_list()
            changes = graph_changes(convert.readable(docs, content_node), nodes)
            node_writes = _writes(("node_id",), *(list(map(_node_row, one)) for one in changes))
            docs = await self._edges.find(SHARED, session=session).to_list()
            moved = graph_changes(convert.readable(docs, content_edge), edges)
            edge_writes = _writes(EDGE_KEY, *(list(map(to_row, one)) for one in moved))
            if node_writes:
                await self._nodes.bulk_write(node_writes, session=session)
            if edge_writes:
                await self._edges.bulk_write(edge_writes, session=session)
            return len(node_writes) + len(edge_writes)

        return await self._transaction(write)

    async def _change(
        self, memory_ids: Sequence[str], change: Callable[[str, MemoryItem | None], Change | None]
    ) -> tuple[int, int]:
        """How many were inserted, and how many revised, all in one transaction."""

        async def write(session: AsyncClientSession) -> tuple[int, int]:
            return await self._write(memory_ids, change, session)

        tries = INSERT_TRIES
        while True:
            try:
                return await self._transaction(write, passing=DUPLICATES)
            except DUPLICATES as error:
                tries -= 1
                if not tries:
                    raise translate(error) from None

    async def _write(
        self,
        memory_ids: Sequence[str],
        change: Callable[[str, MemoryItem | None], Change | None],
        session: AsyncClientSession,
    ) -> tuple[int, int]:
        where = {**SHARED, "memory_id": {"$in": list(memory_ids)}}
        docs = await self._items.find(where, session=session).to_list()
        stored = {doc["memory_id"]: doc for doc in docs}
        writes: list[InsertOne[Document] | ReplaceOne[Document]] = []
        rows: list[Document] = []
        inserted = 0
        for memory_id in memory_ids:
            doc = stored.get(memory_id)
            changed = change(memory_id, None if doc is None else _item(doc))
            if changed is None:
                continue
            item, row = changed
            inserted += row is None
            if doc is None:
                writes.append(InsertOne(convert.to_document(item)))
            else:
                writes.append(ReplaceOne({"_id": doc["_id"]}, revision_document(item, doc)))
            if row is not None:
                rows.append(convert.version_document(row))
        if writes:
            await self._items.bulk_write(writes, ordered=True, session=session)
        if rows:
            await self._versions.insert_many(rows, session=session)
        return inserted, len(writes) - inserted


def _batches(values: Sequence[Any]) -> Iterator[list[Any]]:
    for at in range(0, len(values), BATCH):
        yield list(values[at : at + BATCH])


def _item(doc: Document) -> MemoryItem:
    try:
        return convert.from_document(doc)
    except convert.UNREADABLE:
        raise NotFound(
            f"The row of {doc.get('memory_id')} cannot be read: remove it and run the job again."
        ) from None


def _hash_of(doc: Document) -> tuple[str, tuple[str, Status]]:
    datagov = (doc.get("source") or {}).get("datagov") or {}
    return doc["memory_id"], (str(datagov.get("record_hash", "")), Status(doc["status"]))


def _writes(
    key: tuple[str, ...], changed: Sequence[Document], gone: Sequence[Document]
) -> list[ReplaceOne[Document] | DeleteOne]:
    """Rows of the catalogue's graph, each known by the fields of `key`."""

    def key_of(row: Document) -> Document:
        return {**SHARED, **{name: row[name] for name in key}}

    return [
        *(ReplaceOne(key_of(row), {**SHARED, **row}, upsert=True) for row in changed),
        *(DeleteOne(key_of(row)) for row in gone),
    ]


def _node_row(node: ContentNode) -> Document:
    """Rows keep the memories in the order in which they came."""
    return to_row(node) | {"memory_ids": list(reversed(node.memory_ids))}
