"""The typed graph in process memory. It passes the contract suite of MongoDB's store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.rules.filtering import checked_user
from rayapp.understanding.statements.ports import MOST_STATEMENTS, StatementsWanted
from rayapp.understanding.statements.records import Entity, Given, Statement

T = TypeVar("T")
RowT = TypeVar("RowT")


Rows = dict[tuple[str, str], RowT]


@dataclass
class KnowledgeTables:
    """The rows of all users, by user and id."""

    given: Rows[Given] = field(default_factory=dict)
    entities: Rows[Entity] = field(default_factory=dict)
    statements: Rows[Statement] = field(default_factory=dict)


class InMemoryKnowledgeRows:
    """Implements `KnowledgeRows`: the rows of one user."""

    def __init__(self, tables: KnowledgeTables, user_id: str) -> None:
        self._tables, self._user_id = tables, user_id

    async def given(self, source_id: str) -> Given | None:
        return self._tables.given.get((self._user_id, source_id))

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
        found = [one for one in self._mine(self._tables.entities) if type_ in (None, one.type)]
        return sorted(found, key=lambda one: (-one.mentions, one.entity_id))[: max(0, limit)]

    async def statements(
        self, wanted: StatementsWanted, limit: int = MOST_STATEMENTS
    ) -> list[Statement]:
        found = [one for one in self._mine(self._tables.statements) if _is_wanted(one, wanted)]
        found.sort(key=lambda one: one.statement_id)
        found.sort(key=lambda one: one.confirmed_at, reverse=True)
        return found[: max(0, limit)]

    async def put_given(self, given: Given) -> None:
        self._tables.given[self._user_id, given.source_id] = given

    async def delete_given(self, source_id: str) -> None:
        self._tables.given.pop((self._user_id, source_id), None)

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
                dict(tables.given), dict(tables.entities), dict(tables.statements)
            )
            done = await work(InMemoryKnowledgeRows(draft, user_id))
            # Others hold these very rows.
            for held, new in (
                (tables.given, draft.given),
                (tables.entities, draft.entities),
                (tables.statements, draft.statements),
            ):
                _replace(held, new)
            return done


def _replace(held: dict[Any, Any], new: dict[Any, Any]) -> None:
    held.clear()
    held.update(new)


def _is_wanted(one: Statement, wanted: StatementsWanted) -> bool:
    pairs = (
        (wanted.source_ids, one.source_id),
        (wanted.slots, one.slot),
        (wanted.fact_ids, one.fact_id),
        (wanted.subject_ids, one.subject_id),
        (wanted.object_ids, one.object_id),
        (wanted.relations, one.relation),
        (wanted.spans, one.span),
    )
    if any(values is not None and value not in values for values, value in pairs):
        return False
    touching = wanted.touching
    return touching is None or one.subject_id in touching or one.object_id in touching
