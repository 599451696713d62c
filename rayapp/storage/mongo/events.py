"""Events: transitions and repairs, kept 90 days."""

from __future__ import annotations

from typing import Any

from pymongo import DESCENDING

from rayapp.memory.ports import Event
from rayapp.memory.scope import ReadScope
from rayapp.storage.mongo.convert import utc
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import EVENTS
from rayapp.storage.mongo.predicates import mine

FIELDS = ("event_id", "user_id", "kind", "at", "memory_id", "data")


def event_document(event: Event) -> dict[str, Any]:
    utc(event.at)
    return {name: getattr(event, name) for name in FIELDS}


class MongoEventStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._events = database.collection(EVENTS)

    async def add(self, event: Event) -> None:
        with translated():
            await self._events.insert_one(event_document(event))

    async def recent(self, scope: ReadScope, kind: str | None, limit: int) -> list[Event]:
        """Newest first."""
        if limit < 1:
            return []
        where: dict[str, Any] = {**mine(scope)}
        if kind is not None:
            where["kind"] = kind
        order = [("at", DESCENDING), ("event_id", DESCENDING)]
        with translated():
            cursor = self._events.find(where, sort=order, limit=limit)
            return [Event(**{name: doc[name] for name in FIELDS}) async for doc in cursor]
