"""Rows of one user as a whole, and the first client's old collection of facts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pymongo
from bson import ObjectId
from pymongo import DESCENDING, ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.admin.ports import LegacyFact
from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import RowCounts
from rayapp.memory.rules.creation import deleted
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.rules.revision import said_elsewhere
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.portability.rules.collections import BY_NAME, LEGACY_BANK
from rayapp.storage.mongo import indexes
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.convert import from_document
from rayapp.storage.mongo.database import LONG_TIMEOUT_S, MongoDatabase, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.housekeeping import Deletions
from rayapp.storage.mongo.memory_store import revision_document
from rayapp.storage.mongo.predicates import (
    NOT_DELETED,
    UNATTACHED,
    chosen,
    mine,
    naming,
    own,
    text_is,
)
from rayapp.storage.mongo.taking_back import take_back_later

MOVED = "rayappMovedAt"  # a name that the first client does not use


class MongoLegacyBank:
    """Implements `admin.ports.LegacyBank`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._rows = database.collection(LEGACY_BANK)

    async def total(self, scope: ReadScope) -> int:
        with translated():
            return await self._rows.count_documents(_owned(scope))

    async def rows(self, scope: ReadScope) -> AsyncIterator[LegacyFact]:
        with translated():
            async with self._rows.find(_owned(scope), sort=[("_id", 1)]) as cursor:
                async for doc in cursor:
                    raw_id, moved = str(doc.pop("_id")), doc.pop(MOVED, None) is not None
                    yield LegacyFact(raw_id=raw_id, fields=_plain(doc), moved=moved)

    async def mark_moved(self, scope: WriteScope, raw_id: str, at: datetime) -> None:
        ids = [raw_id, *([ObjectId(raw_id)] if ObjectId.is_valid(raw_id) else [])]
        with translated():
            await self._rows.update_many(
                {"_id": {"$in": ids}, **_owned(scope)}, {"$set": {MOVED: at}}
            )

    async def everybody(self) -> int:
        return await self._database.count(LEGACY_BANK, {})

    async def empty(self) -> int:
        return await self._database.remove(LEGACY_BANK, {})


def _owned(scope: ReadScope | WriteScope) -> dict[str, Any]:
    return naming(BY_NAME[LEGACY_BANK], checked_user(scope.user_id))


def _plain(doc: dict[str, Any]) -> dict[str, Any]:
    return {key: str(one) if isinstance(one, ObjectId) else one for key, one in doc.items()}


Document = dict[str, Any]
# `point_id` makes one order among memories that were hidden in the same millisecond.
# Memories of one transaction.
MOVED_AT_ONCE = 200
NEWEST_HIDDEN = [("archived_at", DESCENDING), ("point_id", DESCENDING)]


class MongoUserRows:
    """Implements `memory.ports.UserRows`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database

    async def hidden(self, scope: ReadScope, limit: int) -> list[MemoryItem]:
        items = self._database.collection(indexes.ITEMS)
        where = {**mine(scope), **indexes.HIDDEN_ONLY, **UNATTACHED}
        return await listed(items, where, from_document, sort=NEWEST_HIDDEN, limit=limit)

    async def count_hidden(self, scope: ReadScope) -> int:
        return await self._count(
            indexes.ITEMS, {**mine(scope), **indexes.HIDDEN_ONLY, **UNATTACHED}
        )

    async def counts(self, scope: ReadScope) -> RowCounts:
        sessions, nodes, edges, *learned = await asyncio.gather(
            *(
                self._count(name, mine(scope))
                for name in (indexes.SESSIONS, indexes.NODES, indexes.EDGES, *LEARNED)
            )
        )
        return RowCounts(sessions=sessions, nodes=nodes, edges=edges, learned=sum(learned))

    async def delete_page(
        self, scope: WriteScope, where: ItemFilter, limit: int, at: datetime
    ) -> int:
        return await self._delete(chosen(scope, where), limit, at)

    async def leave_conversation(self, scope: WriteScope, conversation_id: str) -> None:
        await self._database.ping()
        items = self._database.collection(indexes.ITEMS)
        named = {**own(scope), "source.also": conversation_id}
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            await items.update_many(named, {"$pull": {"source.also": conversation_id}})
        at = await self._database.now()
        shared = {**_said_in(scope, conversation_id), "source.also.0": {"$exists": True}}

        async def move(session: AsyncClientSession) -> int:
            docs = await items.find(shared, limit=MOVED_AT_ONCE, session=session).to_list()
            if docs:
                touched = ((doc["user_id"], doc["point_id"]) for doc in docs)
                await MongoChangeLog(self._database).note(touched, session)
                await items.bulk_write([_moved(doc, at) for doc in docs], session=session)
            return len(docs)

        while await self._database.transaction(move):
            pass

    async def delete_of_conversation(
        self, scope: WriteScope, conversation_id: str, limit: int, at: datetime
    ) -> int:
        return await self._delete(_said_in(scope, conversation_id), limit, at)

    async def merged_into(self, scope: ReadScope, memory_ids: Sequence[str]) -> list[MemoryItem]:
        into = {"$in": list(memory_ids), "$type": "string"}
        items, where = self._database.collection(indexes.ITEMS), {**mine(scope), **NOT_DELETED}
        return await listed(items, {**where, "merged_into": into}, from_document)

    async def clear_sessions(self, scope: WriteScope) -> int:
        """Receipts first: a session that is left shows that the rest is to be repeated."""
        for name in (indexes.RECEIPTS, indexes.EXCHANGES, indexes.TURNS):
            await self._database.remove(name, own(scope))
        return await self._database.remove(indexes.SESSIONS, own(scope))

    async def clear_graph(self, scope: WriteScope) -> int:
        """What items say that they added goes first: a node that is left shows that the rest is to
        be repeated. `follow_up_at` stays, so what changes just now adds itself to the new graph.
        """
        owner = own(scope)
        added = {**owner, "contribution": {"$ne": None}}
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            await self._database.collection(indexes.ITEMS).update_many(
                added, {"$set": {"contribution": None}}
            )
        return sum([await self._database.remove(name, owner) for name in GRAPHS])

    async def clear_documents(self, scope: WriteScope) -> int:
        for name in (indexes.UPLOADS, indexes.BOOKS):
            await self._database.remove(name, own(scope))
        return await self._database.remove(indexes.DOCUMENTS, own(scope))

    async def _delete(self, wanted: Document, limit: int, at: datetime) -> int:
        if limit < 1:
            return 0

        async def delete(session: AsyncClientSession) -> int:
            return await delete_items(self._database, wanted, at, session, limit)

        return await self._database.transaction(delete)

    async def _count(self, name: str, where: Document) -> int:
        with translated():
            return await self._database.collection(name).count_documents(where)


def _said_in(scope: WriteScope, conversation_id: str) -> Document:
    return {**own(scope), "source.conversation_id": text_is(conversation_id), **NOT_DELETED}


async def delete_items(
    database: MongoDatabase, wanted: Document, at: datetime, session: AsyncClientSession, limit: int
) -> int:
    """Delete up to `limit` items of one user that are `wanted`, and those that were merged into
    them, in this transaction; how many."""
    owner = {"user_id": wanted["user_id"]}
    items, versions = database.collection(indexes.ITEMS), database.collection(indexes.VERSIONS)
    docs = await items.find(wanted, limit=limit, session=session).to_list()
    if not docs:
        return 0
    winners = [doc["memory_id"] for doc in docs]
    # The type is what lets the server use the partial index.
    merged = {**owner, "merged_into": {"$in": winners, "$type": "string"}, **NOT_DELETED}
    merged["_id"] = {"$nin": [doc["_id"] for doc in docs]}
    docs += await items.find(merged, session=session).to_list()
    gone = [ReplaceOne({"_id": doc["_id"]}, _tombstone(doc, at)) for doc in docs]
    touched = ((doc["user_id"], doc["point_id"]) for doc in docs)
    await MongoChangeLog(database).note(touched, session)
    await items.bulk_write(gone, ordered=False, session=session)
    ids = [doc["memory_id"] for doc in docs]
    await versions.delete_many({**owner, "memory_id": {"$in": ids}}, session=session)
    await Deletions(database).add(docs, session)
    await take_back_later(database, docs, session)
    return len(docs)


def _moved(doc: Document, at: datetime) -> ReplaceOne[Document]:
    item = from_document(doc)
    new = replace(said_elsewhere(item, at), version=item.version + 1)
    return ReplaceOne({"_id": doc["_id"]}, revision_document(new, doc))


def _tombstone(doc: Document, at: datetime) -> Document:
    """The deleted form of a row; what the graphs know of it stays until they have let go."""
    item = from_document(doc)
    return revision_document(replace(deleted(item, at), version=item.version + 1), doc)


LEARNED = (indexes.ROUTING, indexes.ACTIONS, indexes.SOLUTIONS)
KNOWN = (indexes.MERGES, indexes.STATEMENTS, indexes.KNOWN_ENTITIES, indexes.GIVEN)
GRAPHS = (*LEARNED, *KNOWN, indexes.EDGES, indexes.NODES)
