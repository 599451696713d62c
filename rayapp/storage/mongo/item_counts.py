"""Aggregates over `memory_items` for insights and diagnostics."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rayapp.memory.item import Status, SyncState
from rayapp.memory.ports import TierCount
from rayapp.memory.rules.filtering import MANUAL_SOURCE
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.deletions import Deletions
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import ITEMS
from rayapp.storage.mongo.predicates import NOT_DELETED, mine, visible

Document = dict[str, Any]

UNSYNCED = {"$ne": ["$index.sync_state", SyncState.SYNCED.value]}


class ItemCounts:
    def __init__(self, database: MongoDatabase) -> None:
        self._items = database.collection(ITEMS)
        self._deletions = Deletions(database)

    async def tier_counts(self, scope: ReadScope | None) -> list[TierCount]:
        """What is there by tier and status, and how much was ever deleted."""
        sums: Document = {
            "active": {"$sum": {"$cond": [{"$eq": ["$status", Status.ACTIVE.value]}, 1, 0]}},
            "archived": {"$sum": {"$cond": [{"$eq": ["$status", Status.ARCHIVED.value]}, 1, 0]}},
            "uses_total": {"$sum": "$stats.uses"},
            "worked": {"$sum": "$stats.worked_count"},
            "failed": {"$sum": "$stats.failed_count"},
            "waiting": {"$sum": {"$cond": [UNSYNCED, 1, 0]}},
        }
        match = NOT_DELETED if scope is None else {**visible(scope), **NOT_DELETED}
        nothing = dict.fromkeys(sums, 0)
        with translated():
            cursor = await self._items.aggregate(
                [{"$match": match}, {"$group": {"_id": "$tier", **sums}}]
            )
            rows = {row.pop("_id"): row async for row in cursor}
            deleted = await self._deletions.by_tier(scope)
        return [
            TierCount(
                tier=tier,
                deleted=deleted.get(tier.value, 0),
                **rows.get(tier.value, nothing),
            )
            for tier in Tier
            if tier.value in rows or tier.value in deleted
        ]

    async def growth(self, scope: ReadScope, since: datetime) -> list[tuple[str, str, int]]:
        """The base row counts what was stored before `since`; its label is empty."""
        own = {**mine(scope), **NOT_DELETED}
        day = {"$dateToString": {"format": "%Y-%m-%d", "date": "$stored_at"}}
        label = {"$ifNull": ["$source.tool_name", MANUAL_SOURCE]}
        pipeline = [
            {"$match": {**own, "stored_at": {"$gte": since}}},
            {"$group": {"_id": {"day": day, "label": label}, "count": {"$sum": 1}}},
            {"$sort": {"_id.day": 1, "_id.label": 1}},
        ]
        with translated():
            base = await self._items.count_documents({**own, "stored_at": {"$lt": since}})
            cursor = await self._items.aggregate(pipeline)
            rows = [(r["_id"]["day"], r["_id"]["label"], r["count"]) async for r in cursor]
        return [("", "", base), *rows]
