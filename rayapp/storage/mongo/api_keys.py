"""API keys, found by the SHA-256 of the key."""

from datetime import datetime

from rayapp.admin.ports import ApiKey
from rayapp.storage.mongo.database import MongoDatabase, first
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import API_KEYS, ENDED_TOKENS
from rayapp.storage.mongo.rows import from_row, may_lack, reader, to_row, utc

may_lack(ApiKey, "org_id")


class MongoApiKeyStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._keys = database.collection(API_KEYS)
        self._ended = database.collection(ENDED_TOKENS)

    async def add(self, key: ApiKey) -> None:
        """Raises Conflict when the key is there already."""
        with translated():
            await self._keys.insert_one(to_row(key) | {"scopes": sorted(key.scopes)})

    async def find(self, key_hash: str) -> ApiKey | None:
        """Revoked keys as well: the caller looks at `revoked_at`."""
        return await first(self._keys, {"key_hash": {"$eq": key_hash}}, reader(ApiKey))

    async def revoke(self, principal: str | None, at: datetime, *, org_id: str | None) -> int:
        living = {"org_id": {"$eq": org_id}, "revoked_at": None}
        named = {} if principal is None else {"principal": {"$eq": principal}}
        with translated():
            done = await self._keys.update_many(named | living, {"$set": {"revoked_at": utc(at)}})
        return done.modified_count

    async def end_token(self, token_id: str, expires_at: datetime) -> None:
        row = {"expires_at": utc(expires_at)}
        with translated():
            await self._ended.replace_one({"_id": {"$eq": token_id}}, row, upsert=True)

    async def token_ended(self, token_id: str) -> bool:
        return await first(self._ended, {"_id": {"$eq": token_id}}, bool) is not None

    async def all(self) -> list[ApiKey]:
        """Oldest first."""
        with translated():
            cursor = self._keys.find(sort=[("created_at", 1), ("key_hash", 1)])
            return [from_row(ApiKey, doc) async for doc in cursor]
