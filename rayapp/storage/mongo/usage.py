"""The ledger of model calls: one row per call, summed per user on demand."""

from datetime import datetime

from pymongo import DESCENDING

from rayapp.inference.ports import CallSeen, UsageRow, UsageTotal
from rayapp.memory.scope import ReadScope
from rayapp.storage.mongo.database import MongoDatabase, aggregated
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import MODEL_USAGE, MODEL_USAGE_TTL_S
from rayapp.storage.mongo.predicates import mine, younger
from rayapp.storage.mongo.rows import to_row, utc

SEEN = tuple(CallSeen.__dataclass_fields__)
NOT_EXPIRED = younger("at", MODEL_USAGE_TTL_S)


class MongoUsageStore:
    """Implements `UsageStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(MODEL_USAGE)

    async def add(self, row: UsageRow) -> None:
        document = to_row(row)
        with translated():
            await self._rows.insert_one(document | document.pop("usage"))

    async def total(self, scope: ReadScope, since: datetime) -> UsageTotal:
        utc(since)
        where = {**mine(scope), "at": {"$gte": since}, **NOT_EXPIRED}
        tokens = {"$add": ["$prompt_tokens", "$completion_tokens"]}
        sums = {"calls": {"$sum": 1}, "tokens": {"$sum": tokens}, "cost": {"$sum": "$cost"}}
        steps = [{"$match": where}, {"$group": {"_id": "$helper", **sums}}, {"$sort": {"_id": 1}}]
        groups = await aggregated(self._rows, steps)
        return UsageTotal(
            **{name: sum(group[name] for group in groups) for name in sums},
            by_helper={
                group["_id"]: (group["calls"], group["tokens"], group["cost"]) for group in groups
            },
        )

    async def recent(self, since: datetime, limit: int) -> list[CallSeen]:
        """Of all users: it tells how the model does, and nothing about anybody."""
        utc(since)
        if limit < 1:
            return []
        where = {"at": {"$gte": since}, **NOT_EXPIRED}
        fields = {"_id": 0, **dict.fromkeys(SEEN, 1)}
        with translated():
            docs = await self._rows.find(
                where, fields, sort=[("at", DESCENDING)], limit=limit
            ).to_list()
        return [CallSeen(**doc) for doc in docs]
