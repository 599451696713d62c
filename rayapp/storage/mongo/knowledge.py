"""The MongoDB implementation of `KnowledgeStore`. Every query carries equality on user_id.

Two changes that touch one node conflict, since both write it; the driver repeats the one that lost.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pymongo import ASCENDING, DESCENDING, ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.storage.mongo.database import MongoDatabase, first, last_of, listed, page_after
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import GIVEN, KNOWN_ENTITIES, MERGES, STATEMENTS
from rayapp.storage.mongo.predicates import mine, own
from rayapp.storage.mongo.rows import may_lack, reader, to_row
from rayapp.understanding.ports import SourcePage
from rayapp.understanding.statements.ports import MOST_STATEMENTS, StatementsWanted
from rayapp.understanding.statements.records import Entity, Given, Merge, MergeState, Statement

Document = dict[str, Any]
T = TypeVar("T")
may_lack(Entity, "merged_into", "joined")
may_lack(Statement, "meant")
_given, _entity, _statement = reader(Given), reader(Entity), reader(Statement)
_merge = reader(Merge)
_FIELDS = (
    ("source_ids", "source_id"),
    ("slots", "slot"),
    ("fact_ids", "fact_id"),
    ("subject_ids", "subject_id"),
    ("object_ids", "object_id"),
    ("relations", "relation"),
    ("spans", "span"),
    ("premise_ids", "premises.fact_id"),
)
_ENDS = ("subject_id", "object_id", "holder_id", "target_id")
_EVERY_END = (*_ENDS, *(f"meant.{end}" for end in _ENDS))


class MongoKnowledgeRows:
    """Implements `KnowledgeRows`: the rows of one user, within `session` or without one."""

    def __init__(
        self, database: MongoDatabase, owner: Document, session: AsyncClientSession | None = None
    ) -> None:
        self._given = database.collection(GIVEN)
        self._entities = database.collection(KNOWN_ENTITIES)
        self._statements = database.collection(STATEMENTS)
        self._merges = database.collection(MERGES)
        self._owner, self._session = owner, session

    async def given(self, source_ids: Sequence[str]) -> list[Given]:
        if not source_ids:
            return []
        where = {**self._owner, "source_id": {"$in": list(source_ids)}}
        return await listed(self._given, where, _given, session=self._session)

    async def gave(self, source_ids: Sequence[str]) -> set[str]:
        if not source_ids:
            return set()
        where = {**self._owner, "source_id": {"$in": list(source_ids)}}
        found = await listed(
            self._given, where, dict, projection={"source_id": 1}, session=self._session
        )
        return {row["source_id"] for row in found}

    async def entities(self, entity_ids: Sequence[str]) -> list[Entity]:
        if not entity_ids:
            return []
        where = {**self._owner, "entity_id": {"$in": list(entity_ids)}}
        return await listed(self._entities, where, _entity, session=self._session)

    async def named(self, type_: str | None, keys: Sequence[str]) -> list[Entity]:
        if not keys:
            return []
        where = {**self._owner, "keys.name": {"$in": list(keys)}, **_of(type_)}
        order = [("entity_id", ASCENDING)]
        return await listed(self._entities, where, _entity, sort=order, session=self._session)

    async def of_type(self, type_: str | None, limit: int) -> list[Entity]:
        order = [("mentions", DESCENDING), ("entity_id", ASCENDING)]
        where = {**self._owner, **_of(type_), "merged_into": None}
        return await listed(
            self._entities, where, _entity, sort=order, limit=limit, session=self._session
        )

    async def unnamed(self, limit: int) -> list[Entity]:
        where = {**self._owner, "mentions": {"$lte": 0}, "verified_by": None}
        order = [("entity_id", ASCENDING)]
        return await listed(
            self._entities, where, _entity, sort=order, limit=limit, session=self._session
        )

    async def parts(self, entity_ids: Sequence[str]) -> list[Entity]:
        if not entity_ids:
            return []
        where = {**self._owner, "merged_into": {"$in": list(entity_ids), "$type": "string"}}
        order = [("entity_id", ASCENDING)]
        return await listed(self._entities, where, _entity, sort=order, session=self._session)

    async def merges(self, state: MergeState | None, limit: int) -> list[Merge]:
        where = self._owner if state is None else {**self._owner, "state": state.value}
        order = [("created_at", DESCENDING), ("merge_id", ASCENDING)]
        return await listed(
            self._merges, where, _merge, sort=order, limit=limit, session=self._session
        )

    async def merge(self, merge_id: str) -> Merge | None:
        where = {**self._owner, "merge_id": merge_id}
        return await first(self._merges, where, _merge, session=self._session)

    async def statements(
        self, wanted: StatementsWanted, limit: int = MOST_STATEMENTS
    ) -> list[Statement]:
        where = {**self._owner, **_wanted(wanted)}
        if wanted.touching is not None:
            touched = {"$in": list(wanted.touching)}
            # Equality on user_id stands in both branches, so that each can use its own index.
            where = {"$or": [{**where, end: touched} for end in ("subject_id", "object_id")]}
        if wanted.naming is not None:
            named = {"$in": list(wanted.naming)}
            where = {"$or": [{**where, end: named} for end in _EVERY_END]}
        order = [("confirmed_at", DESCENDING), ("statement_id", ASCENDING)]
        return await listed(
            self._statements, where, _statement, sort=order, limit=limit, session=self._session
        )

    async def put_given(self, given: Sequence[Given]) -> None:
        await self._put(self._given, "source_id", [to_row(one) for one in given])

    async def delete_given(self, source_ids: Sequence[str]) -> None:
        await self._delete(self._given, "source_id", source_ids)

    async def put_entities(self, entities: Sequence[Entity]) -> None:
        await self._put(self._entities, "entity_id", [to_row(one) for one in entities])

    async def delete_entities(self, entity_ids: Sequence[str]) -> None:
        await self._delete(self._entities, "entity_id", entity_ids)

    async def put_statements(self, statements: Sequence[Statement]) -> None:
        await self._put(self._statements, "statement_id", [to_row(one) for one in statements])

    async def delete_statements(self, statement_ids: Sequence[str]) -> None:
        await self._delete(self._statements, "statement_id", statement_ids)

    async def put_merges(self, merges: Sequence[Merge]) -> None:
        await self._put(self._merges, "merge_id", [to_row(one) for one in merges])

    async def delete_merges(self, merge_ids: Sequence[str]) -> None:
        await self._delete(self._merges, "merge_id", merge_ids)

    async def _put(self, rows: Any, key: str, docs: Sequence[Document]) -> None:
        if not docs:
            return
        writes = [
            ReplaceOne({**self._owner, key: doc[key]}, {**doc, **self._owner}, upsert=True)
            for doc in docs
        ]
        await rows.bulk_write(writes, ordered=False, session=self._session)

    async def _delete(self, rows: Any, key: str, ids: Sequence[str]) -> None:
        if ids:
            where = {**self._owner, key: {"$in": list(ids)}}
            await rows.delete_many(where, session=self._session)


class MongoKnowledgeStore:
    """Implements `KnowledgeStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database

    def reads(self, scope: ReadScope) -> MongoKnowledgeRows:
        return MongoKnowledgeRows(self._database, mine(scope))

    async def change(
        self, scope: WriteScope, work: Callable[[MongoKnowledgeRows], Awaitable[T]]
    ) -> T:
        owner = own(scope)

        async def run(session: AsyncClientSession) -> T:
            return await work(MongoKnowledgeRows(self._database, owner, session))

        return await self._database.transaction(run)

    async def pending_of_all(self) -> int:
        with translated():
            waiting = {"state": MergeState.PENDING.value}
            return await self._database.collection(MERGES).count_documents(waiting)

    async def sources_after(self, after: tuple[str, str] | None, limit: int) -> SourcePage:
        found = await page_after(self._database.collection(GIVEN), "source_id", after, limit, {})
        pairs = {(doc["user_id"], doc["source_id"]) for doc in found}
        return SourcePage(frozenset(pairs), last_of(found, "source_id", limit))


def _of(type_: str | None) -> Mapping[str, str]:
    return {} if type_ is None else {"type": type_}


def _wanted(wanted: StatementsWanted) -> Document:
    asked = ((path, getattr(wanted, name)) for name, path in _FIELDS)
    return {path: {"$in": list(values)} for path, values in asked if values is not None}
