"""The whole store as its administrator sees it, in process memory; and an old memory bank."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from rayapp.admin import ports
from rayapp.admin.rules import SESSION_USER
from rayapp.core.errors import InvalidInput
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.rules.filtering import checked_user, matches
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.portability.rules.collections import ITEMS, KEPT_IN_RESET
from tests.support.stores import InMemoryMemoryStore

Rows = MutableMapping[Any, Any]


class InMemoryHousekeeping:
    """Implements `admin.ports.Housekeeping`. `tables`: rows by collection, beside the items.

    The owner of a row is the first part of its key, else its own `user_id`, else its key.
    """

    def __init__(
        self, items: InMemoryMemoryStore, tables: Mapping[str, Rows], conversations: Rows
    ) -> None:
        self._conversations = conversations
        self._items = items._rows
        self._tables: dict[str, Rows] = {ITEMS: self._items, **tables}

    async def sizes(self) -> list[ports.CollectionSize]:
        return [
            ports.CollectionSize(name=name, count=len(rows), size_bytes=0, storage_bytes=0)
            for name, rows in sorted(self._tables.items())
        ]

    async def compact(self, collection: str, timeout_s: float) -> ports.Compaction:
        self._known(collection)
        return ports.Compaction(collection=collection, before_bytes=0, after_bytes=0)

    async def aged(self, limit: ports.RetentionLimit, held: Collection[str]) -> dict[str, int]:
        if limit.memories is not None:
            items = (row.item for row in self._items.values())
            users = [item.user_id for item in items if matches(item, limit.memories)]
        elif limit.kind is ports.RetentionKind.CONVERSATIONS:
            rows = self._conversations.items()
            users = [key[0] for key, row in rows if row.last_at < limit.before]
        else:
            books = [row.book for row in self._tables["documents"].values()]
            open_ = (book for book in books if book.attached_to is None)
            users = [book.user_id for book in open_ if book.uploaded_at < limit.before]
        counts = Counter(user for user in users if user not in {*held, SYSTEM_USER})
        return dict(sorted(counts.items()))

    async def session_users(self) -> list[ports.SessionUser]:
        by_user: dict[str, list[MemoryItem]] = {}
        for row in self._items.values():
            known = re.fullmatch(SESSION_USER, row.item.user_id)
            if known and row.item.status is not Status.DELETED:
                by_user.setdefault(row.item.user_id, []).append(row.item)
        found = [
            ports.SessionUser(
                user_id=user_id,
                memories=len(items),
                last_change=max(item.updated_at for item in items),
            )
            for user_id, items in by_user.items()
        ]
        return sorted(found, key=lambda one: (one.last_change, one.user_id))

    async def forget_rows(self, user_id: str) -> int:
        checked_user(user_id)
        tables = [rows for name, rows in self._tables.items() if name != ITEMS]
        return sum(
            _remove(rows, [k for k in rows if _owner(k, rows[k]) == user_id]) for rows in tables
        )

    async def remove_points(self, point_ids: Sequence[str]) -> int:
        return _remove(self._items, [one for one in point_ids if one in self._items])

    async def empty(self, collection: str) -> int:
        rows = self._known(collection)
        if collection in KEPT_IN_RESET:
            raise InvalidInput(f"{collection} is kept by a reset; name another collection.")
        return _remove(rows, list(rows))

    def _known(self, collection: str) -> Rows:
        if collection not in self._tables:
            raise InvalidInput("This is no collection of this service; see /api/system/data-sizes.")
        return self._tables[collection]


class InMemoryLegacyBank:
    """Implements `admin.ports.LegacyBank` over rows that a test sets."""

    def __init__(self) -> None:
        self.stored: dict[str, list[ports.LegacyFact]] = {}

    async def total(self, scope: ReadScope) -> int:
        return len(self.stored.get(checked_user(scope.user_id), []))

    async def rows(self, scope: ReadScope) -> AsyncIterator[ports.LegacyFact]:
        for fact in sorted(
            self.stored.get(checked_user(scope.user_id), []), key=lambda one: one.raw_id
        ):
            yield fact

    async def mark_moved(self, scope: WriteScope, raw_id: str, at: datetime) -> None:
        rows = self.stored.get(checked_user(scope.user_id), [])
        rows[:] = [replace(one, moved=True) if one.raw_id == raw_id else one for one in rows]

    async def everybody(self) -> int:
        return sum(map(len, self.stored.values()))

    async def empty(self) -> int:
        gone = await self.everybody()
        self.stored.clear()
        return gone


def _owner(key: Any, row: Any) -> str:
    if isinstance(key, tuple):
        return str(key[0])
    return str(getattr(row, "user_id", key))


def _remove(rows: Rows, keys: Iterable[Any]) -> int:
    gone = list(keys)
    for key in gone:
        del rows[key]
    return len(gone)
