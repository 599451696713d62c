"""The first client's old collection of facts: read, marked as moved, and emptied by a reset."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pymongo
from bson import ObjectId

from rayapp.admin.records import LegacyFact
from rayapp.admin.rules.resets import LEGACY_BANK
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo.database import DURABLE, LONG_TIMEOUT_S, MongoDatabase
from rayapp.storage.mongo.errors import translated

MOVED = "rayappMovedAt"  # a name that the first client does not use


class MongoLegacyBank:
    """Implements `admin.ports.LegacyBank`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(LEGACY_BANK).with_options(write_concern=DURABLE)

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
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            return await self._rows.count_documents({})

    async def empty(self) -> int:
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            return (await self._rows.delete_many({})).deleted_count


def _owned(scope: ReadScope | WriteScope) -> dict[str, Any]:
    """Old rows call their owner `userId`; a user is named in each of the two branches."""
    user_id = checked_user(scope.user_id)
    return {"$or": [{"userId": user_id}, {"user_id": user_id}]}


def _plain(doc: dict[str, Any]) -> dict[str, Any]:
    return {key: str(one) if isinstance(one, ObjectId) else one for key, one in doc.items()}
