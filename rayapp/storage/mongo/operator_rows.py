"""Rows of operators: users whose data are kept from being deleted, and one row per day."""

from rayapp.admin.ports import DayRow, LegalHold
from rayapp.memory.rules.filtering import checked_user
from rayapp.storage.mongo.database import DURABLE, MongoDatabase, first, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import DAYS, HOLDS
from rayapp.storage.mongo.rows import reader, to_row


class MongoHoldStore:
    """Implements `admin.ports.HoldStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(HOLDS).with_options(write_concern=DURABLE)

    async def place(self, hold: LegalHold) -> LegalHold:
        where = {"user_id": checked_user(hold.user_id)}
        with translated():
            await self._rows.update_one(where, {"$setOnInsert": to_row(hold)}, upsert=True)
        return await self.get(hold.user_id) or hold

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
