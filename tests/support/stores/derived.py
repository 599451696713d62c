"""Episodes and thoughts in process memory. It passes the contract suite of MongoDB's store."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.ports import Event
from rayapp.memory.rules.filtering import checked_user
from rayapp.understanding.derived.ports import MOST_ROWS, DerivedWanted
from rayapp.understanding.derived.records import Derived, DerivedKind, State
from rayapp.understanding.derived.rules.news import news_of
from rayapp.understanding.ports import SourcePage

T = TypeVar("T")
Rows = dict[tuple[str, str], Derived]


class InMemoryDerivedRows:
    """Implements `DerivedRows`: the rows of one user."""

    def __init__(self, rows: Rows, events: list[Event], user_id: str) -> None:
        self._rows, self._events, self._user_id = rows, events, user_id

    async def by_ids(self, ids: Sequence[str]) -> list[Derived]:
        keys = ((self._user_id, one) for one in dict.fromkeys(ids))
        return [one for key in keys if (one := self._rows.get(key)) is not None]

    async def of_source(self, source_id: str) -> list[Derived]:
        found = [
            one for one in self._mine() if any(each.source_id == source_id for each in one.sources)
        ]
        return sorted(found, key=lambda one: one.derived_id)

    async def wanted(self, wanted: DerivedWanted, limit: int = MOST_ROWS) -> list[Derived]:
        found = [one for one in self._mine() if _is_wanted(one, wanted)]
        found.sort(key=lambda one: one.derived_id)
        found.sort(key=lambda one: one.last_at, reverse=True)
        return found[: max(0, limit)]

    async def put(self, rows: Sequence[Derived]) -> None:
        self._rows.update({(self._user_id, one.derived_id): one for one in rows})

    async def delete(self, ids: Sequence[str]) -> None:
        for one in ids:
            self._rows.pop((self._user_id, one), None)

    async def tell(self, rows: Sequence[Derived], at: datetime) -> None:
        self._events += [news_of(self._user_id, one, at) for one in rows]

    def _mine(self) -> list[Derived]:
        return [row for (user_id, _), row in self._rows.items() if user_id == self._user_id]


class InMemoryDerivedStore:
    """Implements `DerivedStore`. `told`: what the event stream would tell."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.told: list[Event] = []
        self._lock = asyncio.Lock()

    def reads(self, scope: ReadScope) -> InMemoryDerivedRows:
        return InMemoryDerivedRows(self.rows, [], checked_user(scope.user_id))

    async def change(
        self, scope: WriteScope, work: Callable[[InMemoryDerivedRows], Awaitable[T]]
    ) -> T:
        user_id = checked_user(scope.user_id)
        async with self._lock:
            draft, told = dict(self.rows), list[Event]()
            done = await work(InMemoryDerivedRows(draft, told, user_id))
            self.rows.clear()
            self.rows.update(draft)
            self.told += told
            return done

    async def pending(self, scope: ReadScope) -> Mapping[DerivedKind, int]:
        user_id = checked_user(scope.user_id)
        return self._pending({user_id})

    async def pending_of_all(self) -> Mapping[DerivedKind, int]:
        return self._pending({user_id for user_id, _ in self.rows})

    async def sources_after(self, after: tuple[str, str] | None, limit: int) -> SourcePage:
        keys = [key for key in sorted(self.rows) if after is None or key > after][:limit]
        pairs = {(key[0], one.source_id) for key in keys for one in self.rows[key].sources}
        return SourcePage(frozenset(pairs), keys[-1] if len(keys) >= limit else None)

    def _pending(self, users: set[str]) -> Mapping[DerivedKind, int]:
        return Counter(
            row.kind
            for (owner, _), row in self.rows.items()
            if owner in users and row.state is State.PENDING
        )


def _is_wanted(one: Derived, wanted: DerivedWanted) -> bool:
    if wanted.kind not in (None, one.kind):
        return False
    if wanted.states is not None and one.state not in wanted.states:
        return False
    if wanted.types is not None and (one.pattern is None or one.pattern.type not in wanted.types):
        return False
    for allowed, value in (
        (wanted.subject_ids, one.subject_id),
        (wanted.perspective_ids, one.perspective_owner_id),
    ):
        if allowed is not None and value not in allowed:
            return False
    if wanted.node_ids is not None and not set(one.node_ids).intersection(wanted.node_ids):
        return False
    if wanted.since is not None and one.last_at < wanted.since:
        return False
    return wanted.until is None or one.first_at <= wanted.until
