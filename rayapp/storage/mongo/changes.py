"""The MongoDB implementation of `ChangeLog`, and how the stores write to it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from bson import Timestamp
from pymongo import DESCENDING
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import point_id_of
from rayapp.memory.ports import Change, Changes
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import CHANGES

Document = dict[str, Any]
# A transaction that began this long before another may end after it; the server ends it at 60 s.
OVERLAP_S = 60
# The server puts its own time in place of it, which grows with every insert.
SERVER_TIME = Timestamp(0, 0)
LOW_BITS = 32


class MongoChangeLog:
    """Rows hold no user id and no text: they outlive an erasure by their hour."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._rows = database.collection(CHANGES)

    async def since(self, user_id: str, until: int | None, limit: int) -> Changes:
        where: Document = {"owner": _owner(user_id)}
        if until is not None:
            where["at"] = {"$gte": Timestamp(max(0, (until >> LOW_BITS) - OVERLAP_S), 0)}
        # As a command: a cursor does not say how far the server had come.
        look = {
            "find": CHANGES,
            "filter": where,
            "sort": {"at": DESCENDING},
            "limit": limit,
            "batchSize": limit,
            "singleBatch": True,
        }
        with translated():
            answer = await self._database.read(look)
        changes = [
            Change(str(row["_id"]), _counted(row["at"]), tuple(row["points"]))
            for row in answer["cursor"]["firstBatch"]
        ]
        return Changes(changes, _counted(answer["operationTime"]))

    def before(self, at: int, seconds: float) -> int:
        return max(0, at - (int(seconds) << LOW_BITS))

    async def note_graphs(self, user_id: str, session: AsyncClientSession) -> None:
        """Say that the user's graphs gain something. Raises as the driver does."""
        await self._note({user_id: []}, session)

    async def note(
        self, items: Iterable[tuple[str, str]], session: AsyncClientSession | None = None
    ) -> None:
        """Say that items (user id, point id) are about to change; nobody keeps shared ones.

        Raises as the driver does.
        """
        points: dict[str, list[str]] = defaultdict(list)
        for user_id, point_id in items:
            if user_id != SYSTEM_USER:
                points[user_id].append(point_id)
        await self._note(points, session)

    async def _note(
        self, points: Mapping[str, list[str]], session: AsyncClientSession | None
    ) -> None:
        if not points:
            return
        now = datetime.now(UTC)
        rows = [
            {"owner": _owner(user_id), "at": SERVER_TIME, "points": found, "noted_at": now}
            for user_id, found in points.items()
        ]
        if len(rows) == 1:
            await self._rows.insert_one(rows[0], session=session)
        else:
            await self._rows.insert_many(rows, ordered=False, session=session)


def _counted(at: Timestamp) -> int:
    return at.time << LOW_BITS | at.inc


def _owner(user_id: str) -> str:
    return point_id_of(user_id, "")
