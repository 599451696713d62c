"""A working `VectorIndex` in plain Python: exact search, real filters, real guards, BM25 x IDF.

Written without the engines' predicate on purpose: the contract suite compares the two.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rayapp.core.errors import Conflict, IndexDown, NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.vectors import IndexSchema, SparseVector, Vector
from rayapp.index import records
from rayapp.index.rules.points import (
    PASSAGE,
    VECTOR_HASH,
    check_moved,
    check_schema,
    checked_collection,
    checked_copies,
    checked_ids,
    checked_points,
    checked_sub_queries,
    checked_updates,
    collection_name,
    epoch_s,
)
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import DATAGOV_TIERS, SURVIVES_EXPIRY_SCORE, Tier

Payload = dict[str, Any]


@dataclass(slots=True)
class _Collection:
    schema: IndexSchema
    needs_rebuild: bool
    points: dict[str, records.IndexPoint] = field(default_factory=dict)


class InMemoryIndex:
    """The fake of the vector index; one instance is one server."""

    def __init__(self, alias: str = "memories") -> None:
        self._alias = alias
        self._target: str | None = None
        self._collections: dict[str, _Collection] = {}

    async def open(self, schema: IndexSchema) -> None:
        if self._target is None:
            name = collection_name(self._alias, schema, None)
            self._collections[name] = _Collection(schema, needs_rebuild=True)
            self._target = name
        check_schema(self._target, self._collections[self._target].schema, schema)

    async def upsert(
        self, points: Sequence[records.IndexPoint], *, collection: str | None = None
    ) -> None:
        rows = self._rows(collection)
        for point in checked_points(points, rows.schema):
            known = rows.points.get(point.point_id)
            if known is None or point.rev >= known.rev:
                payload = {k: v for k, v in point.payload.items() if v is not None}
                unit = point.dense / np.linalg.norm(point.dense)
                rows.points[point.point_id] = replace(
                    point, dense=unit, payload=payload | {"rev": point.rev}
                )

    async def copy(
        self, points: Sequence[records.PointCopy], *, source: str, collection: str | None = None
    ) -> list[str]:
        rows, origin = self._rows(collection), self._rows(source)
        found, left = list[records.IndexPoint](), list[str]()
        for point in checked_copies(points):
            old = origin.points.get(point.point_id)
            fits = old is not None and old.payload.get(VECTOR_HASH) == point.payload[VECTOR_HASH]
            if old is None or not fits or origin.schema != rows.schema:
                left.append(point.point_id)
            else:
                found.append(replace(old, payload=point.payload, rev=point.rev))
        await self.upsert(found, collection=collection)
        return left

    async def set_payload(self, updates: Sequence[records.PayloadUpdate]) -> None:
        rows = self._rows(None)
        for update in checked_updates(updates):
            known = rows.points.get(update.point_id)
            if known is not None and update.rev >= known.rev:
                payload = known.payload | update.payload | {"rev": update.rev}
                rows.points[update.point_id] = replace(known, payload=payload, rev=update.rev)

    async def delete(
        self,
        point_ids: Sequence[str],
        *,
        revs: Mapping[str, int] | None = None,
        collection: str | None = None,
    ) -> None:
        rows = self._rows(collection)
        for point_id in checked_ids(point_ids):
            point = rows.points.get(point_id)
            if point is not None and (revs is None or point.rev <= revs[point_id]):
                del rows.points[point_id]

    async def query(
        self,
        scope: ReadScope,
        where: ItemFilter,
        sub_queries: Sequence[records.SubQuery],
        *,
        collection: str | None = None,
    ) -> list[list[records.ScoredPoint]]:
        rows = self._rows(collection)
        found = [p for p in rows.points.values() if _readable(scope, p) and _kept(where, p)]
        return [
            _ranked(rows, found, sub_query)
            for sub_query in checked_sub_queries(sub_queries, rows.schema)
        ]

    async def retrieve(
        self,
        point_ids: Sequence[str],
        *,
        with_vectors: bool = False,
        keys: Sequence[str] | None = None,
        collection: str | None = None,
    ) -> list[records.StoredPoint]:
        points = self._rows(collection).points
        ids = [i for i in checked_ids(point_ids) if i in points]
        return [_stored(points[i], with_vectors, keys) for i in ids]

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        keys: Sequence[str] | None = None,
        with_vectors: bool = False,
        collection: str | None = None,
    ) -> tuple[list[records.StoredPoint], str | None]:
        points = self._rows(collection).points
        start = checked_ids([after])[0] if after is not None else ""
        end = checked_ids([until])[0] if until is not None else None
        ids = sorted(i for i in points if i > start and (end is None or i <= end))
        page = [_stored(points[point_id], with_vectors, keys) for point_id in ids[:limit]]
        return page, ids[limit - 1] if len(ids) > limit else None

    async def count(
        self,
        scope: ReadScope | None = None,
        where: ItemFilter | None = None,
        *,
        collection: str | None = None,
    ) -> int:
        points = self._rows(collection).points.values()
        return sum(
            PASSAGE not in p.payload
            and (scope is None or _readable(scope, p))
            and (where is None or _kept(where, p))
            for p in points
        )

    async def create_collection(
        self, name: str, schema: IndexSchema, *, needs_rebuild: bool = False
    ) -> None:
        known = self._collections.get(checked_collection(name))
        if known is not None and known.schema != schema:
            raise Conflict(f"Collection {name} exists with another schema: use a new name.")
        if known is None:
            self._collections[name] = _Collection(schema, needs_rebuild=needs_rebuild)

    async def drop_collection(self, name: str) -> None:
        if checked_collection(name) == self._target:
            raise Conflict(f"Collection {name} is behind the alias: switch the alias first.")
        self._collections.pop(name, None)

    async def collections(self) -> list[str]:
        return sorted(self._collections)

    async def schema_of(self, collection: str) -> IndexSchema:
        return self._rows(collection).schema

    async def switch_alias(self, name: str, expected: str | None = None) -> None:
        if name not in self._collections:
            raise NotFound(f"There is no collection {name}: create it before switching to it.")
        check_moved(self._target, name, expected)
        self._target = name

    async def rebuilt(self) -> None:
        self._rows(None).needs_rebuild = False

    async def health(self) -> records.IndexHealth:
        rows = self._collections.get(self._target or "")
        return records.IndexHealth(
            ready=rows is not None,
            engine="memory",
            collection=self._target,
            points=len(rows.points) if rows else 0,
            needs_rebuild=rows.needs_rebuild if rows else True,
            detail="" if rows else "no collection yet",
        )

    async def close(self) -> None:
        """Nothing to let go of."""

    def _rows(self, collection: str | None) -> _Collection:
        name = self._target if collection is None else collection
        if name is None:
            raise IndexDown("The vector index is empty: open it with a schema first.")
        if name not in self._collections:
            raise NotFound(f"There is no collection {name}: create it first.")
        return self._collections[name]


def _stored(
    point: records.IndexPoint, with_vectors: bool, keys: Sequence[str] | None = None
) -> records.StoredPoint:
    return records.StoredPoint(
        point_id=point.point_id,
        payload={k: v for k, v in point.payload.items() if keys is None or k in keys},
        dense=point.dense if with_vectors else None,
        sparse=point.sparse if with_vectors else None,
    )


def _readable(scope: ReadScope, point: records.IndexPoint) -> bool:
    owner = point.payload["user_id"]
    if owner == scope.user_id:
        return True
    shared = point.payload.get("tier") in {tier.value for tier in DATAGOV_TIERS}
    return scope.include_shared and owner == SYSTEM_USER and shared


def _kept(where: ItemFilter, point: records.IndexPoint) -> bool:
    payload = point.payload
    return all(
        (
            _in_tiers(where.tiers, payload),
            _any(where.statuses, payload, "status"),
            _any(where.tags_any, payload, "tags"),
            set(where.tags_all or ()) <= set(payload.get("tags") or ()),
            _any(where.entities_any, payload, "entities"),
            _any(where.source_types, payload, "source_type"),
            _any(where.conversation_ids, payload, "conversation_id"),
            _any(where.tool_names, payload, "tool_name"),
            _any(where.doc_ids, payload, "doc_id"),
            _any(where.subject_ids, payload, "subject_id"),
            _any(where.categories, payload, "category"),
            _any(where.formats, payload, "format"),
            _any(where.organizations, payload, "organization"),
            _any(where.flags, payload, "flags"),
            _any(where.langs, payload, "lang"),
            _any(where.authors, payload, "author"),
            _any(where.sections, payload, "headings"),
            where.has_code in (None, payload.get("has_code")),
            _on_pages(where, payload),
            where.always_inject in (None, payload.get("always_inject")),
            where.include_superseded or not payload.get("superseded"),
            where.include_attached or payload.get("attached_to") in (None, where.attached_to),
            _in_time(where, payload),
        )
    )


def _in_tiers(tiers: tuple[Tier, ...] | None, payload: Payload) -> bool:
    return tiers is None or payload.get("tier") in {tier.value for tier in tiers}


def _any(wanted: tuple[str, ...] | None, payload: Payload, key: str) -> bool:
    if wanted is None:
        return True
    value = payload.get(key)
    have = value if isinstance(value, list) else [value]
    return any(one in wanted for one in have)


def _on_pages(where: ItemFilter, payload: Payload) -> bool:
    first, last = payload.get("first_page"), payload.get("last_page")
    after = where.page_from is None or (last is not None and last >= where.page_from)
    return after and (where.page_to is None or (first is not None and first <= where.page_to))


def _in_time(where: ItemFilter, payload: Payload) -> bool:
    def holds(key: str, bound: float | None, rule: Callable[[float, float], bool]) -> bool:
        value = payload.get(key)
        return bound is None or value is None or rule(value, bound)

    survives = payload.get("score", 0.0) >= SURVIVES_EXPIRY_SCORE
    dated = (where.created_from is None and where.created_to is None) or "created_at" in payload
    return (
        dated
        and holds("created_at", epoch_s(where.created_from), lambda at, b: at >= b)
        and holds("created_at", epoch_s(where.created_to), lambda at, b: at < b)
        and holds("expires_at", epoch_s(where.now), lambda at, b: at > b or survives)
        and holds("valid_from", epoch_s(where.valid_at), lambda at, b: at <= b)
        and holds("valid_to", epoch_s(where.valid_at), lambda at, b: at > b)
    )


def _ranked(
    rows: _Collection, found: Sequence[records.IndexPoint], sub_query: records.SubQuery
) -> list[records.ScoredPoint]:
    mine = [p for p in found if _in_tiers(sub_query.tiers, p.payload)]
    if sub_query.dense is not None:
        scored = _cosines(mine, sub_query.dense)
    else:
        scored = _bm25(rows, mine, sub_query.sparse or SparseVector([], []))
    return sorted(scored, key=lambda hit: (-hit.score, hit.point_id))[: sub_query.limit]


def _cosines(points: Sequence[records.IndexPoint], query: Vector) -> list[records.ScoredPoint]:
    unit = query / np.linalg.norm(query)
    return [records.ScoredPoint(p.point_id, float(p.dense @ unit)) for p in points]


def _bm25(
    rows: _Collection, points: Sequence[records.IndexPoint], query: SparseVector
) -> list[records.ScoredPoint]:
    """Points that share a term; IDF over all stored points, as the engine's modifier does."""
    total = len(rows.points)
    df = Counter(index for p in rows.points.values() for index in p.sparse.indices)
    weights = {
        index: weight * math.log((total - df[index] + 0.5) / (df[index] + 0.5) + 1.0)
        for index, weight in zip(query.indices, query.values, strict=True)
    }
    hits = []
    for p in points:
        shared = [(i, v) for i, v in zip(p.sparse.indices, p.sparse.values, strict=True)]
        parts = [weights[i] * v for i, v in shared if i in weights]
        if parts:
            hits.append(records.ScoredPoint(p.point_id, sum(parts)))
    return hits
