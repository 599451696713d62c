"""Aggregates over `memory_items` for insights and diagnostics."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rayapp.adapters.mongo.database import MongoDatabase
from rayapp.adapters.mongo.errors import translated
from rayapp.adapters.mongo.indexes import ITEMS
from rayapp.adapters.mongo.predicates import NOT_DELETED, mine, visible
from rayapp.domain.filtering import MANUAL_SOURCE
from rayapp.domain.memory import Status, SyncState
from rayapp.domain.scope import ReadScope
from rayapp.domain.tiers import Tier
from rayapp.protocols import TierCount

Document = dict[str, Any]

UNSYNCED = {"$ne": ["$index.sync_state", SyncState.SYNCED.value]}


class ItemCounts:
    def __init__(self, database: MongoDatabase) -> None:
        self._items = database.collection(ITEMS)

    async def tier_counts(self, scope: ReadScope | None) -> list[TierCount]:
        """Statuses are counted apart; outcome sums leave deleted items out."""
        living = {"$ne": ["$status", Status.DELETED.value]}
        group: Document = {
            "_id": "$tier",
            **{
                status.value: {"$sum": {"$cond": [{"$eq": ["$status", status.value]}, 1, 0]}}
                for status in Status
            },
            **{
                name: {"$sum": {"$cond": [living, path, 0]}}
                for name, path in (
                    ("uses_total", "$stats.uses"),
                    ("worked", "$stats.worked_count"),
                    ("failed", "$stats.failed_count"),
                )
            },
            "waiting": {"$sum": {"$cond": [{"$and": [living, UNSYNCED]}, 1, 0]}},
        }
        match = [] if scope is None else [{"$match": visible(scope)}]
        with translated():
            cursor = await self._items.aggregate([*match, {"$group": group}])
            rows = {row.pop("_id"): row async for row in cursor}
        return [TierCount(tier=tier, **rows[tier.value]) for tier in Tier if tier.value in rows]

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
