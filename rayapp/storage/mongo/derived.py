"""The MongoDB implementation of `DerivedStore`. Every query carries equality on user_id."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pymongo import ASCENDING, DESCENDING, ReplaceOne
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.storage.mongo.database import MongoDatabase, aggregated, last_of, listed, page_after
from rayapp.storage.mongo.event_stream import event_document
from rayapp.storage.mongo.indexes import DERIVED, EVENTS
from rayapp.storage.mongo.knowledge import MongoKnowledgeRows
from rayapp.storage.mongo.predicates import mine, own
from rayapp.storage.mongo.rows import reader, to_row
from rayapp.understanding.derived.ports import MOST_ROWS, DerivedWanted
from rayapp.understanding.derived.records import Derived, DerivedKind, State
from rayapp.understanding.derived.rules.news import news_of
from rayapp.understanding.ports import SourcePage

Document = dict[str, Any]
T = TypeVar("T")
_derived = reader(Derived)


class MongoDerivedRows:
    """Implements `DerivedRows`: the rows of one user, within `session` or without one."""

    def __init__(
        self, database: MongoDatabase, owner: Document, session: AsyncClientSession | None = None
    ) -> None:
        self._rows = database.collection(DERIVED)
        self._events = database.collection(EVENTS)
        self._owner, self._session = owner, session

    async def by_ids(self, ids: Sequence[str]) -> list[Derived]:
        if not ids:
            return []
        where = {**self._owner, "derived_id": {"$in": list(ids)}}
        return await listed(self._rows, where, _derived, session=self._session)

    async def of_sources(self, source_ids: Sequence[str]) -> list[Derived]:
        if not source_ids:
            return []
        where = {**self._owner, "sources.source_id": {"$in": list(source_ids)}}
        order = [("derived_id", ASCENDING)]
        return await listed(self._rows, where, _derived, sort=order, session=self._session)

    async def wanted(self, wanted: DerivedWanted, limit: int = MOST_ROWS) -> list[Derived]:
        if limit < 1:
            return []
        where = {**self._owner, **_where(wanted)}
        order = [("last_at", DESCENDING), ("derived_id", ASCENDING)]
        return await listed(
            self._rows, where, _derived, sort=order, limit=limit, session=self._session
        )

    async def put(self, rows: Sequence[Derived]) -> None:
        if not rows:
            return
        writes = [
            ReplaceOne(
                {**self._owner, "derived_id": one.derived_id},
                {**to_row(one), **self._owner},
                upsert=True,
            )
            for one in rows
        ]
        await self._rows.bulk_write(writes, ordered=False, session=self._session)

    async def delete(self, ids: Sequence[str]) -> None:
        if ids:
            where = {**self._owner, "derived_id": {"$in": list(ids)}}
            await self._rows.delete_many(where, session=self._session)

    async def tell(self, rows: Sequence[Derived]) -> None:
        if rows:
            told = [news_of(self._owner["user_id"], one) for one in rows]
            await self._events.insert_many(map(event_document, told), session=self._session)


class MongoDerivedStore:
    """Implements `DerivedStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database

    def reads(self, scope: ReadScope) -> MongoDerivedRows:
        return MongoDerivedRows(self._database, mine(scope))

    async def change(
        self, scope: WriteScope, work: Callable[[MongoDerivedRows], Awaitable[T]]
    ) -> T:
        owner = own(scope)

        async def run(session: AsyncClientSession) -> T:
            return await work(MongoDerivedRows(self._database, owner, session))

        return await self._database.transaction(run)

    async def pending(self, scope: ReadScope) -> Mapping[DerivedKind, int]:
        return await self._pending(mine(scope))

    async def pending_of_all(self) -> Mapping[DerivedKind, int]:
        return await self._pending({})

    async def sources_after(self, after: tuple[str, str] | None, limit: int) -> SourcePage:
        rows, kept = self._database.collection(DERIVED), {"sources.source_id": True}
        found = await page_after(rows, "derived_id", after, limit, kept)
        pairs = {(doc["user_id"], one["source_id"]) for doc in found for one in doc["sources"]}
        return SourcePage(frozenset(pairs), last_of(found, "derived_id", limit))

    async def _pending(self, whose: Document) -> Mapping[DerivedKind, int]:
        waiting = {**whose, "state": State.PENDING.value}
        steps = [{"$match": waiting}, {"$group": {"_id": "$kind", "rows": {"$sum": 1}}}]
        found = await aggregated(self._database.collection(DERIVED), steps)
        return {DerivedKind(row["_id"]): row["rows"] for row in found}


class MongoUnderstoodStore:
    """Implements `UnderstoodStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database

    async def change(
        self,
        scope: WriteScope,
        work: Callable[[MongoKnowledgeRows, MongoDerivedRows], Awaitable[T]],
    ) -> T:
        owner = own(scope)

        async def run(session: AsyncClientSession) -> T:
            known = MongoKnowledgeRows(self._database, owner, session)
            return await work(known, MongoDerivedRows(self._database, owner, session))

        return await self._database.transaction(run)


def _where(wanted: DerivedWanted) -> Document:
    where: Document = {}
    if wanted.kind is not None:
        where["kind"] = wanted.kind.value
    if wanted.states is not None:
        where["state"] = {"$in": [one.value for one in wanted.states]}
    if wanted.types is not None:
        where["pattern.type"] = {"$in": [one.value for one in wanted.types]}
    if wanted.subject_ids is not None:
        where["subject_id"] = {"$in": list(wanted.subject_ids)}
    if wanted.perspective_ids is not None:
        where["perspective_owner_id"] = {"$in": list(wanted.perspective_ids)}
    if wanted.node_ids is not None:
        where["sources.node_ids"] = {"$in": list(wanted.node_ids)}
    if wanted.since is not None:
        where["last_at"] = {"$gte": wanted.since}
    if wanted.until is not None:
        where["first_at"] = {"$lte": wanted.until}
    return where
