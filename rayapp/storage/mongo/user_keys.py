"""The keys under which backups seal the rows of users."""

from collections.abc import Collection, Sequence
from typing import Any

import pymongo
from pymongo import ReplaceOne

from rayapp.portability.rules.collections import COLLECTIONS, Owner
from rayapp.portability.sealing import UserKey
from rayapp.storage.mongo.database import LONG_TIMEOUT_S, MongoDatabase, aggregated
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import BACKUP_KEYS

SEALED = tuple(one for one in COLLECTIONS if one.owner is Owner.USER and one.backed_up)
# What has a secret is a key, and the others are names of files.
KEY, NO_KEY = {"secret": {"$exists": True}}, {"secret": None}


class MongoUserKeys:
    """Implements `portability.sealing.UserKeyStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._rows = database.collection(BACKUP_KEYS)

    async def owners(self) -> set[str]:
        found: set[Any] = set()
        for one in SEALED:
            for name in one.owner_fields:
                steps = [{"$group": {"_id": f"${name}"}}]
                with pymongo.timeout(LONG_TIMEOUT_S):
                    users = await aggregated(self._database.collection(one.name), steps)
                found |= {row["_id"] if isinstance(row["_id"], str) else "" for row in users}
        return found

    async def all(self) -> list[UserKey]:
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            return [
                UserKey(key_id=row["_id"], user_id=row["user_id"], secret=row["secret"])
                async for row in self._rows.find(KEY)
            ]

    async def files(self) -> list[str]:
        with translated():
            return [row["_id"] async for row in self._rows.find(NO_KEY)]

    async def add(self, keys: Sequence[UserKey], file_id: str) -> None:
        docs: list[dict[str, Any]] = [
            {"_id": one.key_id, "user_id": one.user_id, "secret": one.secret} for one in keys
        ]
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            if docs:
                writes = [ReplaceOne({"_id": doc["_id"]}, doc, upsert=True) for doc in docs]
                await self._rows.bulk_write(writes, ordered=False)
            await self._rows.replace_one({"_id": file_id}, {}, upsert=True)

    async def drop(self, key_ids: Collection[bytes]) -> None:
        if key_ids:
            with translated(), pymongo.timeout(LONG_TIMEOUT_S):
                await self._rows.delete_many({"_id": {"$in": list(key_ids)}})
