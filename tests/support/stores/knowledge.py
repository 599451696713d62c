"""The typed graph in process memory. It passes the contract suite of MongoDB's store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.rules.filtering import checked_user
from rayapp.understanding.ports import SourcePage
from rayapp.understanding.statements.ports import MOST_STATEMENTS, StatementsWanted
from rayapp.understanding.statements.records import Entity, Given, Merge, MergeState, Statement

T = TypeVar("T")
RowT = TypeVar("RowT")


Rows = dict[tuple[str, str], RowT]


@dataclass
class KnowledgeTables:
    """The rows of all users, by user and id."""

    given: Rows[Given] = field(default_factory=dict)
    entities: Rows[Entity] = field(default_factory=dict)
    statements: Rows[Statement] = field(default_factory=dict)
    merges: Rows[Merge] = field(default_factory=dict)


class InMemoryKnowledgeRows:
    """Implements `KnowledgeRows`: the rows of one user."""

    def __init__(self, tables: KnowledgeTables, user_id: str) -> None:
        self._tables, self._user_id = tables, user_id

    async def given(self, source_ids: Sequence[str]) -> list[Given]:
        keys = ((self._user_id, one) for one in dict.fromkeys(source_ids))
        return [one for key in keys if (one := self._tables.given.get(key)) is not None]

    async def gave(self, source_ids: Sequence[str]) -> set[str]:
        return {one for one in source_ids if (self._user_id, one) in self._tables.given}

    async def entities(self, entity_ids: Sequence[str]) -> list[Entity]:
        keys = ((self._user_id, one) for one in dict.fromkeys(entity_ids))
        return [one for key in keys if (one := self._tables.entities.get(key)) is not None]

    async def named(self, type_: str | None, keys: Sequence[str]) -> list[Entity]:
        wanted = set(keys)
        found = [
            one
            for one in self._mine(self._tables.entities)
            if type_ in (None, one.type) and not wanted.isdisjoint(key.name for key in one.keys)
        ]
        return sorted(found, key=lambda one: one.entity_id)

    async def of_type(self, type_: str | None, limit: int) -> list[Entity]:
        found = [
            one
            for one in self._mine(self._tables.entities)
            if type_ in (None, one.type) and one.merged_into is None
        ]
        return sorted(found, key=lambda one: (-one.mentions, one.entity_id))[: max(0, limit)]

    async def unnamed(self, limit: int) -> list[Entity]:
        found = [
            one
            for one in self._mine(self._tables.entities)
            if one.mentions <= 0 and not one.verified
        ]
        return sorted(found, key=lambda one: one.entity_id)[: max(0, limit)]

    async def parts(self, entity_ids: Sequence[str]) -> list[Entity]:
        found = [one for one in self._mine(self._tables.entities) if one.merged_into in entity_ids]
        return sorted(found, key=lambda one: one.entity_id)

    async def merges(self, state: MergeState | None, limit: int) -> list[Merge]:
        found = [one for one in self._mine(self._tables.merges) if state in (None, one.state)]
        found.sort(key=lambda one: one.merge_id)
        found.sort(key=lambda one: one.created_at, reverse=True)
        return found[: max(0, limit)]

    async def merge(self, merge_id: str) -> Merge | None:
        return self._tables.merges.get((self._user_id, merge_id))

    async def statements(
        self, wanted: StatementsWanted, limit: int = MOST_STATEMENTS
    ) -> list[Statement]:
        found = [one for one in self._mine(self._tables.statements) if wanted.has(one)]
        found.sort(key=lambda one: one.statement_id)
        found.sort(key=lambda one: one.confirmed_at, reverse=True)
        return found[: max(0, limit)]

    async def put_given(self, given: Sequence[Given]) -> None:
        self._tables.given.update({(self._user_id, one.source_id): one for one in given})

    async def delete_given(self, source_ids: Sequence[str]) -> None:
        for one in source_ids:
            self._tables.given.pop((self._user_id, one), None)

    async def put_entities(self, entities: Sequence[Entity]) -> None:
        self._tables.entities.update({(self._user_id, one.entity_id): one for one in entities})

    async def delete_entities(self, entity_ids: Sequence[str]) -> None:
        for one in entity_ids:
            self._tables.entities.pop((self._user_id, one), None)

    async def put_statements(self, statements: Sequence[Statement]) -> None:
        rows = {(self._user_id, one.statement_id): one for one in statements}
        self._tables.statements.update(rows)

    async def delete_statements(self, statement_ids: Sequence[str]) -> None:
        for one in statement_ids:
            self._tables.statements.pop((self._user_id, one), None)

    async def put_merges(self, merges: Sequence[Merge]) -> None:
        self._tables.merges.update({(self._user_id, one.merge_id): one for one in merges})

    async def delete_merges(self, merge_ids: Sequence[str]) -> None:
        for one in merge_ids:
            self._tables.merges.pop((self._user_id, one), None)

    def _mine(self, rows: Rows[RowT]) -> list[RowT]:
        return [row for (user_id, _), row in rows.items() if user_id == self._user_id]


class InMemoryKnowledgeStore:
    """Implements `KnowledgeStore`."""

    def __init__(self) -> None:
        self.tables = KnowledgeTables()
        self._lock = asyncio.Lock()

    def reads(self, scope: ReadScope) -> InMemoryKnowledgeRows:
        return InMemoryKnowledgeRows(self.tables, checked_user(scope.user_id))

    async def change(
        self, scope: WriteScope, work: Callable[[InMemoryKnowledgeRows], Awaitable[T]]
    ) -> T:
        user_id, tables = checked_user(scope.user_id), self.tables
        async with self._lock:
            draft = KnowledgeTables(
                dict(tables.given),
                dict(tables.entities),
                dict(tables.statements),
                dict(tables.merges),
            )
            done = await work(InMemoryKnowledgeRows(draft, user_id))
            # Others hold these very rows.
            for held, new in (
                (tables.given, draft.given),
                (tables.entities, draft.entities),
                (tables.statements, draft.statements),
                (tables.merges, draft.merges),
            ):
                _replace(held, new)
            return done

    async def pending_of_all(self) -> int:
        rows = self.tables.merges.values()
        return sum(one.state is MergeState.PENDING for one in rows)

    async def sources_after(self, after: tuple[str, str] | None, limit: int) -> SourcePage:
        every = sorted(self.tables.given)
        keys = [key for key in every if after is None or key > after][:limit]
        return SourcePage(frozenset(keys), keys[-1] if len(keys) >= limit else None)


def _replace(held: dict[Any, Any], new: dict[Any, Any]) -> None:
    held.clear()
    held.update(new)
