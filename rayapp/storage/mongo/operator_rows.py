"""Rows of operators: API keys, found by their SHA-256; users whose data are kept from being
deleted; one row per day; who did what."""

from datetime import datetime
from typing import Any

from rayapp.admin.ports import ApiKey, AuditEntry, AuditQuestion, DayRow, LegalHold
from rayapp.memory.rules.filtering import checked_user
from rayapp.storage.mongo.database import MongoDatabase, first, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import API_KEYS, AUDIT_LOG, DAYS, ENDED_TOKENS, HOLDS
from rayapp.storage.mongo.rows import from_row, may_lack, reader, to_row, utc

may_lack(ApiKey, "org_id", "name", "expires_at", "last_used_at")
may_lack(AuditEntry, "memory_ids")


class MongoApiKeyStore:
    """Implements `admin.ports.ApiKeyStore`."""

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

    async def end(self, key_hash: str, at: datetime) -> None:
        await self._change(key_hash, {"$set": {"revoked_at": utc(at)}}, {"revoked_at": None})

    async def expire(self, key_hash: str, at: datetime) -> None:
        # `$min` takes null for less than any time.
        later = {"$or": [{"expires_at": None}, {"expires_at": {"$gt": utc(at)}}]}
        await self._change(key_hash, {"$set": {"expires_at": utc(at)}}, later)

    async def used(self, key_hash: str, at: datetime) -> None:
        await self._change(key_hash, {"$max": {"last_used_at": utc(at)}})

    async def _change(
        self, key_hash: str, change: dict[str, Any], where: dict[str, Any] | None = None
    ) -> None:
        with translated():
            await self._keys.update_one({"key_hash": {"$eq": key_hash}, **(where or {})}, change)

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


class MongoAuditStore:
    """Implements `admin.ports.AuditStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(AUDIT_LOG)

    async def append(self, entry: AuditEntry) -> None:
        with translated():
            await self._rows.insert_one(to_row(entry))

    async def page(self, asked: AuditQuestion, now: datetime) -> list[AuditEntry]:
        at = {"$gte": utc(asked.since), "$lt": utc(asked.until)}
        where: dict[str, Any] = {
            "expires_at": {"$gt": utc(now)},
            "entry_id": {"$lt": asked.before},
            "principal": {"$eq": asked.principal},
            "user_id": {"$eq": asked.user_id},
            "route": {"$eq": asked.route},
            "at": {key: value for key, value in at.items() if value is not None} or None,
        }
        given = {name: one for name, one in where.items() if one and None not in one.values()}
        order = [("entry_id", -1)]
        return await listed(self._rows, given, reader(AuditEntry), sort=order, limit=asked.limit)


class MongoHoldStore:
    """Implements `admin.ports.HoldStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(HOLDS)

    async def place(self, hold: LegalHold) -> bool:
        where = {"user_id": checked_user(hold.user_id)}
        with translated():
            done = await self._rows.update_one(where, {"$setOnInsert": to_row(hold)}, upsert=True)
        return done.upserted_id is not None

    async def release(self, user_id: str) -> bool:
        with translated():
            done = await self._rows.delete_one({"user_id": checked_user(user_id)})
        return done.deleted_count > 0

    async def get(self, user_id: str) -> LegalHold | None:
        return await first(self._rows, {"user_id": checked_user(user_id)}, reader(LegalHold))

    async def all(self) -> list[LegalHold]:
        order = [("at", 1), ("user_id", 1)]
        return await listed(self._rows, {}, reader(LegalHold), sort=order)


class MongoDayStore:
    """Implements `admin.ports.DayStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(DAYS)

    async def keep(self, row: DayRow) -> None:
        with translated():
            await self._rows.replace_one({"day": row.day}, to_row(row), upsert=True)

    async def recent(self, days: int) -> list[DayRow]:
        return await listed(self._rows, {}, reader(DayRow), sort=[("day", -1)], limit=days)
