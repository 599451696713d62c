"""Episodes and thoughts in process memory. It passes the contract suite of MongoDB's store."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.ports import Event
from rayapp.memory.rules.filtering import checked_user
from rayapp.understanding.derived.ports import MOST_ROWS, DerivedWanted
from rayapp.understanding.derived.records import Derived, DerivedKind, State
from rayapp.understanding.derived.rules.news import news_of
from rayapp.understanding.ports import SourcePage
from tests.support.stores.knowledge import InMemoryKnowledgeRows, InMemoryKnowledgeStore

T = TypeVar("T")
Rows = dict[tuple[str, str], Derived]


class InMemoryDerivedRows:
    """Implements `DerivedRows`: the rows of one user."""

    def __init__(self, rows: Rows, events: list[Event], user_id: str) -> None:
        self._rows, self._events, self._user_id = rows, events, user_id

    async def by_ids(self, ids: Sequence[str]) -> list[Derived]:
        keys = ((self._user_id, one) for one in dict.fromkeys(ids))
        return [one for key in keys if (one := self._rows.get(key)) is not None]

    async def of_sources(self, source_ids: Sequence[str]) -> list[Derived]:
        found = [
            one for one in self._mine() if any(each.source_id in source_ids for each in one.sources)
        ]
        return sorted(found, key=lambda one: one.derived_id)

    async def wanted(self, wanted: DerivedWanted, limit: int = MOST_ROWS) -> list[Derived]:
        found = [one for one in self._mine() if wanted.has(one)]
        found.sort(key=lambda one: one.derived_id)
        found.sort(key=lambda one: one.last_at, reverse=True)
        return found[: max(0, limit)]

    async def put(self, rows: Sequence[Derived]) -> None:
        self._rows.update({(self._user_id, one.derived_id): one for one in rows})

    async def delete(self, ids: Sequence[str]) -> None:
        for one in ids:
            self._rows.pop((self._user_id, one), None)

    async def tell(self, rows: Sequence[Derived]) -> None:
        self._events += [news_of(self._user_id, one) for one in rows]

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


@dataclass(frozen=True)
class InMemoryUnderstoodStore:
    """Implements `UnderstoodStore` over the two."""

    knowledge: InMemoryKnowledgeStore
    derived: InMemoryDerivedStore

    async def change(
        self,
        scope: WriteScope,
        work: Callable[[InMemoryKnowledgeRows, InMemoryDerivedRows], Awaitable[T]],
    ) -> T:
        async def both(known: InMemoryKnowledgeRows) -> T:
            return await self.derived.change(scope, lambda rows: work(known, rows))

        return await self.knowledge.change(scope, both)
