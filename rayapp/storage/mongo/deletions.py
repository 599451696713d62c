"""How many memories a user deleted, per tier: deleted rows go with their points, counts stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pymongo import UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.memory.scope import ReadScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import DELETIONS
from rayapp.storage.mongo.predicates import mine

Document = dict[str, Any]


class Deletions:
    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(DELETIONS)

    async def add(self, gone: Iterable[Mapping[str, Any]], session: AsyncClientSession) -> None:
        """Count these item rows, in the transaction that deletes them."""
        counts = Counter((row["user_id"], row["tier"]) for row in gone)
        if counts:
            changes = [
                UpdateOne({"user_id": user, "tier": tier}, {"$inc": {"count": count}}, upsert=True)
                for (user, tier), count in sorted(counts.items())
            ]
            await self._rows.bulk_write(changes, session=session)

    async def by_tier(self, scope: ReadScope | None) -> dict[str, int]:
        """Of one user, or of everybody."""
        match: list[Document] = [] if scope is None else [{"$match": mine(scope)}]
        group = {"$group": {"_id": "$tier", "count": {"$sum": "$count"}}}
        cursor = await self._rows.aggregate([*match, group])
        return {row["_id"]: row["count"] async for row in cursor}
