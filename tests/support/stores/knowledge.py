"""The typed graph in process memory. It passes the contract suite of MongoDB's store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeVar

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.rules.filtering import checked_user
from rayapp.understanding.statements.ports import MOST_STATEMENTS, StatementsWanted
from rayapp.understanding.statements.records import Entity, Given, Statement

T = TypeVar("T")


@dataclass
class Shelf:
    """The rows of one user."""

    given: dict[str, Given] = field(default_factory=dict)
    entities: dict[str, Entity] = field(default_factory=dict)
    statements: dict[str, Statement] = field(default_factory=dict)


class InMemoryKnowledgeRows:
    """Implements `KnowledgeRows`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def given(self, source_id: str) -> Given | None:
        return self._shelf.given.get(source_id)

    async def entities(self, entity_ids: Sequence[str]) -> list[Entity]:
        found = (self._shelf.entities.get(one) for one in dict.fromkeys(entity_ids))
        return [one for one in found if one is not None]

    async def named(self, type_: str | None, keys: Sequence[str]) -> list[Entity]:
        wanted = set(keys)
        return [
            one
            for one in self._shelf.entities.values()
            if type_ in (None, one.type) and not wanted.isdisjoint(key.name for key in one.keys)
        ]

    async def of_type(self, type_: str | None, limit: int) -> list[Entity]:
        found = [one for one in self._shelf.entities.values() if type_ in (None, one.type)]
        return sorted(found, key=lambda one: (-one.mentions, one.entity_id))[:limit]

    async def statements(
        self, wanted: StatementsWanted, limit: int = MOST_STATEMENTS
    ) -> list[Statement]:
        found = [one for one in self._shelf.statements.values() if _is_wanted(one, wanted)]
        found.sort(key=lambda one: one.statement_id)
        found.sort(key=lambda one: one.confirmed_at, reverse=True)
        return found[:limit]

    async def put_given(self, given: Given) -> None:
        self._shelf.given[given.source_id] = given

    async def delete_given(self, source_id: str) -> None:
        self._shelf.given.pop(source_id, None)

    async def put_entities(self, entities: Sequence[Entity]) -> None:
        self._shelf.entities.update({one.entity_id: one for one in entities})

    async def delete_entities(self, entity_ids: Sequence[str]) -> None:
        for one in entity_ids:
            self._shelf.entities.pop(one, None)

    async def put_statements(self, statements: Sequence[Statement]) -> None:
        self._shelf.statements.update({one.statement_id: one for one in statements})

    async def delete_statements(self, statement_ids: Sequence[str]) -> None:
        for one in statement_ids:
            self._shelf.statements.pop(one, None)


class InMemoryKnowledgeStore:
    """Implements `KnowledgeStore`."""

    def __init__(self) -> None:
        self.shelves: dict[str, Shelf] = {}
        self._lock = asyncio.Lock()

    def reads(self, scope: ReadScope) -> InMemoryKnowledgeRows:
        return InMemoryKnowledgeRows(self._shelf(scope.user_id))

    async def change(
        self, scope: WriteScope, work: Callable[[InMemoryKnowledgeRows], Awaitable[T]]
    ) -> T:
        user_id = checked_user(scope.user_id)
        async with self._lock:
            draft = deepcopy(self._shelf(user_id))
            done = await work(InMemoryKnowledgeRows(draft))
            self.shelves[user_id] = draft
            return done

    def _shelf(self, user_id: str) -> Shelf:
        return self.shelves.setdefault(checked_user(user_id), Shelf())


def _is_wanted(one: Statement, wanted: StatementsWanted) -> bool:
    pairs = (
        (wanted.source_ids, one.source_id),
        (wanted.slots, one.slot),
        (wanted.fact_ids, one.fact_id),
        (wanted.subject_ids, one.subject_id),
        (wanted.object_ids, one.object_id),
        (wanted.relations, one.relation),
    )
    if any(values is not None and value not in values for values, value in pairs):
        return False
    touching = wanted.touching
    return touching is None or one.subject_id in touching or one.object_id in touching
