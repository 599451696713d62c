"""The first client's old collection of facts, read only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from bson import ObjectId

from rayapp.adapters.mongo.database import MongoDatabase
from rayapp.adapters.mongo.errors import translated
from rayapp.domain.data.records import LegacyFact
from rayapp.domain.filtering import checked_user
from rayapp.domain.scope import ReadScope

LEGACY_BANK = "memoryBank"  # client contract


class MongoLegacyBank:
    """Implements `data_protocols.LegacyBank`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(LEGACY_BANK)

    async def total(self, scope: ReadScope) -> int:
        with translated():
            return await self._rows.count_documents(_owned(scope))

    async def rows(self, scope: ReadScope) -> AsyncIterator[LegacyFact]:
        with translated():
            async with self._rows.find(_owned(scope), sort=[("_id", 1)]) as cursor:
                async for doc in cursor:
                    yield LegacyFact(raw_id=str(doc.pop("_id")), fields=_plain(doc))


def _owned(scope: ReadScope) -> dict[str, Any]:
    """Old rows call their owner `userId`; a user is named in each of the two branches."""
    user_id = checked_user(scope.user_id)
    return {"$or": [{"userId": user_id}, {"user_id": user_id}]}


def _plain(doc: dict[str, Any]) -> dict[str, Any]:
    return {key: str(one) if isinstance(one, ObjectId) else one for key, one in doc.items()}
