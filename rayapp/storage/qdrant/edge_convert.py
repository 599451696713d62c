"""Our values to and from the objects of the embedded engine. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import qdrant_edge as edge

from rayapp.core.errors import InvalidInput
from rayapp.core.vectors import IndexSchema
from rayapp.index.records import (
    BM25,
    DENSE,
    ENCODER,
    EncoderUpdate,
    IndexPoint,
    PayloadUpdate,
    PointCopy,
    StoredPoint,
    SubQuery,
)
from rayapp.index.rules.points import VECTOR_HASH
from rayapp.storage.qdrant import predicate as clauses
from rayapp.storage.qdrant.points import payload_of, stored_point, vector_of

# The ids and the scores of one sub-query: cheaper between processes than one object per hit.
SubQueryHits = tuple[list[str], list[float]]

# The engine wants these although m = 0 builds no graph.
_UNUSED_EF_CONSTRUCT = 16
_UNUSED_FULL_SCAN_KB = 10_000
# Bounds the work of one vacuum, during which the engine answers nobody: 128 MB is about 40,000
# points of 768 dimensions.
MAX_SEGMENT_KB = 128 * 1024
# Half of the memory; its own int8 arithmetic is a hundred times as rough.
ENCODER_NUMBERS = edge.VectorStorageDatatype.Float16


def shard_config(schema: IndexSchema) -> edge.EdgeConfig:
    """Exact search, WAL on, one search thread: the fastest safe settings of our benchmark."""
    vectors = {DENSE: edge.EdgeVectorParams(schema.dims, edge.Distance.Cosine)}
    if schema.encoder:
        vectors[ENCODER] = edge.EdgeVectorParams(
            schema.encoder_dims, edge.Distance.Cosine, datatype=ENCODER_NUMBERS
        )
    return edge.EdgeConfig(
        vectors=vectors,
        sparse_vectors={BM25: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        hnsw_config=edge.HnswIndexConfig(
            0, _UNUSED_EF_CONSTRUCT, _UNUSED_FULL_SCAN_KB, payload_m=0
        ),
        # Threshold 0: no segment is rewritten as immutable. Without a graph that gains nothing
        # (our benchmark, 30,000 points: same latency, memory and load time) and stops the engine
        # for 2.3 s; only the vacuum after deletes is left.
        optimizers=edge.EdgeOptimizersConfig(max_segment_size=MAX_SEGMENT_KB, indexing_threshold=0),
        max_search_threads=1,
        payload_memory=edge.Memory.Cached,
        wal_enabled=True,
    )


def encoder_place(schema: IndexSchema) -> edge.UpdateOperation:
    """Makes place for the encoder's vectors in a shard without one."""
    return edge.UpdateOperation.create_dense_vector(
        ENCODER, schema.encoder_dims, edge.Distance.Cosine, None, ENCODER_NUMBERS
    )


def no_encoder_place() -> edge.UpdateOperation:
    """Takes them away, with their place."""
    return edge.UpdateOperation.delete_vector_name(ENCODER)


def field_indexes() -> list[edge.UpdateOperation]:
    create = edge.UpdateOperation.create_field_index
    return [
        create(clauses.TENANT_FIELD, edge.KeywordIndexParams(is_tenant=True)),
        *(create(key, _index_of(kind)) for key, kind in clauses.FIELD_KINDS.items()),
    ]


def _index_of(kind: str) -> edge.PayloadSchemaType | edge.IntegerIndexParams:
    if kind == "integer":
        # Asked for as ranges alone; the other half takes 18 MB per 100,000 points.
        return edge.IntegerIndexParams(lookup=False, range=True)
    found: edge.PayloadSchemaType = getattr(edge.PayloadSchemaType, kind.capitalize())
    return found


def filter_of(predicate: clauses.Predicate) -> edge.Filter:
    return edge.Filter(
        must=[_condition(clause) for clause in predicate.must],
        must_not=[_condition(clause) for clause in predicate.must_not],
    )


def _condition(
    clause: clauses.Clause,
) -> edge.FieldCondition | edge.HasIdCondition | edge.HasVectorCondition | edge.Filter:
    if isinstance(clause, clauses.AnyOf):
        if len(clause.values) == 1:
            return edge.FieldCondition(clause.key, match=edge.MatchValue(clause.values[0]))
        return edge.FieldCondition(clause.key, match=edge.MatchAny(list(clause.values)))
    if isinstance(clause, clauses.Flag):
        # The binding reads a Python bool as an integer, which matches no boolean payload.
        value: Any = np.bool_(clause.value)
        return edge.FieldCondition(clause.key, match=edge.MatchValue(value))
    if isinstance(clause, clauses.HasIds):
        return edge.HasIdCondition(set(clause.point_ids))
    if isinstance(clause, clauses.HasVector):
        return edge.HasVectorCondition(clause.name)
    if isinstance(clause, clauses.OneOf):
        return edge.Filter(should=[filter_of(option) for option in clause.options])
    bounds = edge.RangeFloat(gt=clause.gt, gte=clause.gte, lt=clause.lt, lte=clause.lte)
    return edge.FieldCondition(clause.key, range=bounds)


def points_of(points: Sequence[IndexPoint]) -> list[edge.Point]:
    """Raises InvalidInput when a payload holds anything but plain JSON values."""
    try:
        return [_point_of(point) for point in points]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"A payload holds what is not JSON: {error}") from error


def copies_of(
    points: Sequence[PointCopy], records: Sequence[edge.Record], *, encoder: bool
) -> list[edge.Point | None]:
    """Each of `points` with the vectors of its record, which stay the engine's own values; None
    where there is no record of its words. `encoder`: with those of the encoder. InvalidInput as in
    `points_of`."""
    found = {str(record.id): record for record in records}
    try:
        return [_copy_of(point, found.get(point.point_id), encoder=encoder) for point in points]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"A payload holds what is not JSON: {error}") from error


def _copy_of(point: PointCopy, record: edge.Record | None, *, encoder: bool) -> edge.Point | None:
    if record is None or not isinstance(record.vector, dict):
        return None
    if (record.payload or {}).get(VECTOR_HASH) != point.payload[VECTOR_HASH]:
        return None
    kept = {name: one for name, one in record.vector.items() if encoder or name != ENCODER}
    return edge.Point(point.point_id, kept, payload_of(point))


def payload_operations(updates: Sequence[PayloadUpdate]) -> list[edge.UpdateOperation]:
    """One guarded write per update; InvalidInput as in `points_of`."""
    operations = []
    for update in updates:
        guard = filter_of(clauses.not_newer_than(update.rev, (update.point_id,)))
        payload = {**update.payload, "rev": update.rev}
        try:
            operations.append(edge.UpdateOperation.set_payload_by_filter(guard, payload))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"A payload holds what is not JSON: {error}") from error
    return operations


def _point_of(point: IndexPoint) -> edge.Point:
    vectors: dict[str, Any] = {
        # A list is read in a third of the time of an array (our benchmark).
        DENSE: point.dense.tolist(),
        BM25: edge.SparseVector(point.sparse.indices, point.sparse.values),
    }
    if point.encoder:
        vectors[ENCODER] = point.encoder[0].tolist()
    return edge.Point(point.point_id, vectors, payload_of(point))


def encoder_vectors(updates: Sequence[EncoderUpdate]) -> edge.UpdateOperation:
    """Of points that are there."""
    return edge.UpdateOperation.update_vectors(
        [
            edge.PointVectors(update.point_id, {ENCODER: vector.tolist()})
            for update in updates
            for vector in update.vectors
        ]
    )


def query_of(sub_query: SubQuery, predicate: edge.Filter) -> edge.QueryRequest:
    using, vector = vector_of(sub_query)
    if sub_query.sparse is not None:
        vector = edge.SparseVector(sub_query.sparse.indices, sub_query.sparse.values)
    nearest = edge.Query.Nearest(vector, using=using)
    return edge.QueryRequest(
        limit=sub_query.limit, query=nearest, filter=predicate, with_payload=False
    )


def hits_of(scored: Sequence[edge.ScoredPoint]) -> SubQueryHits:
    return [str(hit.id) for hit in scored], [hit.score for hit in scored]


def stored_point_of(record: edge.Record) -> StoredPoint:
    return stored_point(record, edge.SparseVector)
