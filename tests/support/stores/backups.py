"""A database of backups in process memory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable

import bson

from tests.support.stores.user_keys import InMemoryUserKeys


def owner_of(row: bytes) -> str:
    """Empty: nobody."""
    return str(bson.decode(row).get("user_id", ""))


class InMemoryBackups:
    """Implements `portability.backup.Backups`; `fail_at`: a write that raises, as a death would."""

    names = ("memory_items", "events")

    def __init__(self) -> None:
        self.rows: dict[str, dict[object, bytes]] = {name: {} for name in self.names}
        self.fail_at: int | None = None
        self.others: list[str] = []
        self.user_keys = InMemoryUserKeys(self._owners)

    def add(self, name: str, *ids: int, **fields: str) -> None:
        for one in ids:
            self.rows[name][one] = bson.encode({"_id": one, "text": f"דנה {one}", **fields})

    def erase(self, user_id: str) -> None:
        """All rows of a user, and the key."""
        for name, rows in self.rows.items():
            self.rows[name] = {key: row for key, row in rows.items() if owner_of(row) != user_id}
        self.user_keys.erase(user_id)

    def _owners(self) -> set[str]:
        return {owner_of(row) for rows in self.rows.values() for row in rows.values()}

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[InMemoryBackups]:
        yield self

    @contextlib.asynccontextmanager
    async def scratch(self, name: str) -> AsyncIterator[InMemoryBackups]:
        self.others.append(name)
        yield type(self)()
        self.others.remove(name)

    async def databases(self) -> list[str]:
        return list(self.others)

    async def drop(self, name: str) -> None:
        self.others.remove(name)

    async def prepare(self) -> None:
        """Nothing to create."""

    async def total(self) -> int:
        return sum(map(len, self.rows.values()))

    async def empty(self) -> None:
        for rows in self.rows.values():
            rows.clear()

    async def load(self, name: str, rows: Iterable[bytes]) -> None:
        for row in rows:
            if self.fail_at is not None and await self.total() >= self.fail_at:
                raise ConnectionError
            self.rows[name][bson.decode(row)["_id"]] = row

    async def finds(self, memory: bytes) -> bool | None:
        doc = bson.decode(memory)
        return self.rows["memory_items"].get(doc["_id"]) == memory

    async def pages(self, name: str) -> AsyncIterator[list[bytes]]:
        rows = [row for _, row in sorted(self.rows[name].items(), key=lambda one: str(one[0]))]
        for start in range(0, len(rows), 2):
            yield rows[start : start + 2]

    async def owned_pages(self, name: str) -> AsyncIterator[list[tuple[str, bytes]]]:
        rows = sorted((owner_of(row), row) for row in self.rows[name].values())
        for start in range(0, len(rows), 2):
            yield rows[start : start + 2]
