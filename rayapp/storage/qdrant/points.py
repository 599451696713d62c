"""What both engines have in common besides predicates: payloads, points read back, what to ask."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from rayapp.core.vectors import SparseVector
from rayapp.index import records
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.qdrant.predicate import Predicate, predicate_of

Filter = TypeVar("Filter")


def payload_of(point: records.IndexPoint | records.PointCopy) -> dict[str, Any]:
    """As it is stored: without keys that say nothing, and with the rev."""
    payload = {key: value for key, value in point.payload.items() if value is not None}
    payload["rev"] = point.rev
    return payload


def payload_keys(read: records.Projection) -> bool | list[str]:
    """As both clients ask for parts of a payload."""
    return True if read.keys is None else list(read.keys)


def stored_point(record: Any, sparse_kind: type[Any]) -> records.StoredPoint:
    """A record of either client; `sparse_kind` is its class of sparse vectors."""
    dense = sparse = encoder = None
    if isinstance(record.vector, dict):
        dense = np.asarray(record.vector[records.DENSE], dtype=np.float32)
        read = record.vector.get(records.ENCODER)
        encoder = None if read is None else np.asarray(read, dtype=np.float32)
        sparse, stored = SparseVector([], []), record.vector.get(records.BM25)
        if isinstance(stored, sparse_kind):
            sparse = SparseVector(list(stored.indices), list(stored.values))
    return records.StoredPoint(
        point_id=str(record.id),
        payload=record.payload or {},
        dense=dense,
        sparse=sparse,
        encoder=encoder,
    )


def vector_of(sub_query: records.SubQuery) -> tuple[str, Any]:
    """The name of the vector that is asked for, and the dense vector of the question; None: its
    words."""
    if sub_query.sparse is not None:
        return records.BM25, None
    name = records.DENSE if sub_query.encoder is None else records.ENCODER
    vector = sub_query.dense if sub_query.encoder is None else sub_query.encoder
    return name, np.asarray(vector, dtype=np.float32).tolist()


def asked(
    scope: ReadScope,
    where: ItemFilter,
    sub_queries: Sequence[records.SubQuery],
    filter_of: Callable[[Predicate], Filter],
    *,
    encodes: bool,
) -> list[tuple[int, Filter]]:
    """Which sub-queries can find anything, by position, each with its filter, one per tiers.
    `encodes`: whether points have the encoder's vectors."""
    predicates = {
        t: predicate_of(scope, where, t) for t in {sub_query.tiers for sub_query in sub_queries}
    }
    filters = {t: filter_of(one) for t, one in predicates.items() if not one.matches_nothing}
    return [
        (at, filters[sub_query.tiers])
        for at, sub_query in enumerate(sub_queries)
        if sub_query.tiers in filters and (encodes or sub_query.encoder is None)
    ]


def no_collection(engine: str) -> records.IndexHealth:
    """The health of an index that was never opened."""
    return records.IndexHealth(
        ready=False,
        engine=engine,
        collection=None,
        points=0,
        needs_rebuild=True,
        detail="no collection yet",
    )
