"""The MongoDB implementation of `ChangeLog`, and how the stores write to it."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bson import Timestamp
from pymongo import DESCENDING
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import PyMongoError

from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import point_id_of
from rayapp.memory.ports import Change, Changes
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import CHANGE_TTL_S, CHANGES

Document = dict[str, Any]
# A transaction that began this long before another may end after it; the server ends it at 60 s.
OVERLAP_S = 60
# Notes end by the clock of whoever wrote them, which may be wrong.
WHOLE_S = CHANGE_TTL_S / 2
# The server puts its own time in place of it, which grows with every insert.
SERVER_TIME = Timestamp(0, 0)
LOW_BITS = 32


@dataclass(frozen=True, slots=True)
class _Look:
    """What one search asks for. `begin`: seconds of the server's time, 0 = whatever is there."""

    owner: str
    begin: int
    limit: int

    @property
    def where(self) -> Document:
        since: Document = {"at": {"$gte": Timestamp(self.begin, 0)}} if self.begin else {}
        return {"owner": self.owner, **since}

    def changes(self, rows: Iterable[Document]) -> list[Change]:
        return [
            Change(str(row["_id"]), _counted(row["at"]), tuple(row["points"]), "done" in row)
            for row in rows
            if row["owner"] == self.owner and row["at"].time >= self.begin
        ]


class _Group(NamedTuple):
    """Looks that are asked together, and the read that is about to begin."""

    looks: list[_Look]
    read: asyncio.Task[tuple[list[Document], int]]


class MongoChangeLog:
    """Rows hold no user id and no text: they outlive an erasure by their hour."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._rows = database.collection(CHANGES)
        self._next: _Group | None = None

    async def since(self, user_id: str, until: int | None, limit: int) -> Changes:
        """Searches that come in one turn of the event loop ask together: one command of .2 ms."""
        begin = 0 if until is None else max(0, (until >> LOW_BITS) - OVERLAP_S)
        look = _Look(_owner(user_id), begin, limit)
        if self._next is None:
            looks: list[_Look] = []
            self._next = _Group(looks, asyncio.create_task(self._read_group(looks)))
        group = self._next
        group.looks.append(look)
        with translated():
            # A caller who gives up does not end the read of the others.
            rows, at = await asyncio.shield(group.read)
            if len(group.looks) > 1 and len(rows) >= _limit_of(group.looks):
                # One of them has so many that those of others may be left out.
                rows, at = await self._read([look])
        # By the server's clock: that of a process stands still while its machine sleeps.
        whole = until is None or until >= self.before(at, WHOLE_S)
        return Changes(look.changes(rows), at, whole)

    async def _read_group(self, looks: list[_Look]) -> tuple[list[Document], int]:
        self._next = None  # whoever comes from now on may know of a later write
        return await self._read(looks)

    async def _read(self, looks: Sequence[_Look]) -> tuple[list[Document], int]:
        """Rows, the newest first, and the server's time."""
        limit, wheres = _limit_of(looks), [look.where for look in looks]
        # As a command: a cursor does not say how far the server had come.
        answer = await self._database.read(
            {
                "find": CHANGES,
                "filter": wheres[0] if len(wheres) == 1 else {"$or": wheres},
                "sort": {"at": DESCENDING},
                "limit": limit,
                "batchSize": limit,
                "singleBatch": True,
            }
        )
        return answer["cursor"]["firstBatch"], _counted(answer["operationTime"])

    def before(self, at: int, seconds: float) -> int:
        return max(0, at - (int(seconds) << LOW_BITS))

    async def note_graphs(self, user_id: str, session: AsyncClientSession | None = None) -> None:
        """Say that the user's graphs gain something. Raises as the driver does."""
        await self._note({user_id: []}, session)

    async def note(
        self, items: Iterable[tuple[str, str]], session: AsyncClientSession | None = None
    ) -> None:
        """Say that items (user id, point id) are about to change; nobody keeps shared ones.

        Raises as the driver does.
        """
        await self._note(_by_user(items), session)

    @asynccontextmanager
    async def around(self, items: Iterable[tuple[str, str]]) -> AsyncIterator[None]:
        """Say that many items are about to change, and after the block that they have: then no
        search reads them again and again. For one item that would cost more than it saves.

        After a block that raises nobody knows, and what is said late is said in vain.
        """
        with translated():
            noted = await self._note(_by_user(items), None)
        yield
        with suppress(PyMongoError):
            await self._rows.update_many({"_id": {"$in": noted}}, {"$set": {"done": True}})

    async def _note(
        self, points: Mapping[str, list[str]], session: AsyncClientSession | None
    ) -> list[Any]:
        """Ids of the notes. Those of a transaction are seen when what it wrote is."""
        if not points:
            return []
        now = datetime.now(UTC)
        done = {} if session is None else {"done": True}
        rows: list[Document] = [
            {"owner": _owner(user_id), "at": SERVER_TIME, "points": found, "noted_at": now, **done}
            for user_id, found in points.items()
        ]
        if len(rows) == 1:
            return [(await self._rows.insert_one(rows[0], session=session)).inserted_id]
        made = await self._rows.insert_many(rows, ordered=False, session=session)
        return made.inserted_ids


def _by_user(items: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    points: dict[str, list[str]] = defaultdict(list)
    for user_id, point_id in items:
        if user_id != SYSTEM_USER:
            points[user_id].append(point_id)
    return points


def _counted(at: Timestamp) -> int:
    return at.time << LOW_BITS | at.inc


def _owner(user_id: str) -> str:
    return point_id_of(user_id, "")


def _limit_of(looks: Sequence[_Look]) -> int:
    return sum(look.limit for look in looks)
