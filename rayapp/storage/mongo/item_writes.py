"""Inserts and compare-and-set edits of `memory_items`, with the version rows that edits leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pymongo
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, DuplicateKeyError

from rayapp.core.errors import DuplicateMemory, NotFound, RayappError, StoreDown, VersionConflict
from rayapp.memory.item import MemoryItem, MemoryVersion, Status, SyncState
from rayapp.memory.ports import InsertResult
from rayapp.memory.rules.creation import deleted
from rayapp.memory.rules.revision import queued, revised, revived
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import FOLLOWED_TIERS
from rayapp.storage.mongo.convert import from_document, index_document, to_document
from rayapp.storage.mongo.convert import version_document as to_version_document
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.deletions import Deletions
from rayapp.storage.mongo.errors import translate, translated
from rayapp.storage.mongo.indexes import ACTIVE_TEXT, ITEMS, VERSIONS, violated_index
from rayapp.storage.mongo.predicates import NOT_DELETED, own

Document = dict[str, Any]
DUPLICATE_KEY = 11000
# A clash whose other side is gone when it is read was a race: the insert is tried again.
INSERT_TRIES = 3


class ItemWrites:
    """The truth changes only here and in IndexQueue."""

    def __init__(self, database: MongoDatabase) -> None:
        self._client = database.client
        self._timeout_s = database.settings.timeout_s
        self._items = database.collection(ITEMS)
        self._versions = database.collection(VERSIONS)
        self._deletions = Deletions(database)

    async def insert(self, item: MemoryItem) -> InsertResult:
        doc = to_document(queued(item))
        for _ in range(INSERT_TRIES):
            try:
                with translated(passing=DuplicateKeyError):
                    await self._items.insert_one(doc)
                return InsertResult(inserted=True)
            except DuplicateKeyError:
                result = await self._clash(item)
            if result is not None:
                return result
        raise StoreDown("The item kept changing while it was stored: retry.", retry_after_s=0.1)

    async def insert_many(self, items: Sequence[MemoryItem]) -> list[InsertResult]:
        """Equal items within the batch: the first is stored, the others clash with it."""
        if not items:
            return []
        refused: set[int] = set()
        with translated():
            try:
                docs = [to_document(queued(item)) for item in items]
                await self._items.insert_many(docs, ordered=False)
            except BulkWriteError as error:
                refused = _refused_positions(error)
        known = Known(await self._clashes([items[position] for position in sorted(refused)]))
        results = []
        for position, item in enumerate(items):
            if position not in refused:
                results.append(InsertResult(inserted=True))
                continue
            result = known.clash_of(item)
            if result is None or _is_tombstone(result):
                result = await self.insert(item)
            results.append(result)
        return results

    async def mention(self, scope: WriteScope, memory_id: str, at: datetime) -> None:
        with translated():
            done = await self._items.update_one(
                {**own(scope), "memory_id": memory_id, **NOT_DELETED},
                {"$inc": {"quality.mentioned_count": 1}, "$max": {"updated_at": at}},
            )
        if not done.matched_count:
            raise _gone(memory_id)

    async def replace(
        self, item: MemoryItem, *, expected_version: int, row: MemoryVersion
    ) -> MemoryItem:
        """One transaction; a deletion also erases the version rows and what was merged into it.

        The read before it refuses a hopeless edit cheaply, and fails fast when the server is away:
        a transaction waits for it as long as its limit allows.
        """
        key = {**own(WriteScope(item.user_id)), "memory_id": item.memory_id}
        with translated():
            _checked(await self._items.find_one({**key, **NOT_DELETED}), item, expected_version)

        async def change(session: AsyncClientSession) -> MemoryItem:
            found = await self._items.find_one({**key, **NOT_DELETED}, session=session)
            doc, stored = _checked(found, item, expected_version)
            new = revised(stored, item, row)
            await self._items.replace_one(
                {"_id": doc["_id"]}, revision_document(new, doc), session=session
            )
            if new.status is Status.DELETED:
                await self._versions.delete_many(key, session=session)
                merged = await self._erase_merged(new, session)
                await self._deletions.add([doc, *merged], session)
            else:
                await self._versions.insert_one(to_version_document(row), session=session)
            return new

        try:
            with translated(passing=DuplicateKeyError), pymongo.timeout(self._timeout_s):
                async with self._client.start_session() as session:
                    return await session.with_transaction(change)
        except DuplicateKeyError as error:
            raise await self._edit_clash(item, error) from None

    async def _erase_merged(
        self, winner: MemoryItem, session: AsyncClientSession
    ) -> Sequence[Mapping[str, Any]]:
        """The items that became part of a deleted one hold its facts: they go with it. Their rows
        as they were."""
        # The type is what lets the server use the partial index.
        into = {"$eq": winner.memory_id, "$type": "string"}
        mine = {"user_id": winner.user_id, "merged_into": into, **NOT_DELETED}
        docs = await self._items.find(mine, session=session).to_list()
        for doc in docs:
            loser = from_document(doc)
            gone = replace(deleted(loser, winner.updated_at), version=loser.version + 1)
            key = {"user_id": loser.user_id, "memory_id": loser.memory_id}
            await self._items.replace_one(
                {"_id": doc["_id"]}, revision_document(gone, doc), session=session
            )
            await self._versions.delete_many(key, session=session)
        return docs

    async def _edit_clash(self, item: MemoryItem, error: DuplicateKeyError) -> RayappError:
        if violated_index(error.details or {}) != ACTIVE_TEXT.name:
            return translate(error)
        with translated():
            doc = await self._items.find_one(_same_text(item), {"memory_id": 1})
        other = doc["memory_id"] if doc else None
        return DuplicateMemory(
            f"An active memory with this text exists: use {other}.", details={"memory_id": other}
        )

    async def _clash(self, item: MemoryItem) -> InsertResult | None:
        """What stood in the way of `item`; None when it has gone meanwhile."""
        result = Known(await self._clashes([item])).clash_of(item)
        if result is not None and _is_tombstone(result):
            return await self._revive(item)
        return result

    async def _clashes(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Stored items with the id or the active text of one of `items`."""
        found: list[MemoryItem] = []
        if not items:
            return found
        with translated():
            for way in ({"point_id": {"$in": [item.point_id for item in items]}}, *_texts(items)):
                found += [from_document(doc) async for doc in self._items.find(way)]
        return found

    async def _revive(self, item: MemoryItem) -> InsertResult | None:
        """Put `item` in the place of its tombstone: a deletion never blocks the id."""
        with translated():
            doc = await self._items.find_one(
                {"point_id": item.point_id, "status": Status.DELETED.value}
            )
            if doc is None:
                return None
            revival = revived(from_document(doc), item)
            new = {**to_document(revival), "contribution": doc.get("contribution")}
            if new["contribution"] is not None:
                new["follow_up_at"] = revival.stored_at
            guard = {"_id": doc["_id"], "version": doc["version"], "index.rev": doc["index"]["rev"]}
            try:
                done = await self._items.replace_one(guard, new)
            except DuplicateKeyError:
                others = await self._clashes([item])
                return Known([o for o in others if not _deleted(o)]).clash_of(item)
        return InsertResult(inserted=True) if done.matched_count else None


def _same_text(item: MemoryItem) -> Document:
    return {
        "user_id": item.user_id,
        "tier": item.tier.value,
        "dedup_scope": item.dedup_scope,
        "content_hash": item.content_hash,
        "status": Status.ACTIVE.value,
    }


def _texts(items: Sequence[MemoryItem]) -> list[Document]:
    """Queries for the active texts of `items`, one per user, tier and scope.

    One `$or` over all of them is planned clause by clause: up to 1 ms for each.
    """
    hashes: dict[tuple[str, str, str], list[str]] = {}
    for item in items:
        user_id, tier, scope, content_hash = _text_key(item)
        hashes.setdefault((user_id, tier, scope), []).append(content_hash)
    return [
        {
            "user_id": user_id,
            "tier": tier,
            "dedup_scope": scope,
            "content_hash": {"$in": group},
            "status": Status.ACTIVE.value,
        }
        for (user_id, tier, scope), group in hashes.items()
    ]


class Known:
    """Stored items by id and by active text."""

    def __init__(self, stored: Sequence[MemoryItem]) -> None:
        self._by_point = {item.point_id: item for item in stored}
        self._by_text = {_text_key(item): item for item in stored if item.status is Status.ACTIVE}

    def clash_of(self, item: MemoryItem) -> InsertResult | None:
        """What stands in the way of `item`; the id decides before the text."""
        by_id = self._by_point.get(item.point_id)
        if by_id is not None:
            return InsertResult(inserted=False, existing=by_id, clash="id")
        by_text = self._by_text.get(_text_key(item))
        if by_text is not None:
            return InsertResult(inserted=False, existing=by_text, clash="text")
        return None


def _text_key(item: MemoryItem) -> tuple[str, str, str, str]:
    return item.user_id, item.tier.value, item.dedup_scope, item.content_hash


def _is_tombstone(result: InsertResult) -> bool:
    return result.existing is not None and _deleted(result.existing)


def _deleted(item: MemoryItem) -> bool:
    return item.status is Status.DELETED


def _refused_positions(error: BulkWriteError) -> set[int]:
    """Positions refused as duplicates; any other failure in the batch is raised."""
    entries = error.details.get("writeErrors") or []
    codes = {entry["code"] for entry in entries}
    if codes != {DUPLICATE_KEY} or error.details.get("writeConcernErrors"):
        raise translate(error)
    return {entry["index"] for entry in entries}


def revision_document(new: MemoryItem, old: Document) -> Document:
    """The document that replaces `old`; what the graphs know of the item stays, and is due."""
    was_pending = old["index"]["sync_state"] == SyncState.PENDING.value
    since = old["index"]["pending_since"] if was_pending else new.updated_at
    contribution = old.get("contribution")
    followed = contribution is not None or new.tier in FOLLOWED_TIERS
    return {
        **to_document(new),
        "index": index_document(new.index, pending_since=since),
        "follow_up_at": new.updated_at if followed else None,
        "contribution": contribution,
    }


def _checked(
    doc: Document | None, item: MemoryItem, expected_version: int
) -> tuple[Document, MemoryItem]:
    """`doc` and its item when it is the version that the editor saw."""
    if doc is None:
        raise _gone(item.memory_id)
    stored = from_document(doc)
    if stored.version != expected_version:
        raise VersionConflict(
            f"{item.memory_id} changed meanwhile: read it again and repeat the edit.",
            details={"memory_id": item.memory_id, "version": stored.version},
        )
    return doc, stored


def _gone(memory_id: str) -> NotFound:
    return NotFound(
        f"No memory {memory_id}: check the id, it may have been deleted.",
        details={"memory_id": memory_id},
    )
