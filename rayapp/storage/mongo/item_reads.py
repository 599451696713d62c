"""Reads of `memory_items`: single items, pages, the pending arm and the text rung."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import pymongo
from pymongo import DESCENDING

from rayapp.memory.item import MemoryItem, MemoryVersion, Status, SyncState
from rayapp.memory.paging import (
    SORT_KEYS,
    SortKey,
    SortValue,
    decode_cursor,
    encode_cursor,
    sort_values,
)
from rayapp.memory.ports import Page
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.convert import (
    PLAIN,
    from_document,
    from_plain,
    readable,
    version_from_document,
)
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import ITEMS, VERSIONS
from rayapp.storage.mongo.parsed_rows import RAW, ParsedRows
from rayapp.storage.mongo.predicates import (
    NOT_DELETED,
    Predicate,
    after,
    mine,
    own,
    selected,
    text,
    text_terms,
    visible,
)

Document = dict[str, Any]
TEXT_SCORE = {"$meta": "textScore"}


class ItemReads:
    """Every query carries equality on user_id; a scope of two owners is asked once for each."""

    def __init__(self, database: MongoDatabase) -> None:
        self._items = database.collection(ITEMS)
        self._plain = self._items.with_options(codec_options=PLAIN)
        self._raw = self._items.with_options(codec_options=RAW)
        self._parsed = ParsedRows()
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

    async def find_duplicate(
        self, scope: WriteScope, tier: Tier, dedup_scope: str, content_hash: str
    ) -> MemoryItem | None:
        where = {
            **own(scope),
            "tier": tier.value,
            "dedup_scope": dedup_scope,
            "content_hash": content_hash,
            "status": Status.ACTIVE.value,
        }
        with translated():
            doc = await self._items.find_one(where)
        return from_document(doc) if doc else None

    async def page(
        self,
        scope: ReadScope,
        where: ItemFilter,
        *,
        sort: SortKey,
        limit: int,
        cursor: str | None = None,
        offset: int = 0,
        text_query: str | None = None,
    ) -> Page:
        last = decode_cursor(cursor, sort) if cursor is not None else None
        extra = _page_conditions(sort, last, text_query)
        if limit < 1 or extra is None:
            return Page([], None)
        wanted = offset + limit + 1  # one more tells whether another page follows
        order = [(path, DESCENDING) for path, _ in SORT_KEYS[sort]]
        with translated():
            lists = await asyncio.gather(
                *(
                    self._items.find(_joined(owned, extra), sort=order, limit=wanted).to_list()
                    for owned in selected(scope, where)
                )
            )
        sorted_lists = [readable(docs, from_document) for docs in lists]
        merged = heapq.merge(*sorted_lists, key=lambda i: sort_values(i, sort), reverse=True)
        found = list(islice(merged, offset, wanted))
        items = found[:limit]
        # A full list goes on, though rows of it that cannot be read are left out.
        more = len(found) > limit or any(len(docs) == wanted for docs in lists)
        return Page(items, encode_cursor(items[-1], sort) if more and items else None)

    async def count(
        self, scope: ReadScope, where: ItemFilter, *, text_query: str | None = None
    ) -> int:
        extra = _page_conditions("recent", None, text_query)
        if extra is None:
            return 0
        with translated():
            counts = await asyncio.gather(
                *(
                    self._items.count_documents(_joined(owned, extra))
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
        states = [SyncState.PENDING, *([SyncState.FAILED] if with_failed else [])]
        order = [("stored_at", DESCENDING)]
        with translated():
            lists = await asyncio.gather(
                *(
                    self._plain.find(
                        {**owned, "index.sync_state": state.value}, sort=order, limit=limit
                    ).to_list()
                    for owned in selected(scope, where)
                    for state in states
                )
            )
        items = [item for docs in lists for item in readable(docs, from_plain)]
        return heapq.nlargest(limit, items, key=lambda item: item.stored_at)

    async def text_search(
        self, scope: ReadScope, where: ItemFilter, query: str, limit: int
    ) -> list[tuple[MemoryItem, float]]:
        terms = text_terms(query)
        if not terms or limit < 1:
            return []
        with translated(), pymongo.timeout(self._text_timeout_s):
            lists = await asyncio.gather(
                *(self._text_arm(owned, terms, limit) for owned in selected(scope, where))
            )
        hits = [hit for docs in lists for hit in readable(docs, _hit)]
        return heapq.nlargest(limit, hits, key=lambda hit: hit[1])

    async def versions(self, scope: ReadScope, memory_id: str, limit: int) -> list[MemoryVersion]:
        if limit < 1:
            return []
        where = {**mine(scope), "memory_id": memory_id}
        with translated():
            order = [("version", DESCENDING)]
            docs = await self._versions.find(where, sort=order, limit=limit).to_list()
        return readable(docs, version_from_document)

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
        with translated():
            cursor = await self._items.aggregate(stages)
            docs = await cursor.to_list()
        return readable(docs, from_document)

    async def tags(self, scope: ReadScope, tier: Tier) -> list[str]:
        where = {**visible(scope, (tier,)), "tier": tier.value, "status": Status.ACTIVE.value}
        with translated():
            found: list[str] = await self._items.distinct("tags", where)
        return sorted(found)

    async def _by_id(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        """My own item before a shared one with the same id."""
        where = {"memory_id": {"$eq": memory_id}, **visible(scope), **NOT_DELETED}
        with translated():
            docs = await self._items.find(where).to_list()
        docs.sort(key=lambda doc: doc["user_id"] != scope.user_id)
        return from_document(docs[0]) if docs else None

    async def _text_arm(self, owned: Predicate, terms: str, limit: int) -> list[Document]:
        cursor = self._items.find(
            {**owned, **text(terms)},
            {"rank": TEXT_SCORE},
            sort=[("rank", TEXT_SCORE)],
            limit=limit,
        )
        return await cursor.to_list()


def _hit(doc: Document) -> tuple[MemoryItem, float]:
    return from_document(doc), float(doc["rank"])


def _page_conditions(
    sort: SortKey, last: tuple[SortValue, ...] | None, text_query: str | None
) -> list[Mapping[str, Any]] | None:
    """Conditions beside the filter; None when the text has no words, so nothing can match."""
    conditions: list[Mapping[str, Any]] = []
    if last is not None:
        conditions.append(after(sort, last))
    if text_query is not None:
        terms = text_terms(text_query)
        if not terms:
            return None
        conditions.append(text(terms))
    return conditions


def _joined(owned: Predicate, conditions: list[Mapping[str, Any]]) -> Predicate:
    return {"$and": [owned, *conditions]} if conditions else owned
