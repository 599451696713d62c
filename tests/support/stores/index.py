"""A working `VectorIndex` in plain Python: exact search, real filters, real guards, BM25 x IDF.

Written without the engines' predicate on purpose: the contract suite compares the two.
"""

import copy
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
from rayapp.index.records import PAYLOAD, Projection
from rayapp.index.rules.points import (
    PASSAGE,
    VECTOR_HASH,
    check_moved,
    check_schema,
    checked_collection,
    checked_copies,
    checked_encoder_updates,
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
# Fields of a filter of which one value is enough, and the payload keys they are compared with.
ANY_OF = {
    "statuses": "status",
    "tags_any": "tags",
    "entities_any": "entities",
    "source_types": "source_type",
    "conversation_ids": "conversation_id",
    "tool_names": "tool_name",
    "doc_ids": "doc_id",
    "subject_ids": "subject_id",
    "perspective_owner_ids": "perspective_owner_id",
    "topics": "topics",
    "categories": "category",
    "formats": "format",
    "organizations": "organization",
    "flags": "flags",
    "langs": "lang",
    "authors": "author",
    "sections": "headings",
}


@dataclass(slots=True)
class _Collection:
    schema: IndexSchema
    needs_rebuild: bool
    points: dict[str, records.IndexPoint] = field(default_factory=dict)

    @property
    def unencoded(self) -> dict[str, records.IndexPoint]:
        return {
            one: point
            for one, point in self.points.items()
            if self.schema.encoder and not point.encoder and PASSAGE not in point.payload
        }


class InMemoryIndex:
    """The fake of the vector index; one instance is one server, what `at` gives a view of it."""

    def __init__(self, alias: str = "memories") -> None:
        self._alias = alias
        self._collection: str | None = None
        self._aliases: dict[str, str] = {}
        self._collections: dict[str, _Collection] = {}

    def at(self, collection: str | None) -> "InMemoryIndex":
        view = copy.copy(self)
        view._collection = collection
        return view

    async def open(self, schema: IndexSchema) -> None:
        if self._alias not in self._aliases:
            name = collection_name(self._alias, schema, None)
            self._collections[name] = _Collection(schema, needs_rebuild=True)
            self._aliases[self._alias] = name
        rows = self.at(None)._rows()
        if schema.encoder and rows.schema.first == schema.first and rows.schema != schema:
            # As the embedded engine: place for another encoder's vectors, and none of them.
            rows.schema = schema
            rows.points = {one: replace(p, encoder=()) for one, p in rows.points.items()}
        check_schema(self._aliases[self._alias], rows.schema, schema)

    async def upsert(self, points: Sequence[records.IndexPoint]) -> None:
        rows = self._rows()
        for point in checked_points(points, rows.schema):
            known = rows.points.get(point.point_id)
            if known is None or point.rev >= known.rev:
                payload = {k: v for k, v in point.payload.items() if v is not None}
                unit = point.dense / np.linalg.norm(point.dense)
                rows.points[point.point_id] = replace(
                    point,
                    dense=unit,
                    payload=payload | {"rev": point.rev},
                    encoder=tuple(one / np.linalg.norm(one) for one in point.encoder),
                )

    async def copy(self, points: Sequence[records.PointCopy], source: str) -> list[str]:
        rows, origin = self._rows(), self.at(source)._rows()
        found, left = list[records.IndexPoint](), list[str]()
        for point in checked_copies(points):
            old = origin.points.get(point.point_id)
            fits = old is not None and old.payload.get(VECTOR_HASH) == point.payload[VECTOR_HASH]
            if old is None or not fits or origin.schema.first != rows.schema.first:
                left.append(point.point_id)
            else:
                read = old.encoder if origin.schema == rows.schema else ()
                found.append(replace(old, payload=point.payload, rev=point.rev, encoder=read))
        await self.upsert(found)
        return left

    async def set_payload(self, updates: Sequence[records.PayloadUpdate]) -> None:
        rows = self._rows()
        for update in checked_updates(updates):
            known = rows.points.get(update.point_id)
            if known is not None and update.rev >= known.rev:
                payload = known.payload | update.payload | {"rev": update.rev}
                rows.points[update.point_id] = replace(known, payload=payload, rev=update.rev)

    async def set_encoder(self, updates: Sequence[records.EncoderUpdate]) -> None:
        rows = self._rows()
        for update in checked_encoder_updates(updates, rows.schema):
            known = rows.points.get(update.point_id)
            if known is not None and update.rev >= known.rev:
                (vector,) = update.vectors
                unit = vector / np.linalg.norm(vector)
                rows.points[update.point_id] = replace(known, encoder=(unit,))

    async def delete(self, point_ids: Sequence[str], revs: Mapping[str, int] | None = None) -> None:
        rows = self._rows()
        for point_id in checked_ids(point_ids):
            point = rows.points.get(point_id)
            if point is not None and (revs is None or point.rev <= revs[point_id]):
                del rows.points[point_id]

    async def query(
        self, scope: ReadScope, where: ItemFilter, sub_queries: Sequence[records.SubQuery]
    ) -> list[list[records.ScoredPoint]]:
        rows = self._rows()
        found = [p for p in rows.points.values() if _readable(scope, p) and _kept(where, p)]
        return [
            _ranked(rows, found, sub_query)
            for sub_query in checked_sub_queries(sub_queries, rows.schema)
        ]

    async def retrieve(
        self, point_ids: Sequence[str], read: Projection = PAYLOAD
    ) -> list[records.StoredPoint]:
        points = self._rows().points
        return [_stored(points[i], read) for i in checked_ids(point_ids) if i in points]

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        read: Projection = PAYLOAD,
        unencoded: bool = False,
    ) -> records.Page:
        rows = self._rows()
        points = rows.unencoded if unencoded else rows.points
        start = checked_ids([after])[0] if after is not None else ""
        end = checked_ids([until])[0] if until is not None else None
        ids = sorted(i for i in points if i > start and (end is None or i <= end))
        page = [_stored(points[point_id], read) for point_id in ids[:limit]]
        return page, ids[limit - 1] if len(ids) > limit else None

    async def count(self, scope: ReadScope | None = None, where: ItemFilter | None = None) -> int:
        points = self._rows().points.values()
        return sum(
            PASSAGE not in p.payload
            and (scope is None or _readable(scope, p))
            and (where is None or _kept(where, p))
            for p in points
        )

    async def unencoded(self) -> int:
        return len(self._rows().unencoded)

    async def create_collection(
        self, name: str, schema: IndexSchema, *, needs_rebuild: bool = False
    ) -> None:
        known = self._collections.get(checked_collection(name))
        if known is not None and known.schema != schema:
            raise Conflict(f"Collection {name} exists with another schema: use a new name.")
        if known is None:
            self._collections[name] = _Collection(schema, needs_rebuild=needs_rebuild)

    async def drop_collection(self, name: str) -> None:
        if checked_collection(name) in self._aliases.values():
            raise Conflict(f"Collection {name} is behind the alias: switch the alias first.")
        self._collections.pop(name, None)

    async def collections(self) -> list[str]:
        return sorted(self._collections)

    async def schema_of(self, collection: str) -> IndexSchema:
        return self.at(collection)._rows().schema

    async def switch_alias(self, name: str, expected: str | None = None) -> None:
        if name not in self._collections:
            raise NotFound(f"There is no collection {name}: create it before switching to it.")
        check_moved(self._aliases.get(self._alias), name, expected)
        self._aliases[self._alias] = name

    async def rebuilt(self) -> None:
        self.at(None)._rows().needs_rebuild = False

    async def health(self) -> records.IndexHealth:
        target = self._aliases.get(self._alias)
        rows = self._collections.get(target or "")
        return records.IndexHealth(
            ready=rows is not None,
            engine="memory",
            collection=target,
            points=len(rows.points) if rows else 0,
            needs_rebuild=rows.needs_rebuild if rows else True,
            detail="" if rows else "no collection yet",
        )

    async def close(self) -> None:
        """Nothing to let go of."""

    def _rows(self) -> _Collection:
        name = self._collection or self._aliases.get(self._alias)
        if name is None:
            raise IndexDown("The vector index is empty: open it with a schema first.")
        if name not in self._collections:
            raise NotFound(f"There is no collection {name}: create it first.")
        return self._collections[name]


def _stored(point: records.IndexPoint, read: Projection) -> records.StoredPoint:
    return records.StoredPoint(
        point_id=point.point_id,
        payload={k: v for k, v in point.payload.items() if read.keys is None or k in read.keys},
        dense=point.dense if read.vectors else None,
        sparse=point.sparse if read.vectors else None,
        encoder=point.encoder[0] if read.vectors and point.encoder else None,
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
            *(_any(getattr(where, name), payload, key) for name, key in ANY_OF.items()),
            set(where.tags_all or ()) <= set(payload.get("tags") or ()),
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
        scored = _cosines([(p.point_id, p.dense) for p in mine], sub_query.dense)
    elif sub_query.encoder is not None:
        read = [(p.point_id, p.encoder[0]) for p in mine if p.encoder]
        scored = _cosines(read, sub_query.encoder) if rows.schema.encoder else []
    else:
        scored = _bm25(rows, mine, sub_query.sparse or SparseVector([], []))
    return sorted(scored, key=lambda hit: (-hit.score, hit.point_id))[: sub_query.limit]


def _cosines(vectors: Sequence[tuple[str, Vector]], query: Vector) -> list[records.ScoredPoint]:
    unit = query / np.linalg.norm(query)
    return [records.ScoredPoint(point_id, float(vector @ unit)) for point_id, vector in vectors]


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
