"""The MongoDB implementation of `MemoryStore`: counts, reads, writes."""

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

import pymongo
from pymongo import DESCENDING
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, DuplicateKeyError

from rayapp.core.errors import DuplicateMemory, NotFound, RayappError, StoreDown, VersionConflict
from rayapp.memory import requests
from rayapp.memory.item import MOST_ALSO, MemoryItem, MemoryVersion, Status, SyncState, point_id_of
from rayapp.memory.ports import InsertResult, Page, TierCount
from rayapp.memory.rules.creation import deleted, open_scope
from rayapp.memory.rules.filtering import MANUAL_SOURCE, is_followed, is_understood
from rayapp.memory.rules.hiding import PREFIX, PREFIX_END
from rayapp.memory.rules.revision import queued, revised, revived
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo import convert, indexes
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.convert import version_document as to_version_document
from rayapp.storage.mongo.database import (
    LONG_TIMEOUT_S,
    Collection,
    MongoDatabase,
    aggregated,
    first,
    listed,
)
from rayapp.storage.mongo.errors import DUPLICATE_KEY, translate, translated
from rayapp.storage.mongo.housekeeping import Deletions
from rayapp.storage.mongo.index_queue import IS_FAILED, IS_PENDING, IndexQueue
from rayapp.storage.mongo.indexes import ACTIVE_TEXT, ITEMS, VERSIONS, violated_index
from rayapp.storage.mongo.predicates import (
    NOT_DELETED,
    UNATTACHED,
    Predicate,
    active_text,
    after,
    mine,
    own,
    selected,
    text,
    text_is,
    text_terms,
    veiled,
    visible,
    worded,
)
from rayapp.storage.mongo.taking_back import take_back_later

Document = dict[str, Any]

UNSYNCED = {"$ne": ["$index.sync_state", SyncState.SYNCED.value]}


class ItemCounts:
    def __init__(self, database: MongoDatabase) -> None:
        self._ping = database.ping
        self._items = database.collection(ITEMS)
        self._deletions = Deletions(database)

    async def tier_counts(
        self, scope: ReadScope | None, tier: Tier | None = None
    ) -> list[TierCount]:
        """What is there by tier and status, and how much was ever deleted: reads every row."""
        active = {"$eq": ["$status", Status.ACTIVE.value]}
        put_away = {"$eq": ["$status", Status.ARCHIVED.value]}
        reason = {"$ifNull": ["$archived_reason", ""]}
        hidden = {"$and": [{"$gte": [reason, PREFIX]}, {"$lt": [reason, PREFIX_END]}]}
        sums: Document = {
            "active": {"$sum": {"$cond": [active, 1, 0]}},
            "archived": {"$sum": {"$cond": [{"$and": [put_away, {"$not": [hidden]}]}, 1, 0]}},
            "hidden": {"$sum": {"$cond": [{"$and": [put_away, hidden]}, 1, 0]}},
            "uses_total": {"$sum": "$stats.uses"},
            "worked": {"$sum": "$stats.worked_count"},
            "failed": {"$sum": "$stats.failed_count"},
            "waiting": {"$sum": {"$cond": [UNSYNCED, 1, 0]}},
            "indexed": {"$sum": {"$cond": [{"$and": [active, {"$not": [UNSYNCED]}]}, 1, 0]}},
        }
        match: Document = {} if scope is None else {**visible(scope), **UNATTACHED}
        match |= NOT_DELETED if tier is None else {**NOT_DELETED, "tier": tier.value}
        nothing = dict.fromkeys(sums, 0)
        await self._ping()  # fails fast: within the long limit, an absent server is waited for
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            steps = [{"$match": match}, {"$group": {"_id": "$tier", **sums}}]
            rows = {row.pop("_id"): row for row in await aggregated(self._items, steps)}
            deleted = await self._deletions.by_tier(scope)
        return [
            TierCount(tier=one, deleted=deleted.get(one.value, 0), **rows.get(one.value, nothing))
            for one in Tier
            if (one.value in rows or one.value in deleted) and tier in (None, one)
        ]

    async def growth(self, scope: ReadScope, since: datetime) -> list[tuple[str, str, int]]:
        """The base row counts what was stored before `since`; its label is empty."""
        own = {**mine(scope), **NOT_DELETED, **UNATTACHED}
        day = {"$dateToString": {"format": "%Y-%m-%d", "date": "$stored_at"}}
        label = {"$ifNull": ["$source.tool_name", MANUAL_SOURCE]}
        pipeline = [
            {"$match": {**own, "stored_at": {"$gte": since}}},
            {"$group": {"_id": {"day": day, "label": label}, "count": {"$sum": 1}}},
            {"$sort": {"_id.day": 1, "_id.label": 1}},
        ]
        with translated():
            base = await self._items.count_documents({**own, "stored_at": {"$lt": since}})
        rows = await aggregated(self._items, pipeline)
        return [("", "", base), *((r["_id"]["day"], r["_id"]["label"], r["count"]) for r in rows)]


# What the index is to take up, without chunks of documents that are coming (`is_coming`).
WAITS: tuple[Document, ...] = (
    {**IS_PENDING, "source.chunk_id": None},
    {**IS_PENDING, "source.chunk_id": indexes.IS_TEXT, "index.vector_hash": indexes.IS_TEXT},
)
TEXT_SCORE = {"$meta": "textScore"}
TEXT_WEIGHT = dict(indexes.TEXT_SEARCH.weights)["text"]
NEWEST = [("created_at", DESCENDING), ("point_id", DESCENDING)]


class ItemReads:
    """Every query carries equality on user_id; a scope of two owners is asked once for each."""

    def __init__(self, database: MongoDatabase) -> None:
        self._items = database.collection(ITEMS)
        self._plain = self._items.with_options(codec_options=convert.PLAIN)
        self._raw = self._items.with_options(codec_options=convert.RAW)
        self._parsed = convert.ParsedRows()
        self._versions = database.collection(VERSIONS)
        self._text_timeout_s = database.settings.text_timeout_s

    async def get(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        item = await self._by_id(scope, memory_id)
        if item is None or item.merged_into is None:
            return item
        return await self._by_id(scope, item.merged_into)

    async def by_points(self, scope: ReadScope, point_ids: Sequence[str]) -> list[MemoryItem]:
        if not point_ids:
            return []
        where = {"point_id": {"$in": list(point_ids)}, **visible(scope), **NOT_DELETED}
        with translated():
            rows = await self._raw.find(where, batch_size=len(point_ids) + 1).to_list()
        return self._parsed.items(rows)

    async def searchable(self, scope: ReadScope, limit: int) -> list[MemoryItem] | None:
        where = {**own(WriteScope(scope.user_id)), "status": Status.ACTIVE.value}
        with translated():
            if await self._items.count_documents(where, limit=limit + 1) > limit:
                return None
            rows = await self._raw.find(where, batch_size=limit).to_list()
        return self._parsed.items(rows)

    async def find_duplicate(
        self, scope: WriteScope, tier: Tier, dedup_scope: str, content_hash: str
    ) -> MemoryItem | None:
        same = active_text(scope.user_id, tier, dedup_scope, content_hash)
        return await first(self._items, same, convert.from_document)

    async def page(self, scope: ReadScope, where: ItemFilter, query: requests.ItemQuery) -> Page:
        sort, limit = query.sort, query.limit
        last = requests.decode_cursor(query.cursor, sort) if query.cursor is not None else None
        terms = _terms(query.text_query)
        if limit < 1 or terms == "":
            return Page([], None)
        behind = [after(sort, last)] if last is not None else []
        wanted = query.offset + limit + 1  # one more tells whether another page follows
        order = [(path, DESCENDING) for path, _ in requests.SORT_KEYS[sort]]
        with translated():
            lists = await asyncio.gather(
                *(
                    self._items.find(
                        _joined(owned, terms, behind), sort=order, limit=wanted
                    ).to_list()
                    for owned in selected(scope, where)
                )
            )
        sorted_lists = [convert.readable(docs, convert.from_document) for docs in lists]
        merged = heapq.merge(
            *sorted_lists, key=lambda i: requests.sort_values(i, sort), reverse=True
        )
        found = list(islice(merged, query.offset, wanted))
        items = found[:limit]
        # A full list goes on, though rows of it that cannot be read are left out.
        more = len(found) > limit or any(len(docs) == wanted for docs in lists)
        return Page(items, requests.encode_cursor(items[-1], sort) if more and items else None)

    async def count(
        self, scope: ReadScope, where: ItemFilter, *, text_query: str | None = None
    ) -> int:
        terms = _terms(text_query)
        if terms == "":
            return 0
        with translated():
            counts = await asyncio.gather(
                *(
                    self._items.count_documents(_joined(owned, terms))
                    for owned in selected(scope, where)
                )
            )
        return sum(counts)

    async def pending(
        self, scope: ReadScope, where: ItemFilter, limit: int, *, with_failed: bool = False
    ) -> list[MemoryItem]:
        """One query per state, because each partial index holds one state."""
        if limit < 1:
            return []
        waits, failed = indexes.WAITING.name, indexes.FAILED_BY_USER.name
        how: dict[str, Any] = {"sort": [("stored_at", DESCENDING)], "limit": limit}
        asked = []
        for owned in selected(scope, where):
            # Each state has its own bounds on the same index, and the two are merged in order.
            states = [{**owned, **state} for state in WAITS]
            asked.append(self._plain.find({"$or": states}, hint=waits, **how).to_list())
            if with_failed:
                asked.append(self._plain.find({**owned, **IS_FAILED}, hint=failed, **how).to_list())
        with translated():
            lists = await asyncio.gather(*asked)
        items = [item for docs in lists for item in convert.readable(docs, convert.from_plain)]
        return heapq.nlargest(limit, items, key=lambda item: item.stored_at)

    async def text_search(
        self, scope: ReadScope, where: ItemFilter, query: str, limit: int
    ) -> list[tuple[MemoryItem, float]]:
        terms = text_terms(query)
        if not terms or limit < 1:
            return []
        with translated(), pymongo.timeout(self._text_timeout_s):
            lists = await asyncio.gather(
                *(self._by_text(owned, terms, limit) for owned in selected(scope, where))
            )
        hits = [hit for docs in lists for hit in convert.readable(docs, _hit)]
        return heapq.nlargest(limit, hits, key=lambda hit: hit[1])

    async def versions(self, scope: ReadScope, memory_id: str, limit: int) -> list[MemoryVersion]:
        where = {**mine(scope), "memory_id": memory_id}
        order = [("version", DESCENDING)]
        return await listed(
            self._versions, where, convert.version_from_document, sort=order, limit=limit
        )

    async def lowest_quality(self, scope: WriteScope, tier: Tier, limit: int) -> list[MemoryItem]:
        if limit < 1:
            return []
        where = {**own(scope), "tier": tier.value, "status": Status.ACTIVE.value}
        paths = ("quality.quality_score", "stats.wilson_score", "stats.last_outcome_at", "point_id")
        stages: list[Document] = [
            {"$match": where},
            {"$set": {"current": {"$lte": ["$superseded_by", None]}}},
            {"$sort": dict.fromkeys(("current", *paths), 1)},
            {"$limit": limit},
        ]
        docs = await aggregated(self._items, stages)
        return convert.readable(docs, convert.from_document)

    async def tags(self, scope: ReadScope, tier: Tier) -> list[str]:
        where = {**visible(scope, (tier,)), "tier": tier.value, **NOT_DELETED}
        with translated():
            found: list[str] = await self._items.distinct("tags", where)
        return sorted(found)

    async def _by_id(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        """My own item before a shared one with the same id."""
        where = {"memory_id": {"$eq": memory_id}, **visible(scope), **NOT_DELETED}
        with translated():
            docs = await self._items.find(where).to_list()
        docs.sort(key=lambda doc: doc["user_id"] != scope.user_id)
        return convert.from_document(docs[0]) if docs else None

    async def _by_text(self, owned: Predicate, terms: str, limit: int) -> list[Document]:
        ranked = self._items.find(
            {**owned, **text(terms)}, {"rank": TEXT_SCORE}, sort=[("rank", TEXT_SCORE)], limit=limit
        )
        unseen = self._items.find({**owned, **veiled(terms)}, sort=NEWEST, limit=limit)
        known = {doc["_id"]: doc for doc in await ranked.to_list()}
        wanted = set(terms.split())
        for doc in await unseen.to_list():
            rank = TEXT_WEIGHT * len(wanted.intersection(doc["veiled_words"]))
            found = known.setdefault(doc["_id"], {**doc, "rank": 0.0})
            found["rank"] += rank
        return list(known.values())


def _hit(doc: Document) -> tuple[MemoryItem, float]:
    return convert.from_document(doc), float(doc["rank"])


def _terms(text_query: str | None) -> str | None:
    """None: no words are asked for; empty: the text has none, so nothing can match."""
    return None if text_query is None else text_terms(text_query)


def _joined(owned: Predicate, terms: str | None, others: Sequence[Predicate] = ()) -> Predicate:
    words = [] if terms is None else [worded(owned["user_id"], terms)]
    conditions = [*others, *words]
    return {"$and": [owned, *conditions]} if conditions else owned


# A clash whose other side is gone when it is read was a race: the insert is tried again.
INSERT_TRIES = 3


class ItemWrites:
    """The truth changes only here and in IndexQueue."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._transaction = database.transaction
        self._items = database.collection(ITEMS)
        self._versions = database.collection(VERSIONS)
        self._deletions = Deletions(database)
        self._changes = MongoChangeLog(database)

    async def insert(self, item: MemoryItem) -> InsertResult:
        doc = convert.to_document(queued(item))
        for _ in range(INSERT_TRIES):
            try:
                with translated(passing=DuplicateKeyError):
                    await self._changes.note([(item.user_id, item.point_id)])
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
        with translated():
            docs = [convert.to_document(queued(item)) for item in items]
            async with self._changes.around((item.user_id, item.point_id) for item in items):
                refused = await insert_new(self._items, docs)
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

    async def mention(
        self, scope: WriteScope, memory_id: str, at: datetime, also: str | None = None
    ) -> None:
        count = {"$add": ["$quality.mentioned_count", 1]}
        change: Document = {
            "quality.mentioned_count": count,
            "updated_at": {"$max": ["$updated_at", {"$literal": at}]},
        }
        if also is not None:
            others, name = {"$ifNull": ["$source.also", []]}, {"$literal": also}
            longer = {"$slice": [{"$concatArrays": [others, [name]]}, MOST_ALSO]}
            change["source.also"] = {"$cond": [{"$in": [name, others]}, others, longer]}
        with translated():
            await self._changes.note([(scope.user_id, point_id_of(scope.user_id, memory_id))])
            done = await self._items.update_one(
                {**own(scope), "memory_id": memory_id, **NOT_DELETED}, [{"$set": change}]
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
            await self._changes.note([(item.user_id, item.point_id)], session)
            new = revised(stored, item, row)
            await self._items.replace_one(
                {"_id": doc["_id"]}, revision_document(new, doc), session=session
            )
            if new.status is Status.DELETED:
                await self._versions.delete_many(key, session=session)
                merged = await self._erase_merged(new, session)
                await take_back_later(self._database, [doc, *merged], session)
                await self._deletions.add([doc, *merged], session)
            else:
                await self._versions.insert_one(to_version_document(row), session=session)
            return new

        try:
            return await self._transaction(change, passing=DuplicateKeyError)
        except DuplicateKeyError as error:
            raise await self._edit_clash(item, error) from None

    async def _erase_merged(
        self, winner: MemoryItem, session: AsyncClientSession
    ) -> Sequence[Mapping[str, Any]]:
        """The items that became part of a deleted one hold its facts: they go with it. Their rows
        as they were."""
        into = {"user_id": winner.user_id, "merged_into": text_is(winner.memory_id), **NOT_DELETED}
        docs = await self._items.find(into, session=session).to_list()
        for doc in docs:
            loser = convert.from_document(doc)
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
            doc = await self._items.find_one(active_text(*_text_key(item)), {"memory_id": 1})
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
            for way in (
                {"point_id": {"$in": [item.point_id for item in items]}},
                *same_texts(items),
            ):
                found += [convert.from_document(doc) async for doc in self._items.find(way)]
        return found

    async def _revive(self, item: MemoryItem) -> InsertResult | None:
        """Put `item` in the place of its tombstone: a deletion never blocks the id."""
        with translated():
            doc = await self._items.find_one(
                {"point_id": item.point_id, "status": Status.DELETED.value}
            )
            if doc is None:
                return None
            revival = revived(convert.from_document(doc), item)
            new = {**convert.to_document(revival), "contribution": doc.get("contribution")}
            if new["contribution"] is not None:
                new["follow_up_at"] = revival.stored_at
            guard = {"_id": doc["_id"], "version": doc["version"], "index.rev": doc["index"]["rev"]}
            try:
                done = await self._items.replace_one(guard, new)
            except DuplicateKeyError:
                others = await self._clashes([item])
                return Known([o for o in others if not _deleted(o)]).clash_of(item)
        return InsertResult(inserted=True) if done.matched_count else None


def as_open(item: MemoryItem) -> MemoryItem:
    """`item` as if nothing else said the same of another period."""
    return replace(item, dedup_scope=open_scope(item))


def same_texts(items: Sequence[MemoryItem]) -> list[Document]:
    """Queries for the active texts of `items`, one per user, tier and scope. One `$or` over all of
    them is planned clause by clause: up to 1 ms for each."""
    hashes: dict[tuple[str, Tier, str], list[str]] = {}
    for item in items:
        user_id, tier, scope, content_hash = _text_key(item)
        hashes.setdefault((user_id, tier, scope), []).append(content_hash)
    return [active_text(*place, {"$in": group}) for place, group in hashes.items()]


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

    def same_text(self, item: MemoryItem) -> MemoryItem | None:
        """Another active one with the text of an active `item`, of its period or of an open one."""
        if item.status is not Status.ACTIVE:
            return None
        for one in (item, as_open(item)):
            other = self._by_text.get(_text_key(one))
            if other is not None and other.point_id != item.point_id:
                return other
        return None

    def put(self, item: MemoryItem) -> None:
        """It is stored now, in the place of an older state of itself."""
        old = self._by_point.get(item.point_id)
        if old is not None and self._by_text.get(_text_key(old)) is old:
            del self._by_text[_text_key(old)]
        self._by_point[item.point_id] = item
        if item.status is Status.ACTIVE:
            self._by_text[_text_key(item)] = item


def _text_key(item: MemoryItem) -> tuple[str, Tier, str, str]:
    return item.user_id, item.tier, item.dedup_scope, item.content_hash


def _is_tombstone(result: InsertResult) -> bool:
    return result.existing is not None and _deleted(result.existing)


def _deleted(item: MemoryItem) -> bool:
    return item.status is Status.DELETED


async def insert_new(rows: Collection, docs: Sequence[Document]) -> set[int]:
    """Insert what is new; the positions of the others. Any other failure in the batch is raised."""
    if not docs:
        return set()
    try:
        await rows.insert_many(docs, ordered=False)
    except BulkWriteError as error:
        entries = error.details.get("writeErrors") or []
        codes = {entry["code"] for entry in entries}
        if codes != {DUPLICATE_KEY} or error.details.get("writeConcernErrors"):
            raise translate(error) from None
        return {entry["index"] for entry in entries}
    return set()


def revision_document(new: MemoryItem, old: Document) -> Document:
    """The document that replaces `old`; what the graphs know of the item stays, and is due,
    as what is derived from it."""
    was_pending = old["index"]["sync_state"] == SyncState.PENDING.value
    since = old["index"]["pending_since"] if was_pending else new.updated_at
    contribution = old.get("contribution")
    followed = contribution is not None or is_followed(new)
    return {
        **convert.to_document(new),
        "index": convert.index_document(new.index, pending_since=since),
        "follow_up_at": new.updated_at if followed else None,
        "contribution": contribution,
        "understand_at": new.updated_at if is_understood(new) else None,
    }


def _checked(
    doc: Document | None, item: MemoryItem, expected_version: int
) -> tuple[Document, MemoryItem]:
    """`doc` and its item when it is the version that the editor saw."""
    if doc is None:
        raise _gone(item.memory_id)
    stored = convert.from_document(doc)
    if stored.version != expected_version:
        raise VersionConflict(
            f"{item.memory_id} changed meanwhile: read it again and repeat the edit.",
            details={"memory_id": item.memory_id, "version": stored.version},
        )
    return doc, stored


def _gone(memory_id: str) -> NotFound:
    return NotFound(
        "There is no such memory; it may have been deleted.", details={"memory_id": memory_id}
    )


class MongoMemoryStore(ItemReads, ItemWrites, IndexQueue, ItemCounts):
    """`memory_items` and `memory_versions` of one database."""

    def __init__(self, database: MongoDatabase) -> None:
        ItemReads.__init__(self, database)
        ItemWrites.__init__(self, database)
        IndexQueue.__init__(self, database)
        ItemCounts.__init__(self, database)

    async def ensure_schema(self) -> None:
        await self._database.ensure_schema()

    async def ping(self) -> float:
        return await self._database.ping()
