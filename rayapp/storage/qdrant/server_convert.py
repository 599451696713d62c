"""Our values to and from the models of a Qdrant server. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdrant_client import models

from rayapp.core.vectors import IndexSchema
from rayapp.index import records
from rayapp.index.rules.points import VECTOR_HASH
from rayapp.storage.qdrant import predicate as clauses
from rayapp.storage.qdrant.points import payload_of, stored_point, vector_of

META_NEEDS_REBUILD = "needs_rebuild"

# kB of vectors that a filter may leave and that are read one by one rather than through a graph:
# 50,000 vectors of 256 dimensions. With the server's own 10,000 kB the graphs of all values of all
# payload indexes take minutes at 100,000 points (decision 0034).
FULL_SCAN_KB = 50_000

FieldSchema = models.PayloadSchemaType | models.KeywordIndexParams


def metadata_of(schema: IndexSchema, *, needs_rebuild: bool) -> dict[str, Any]:
    return {**schema.as_json(), META_NEEDS_REBUILD: needs_rebuild}


def field_schemas() -> dict[str, FieldSchema]:
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    return {
        clauses.TENANT_FIELD: tenant,
        **{key: models.PayloadSchemaType(kind) for key, kind in clauses.FIELD_KINDS.items()},
    }


def vectors_config(schema: IndexSchema) -> dict[str, models.VectorParams]:
    cosine = models.Distance.COSINE
    wanted = {records.DENSE: models.VectorParams(size=schema.dims, distance=cosine)}
    if schema.encoder:
        wanted[records.ENCODER] = models.VectorParams(
            size=schema.encoder_dims, distance=cosine, datatype=models.Datatype.FLOAT16
        )
    return wanted


def graph_config(links: int) -> models.HnswConfigDiff:
    """`links` of the graph over everything and of those of large users; 0 = no graph."""
    return models.HnswConfigDiff(m=links, payload_m=links, full_scan_threshold=FULL_SCAN_KB)


def sparse_config() -> dict[str, models.SparseVectorParams]:
    return {records.BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)}


def stored_schema(config: models.CollectionConfig) -> IndexSchema:
    """What the collection says it was built for; empty strings where it says nothing."""
    meta = config.metadata or {}
    dense = _params(config, records.DENSE)
    encoder = _params(config, records.ENCODER) if meta.get("encoder") else None
    return IndexSchema(
        model=str(meta.get("model", "")),
        dims=dense.size if dense is not None else 0,
        analyser=str(meta.get("analyser", "")),
        encoder=str(meta["encoder"]) if encoder is not None else "",
        encoder_dims=encoder.size if encoder is not None else 0,
    )


def layout_problems(config: models.CollectionConfig) -> list[str]:
    """What makes the collection unusable whatever the model is."""
    problems = []
    dense = _params(config, records.DENSE)
    if dense is None:
        problems.append(f"no vector named {records.DENSE}")
    elif dense.distance != models.Distance.COSINE:
        problems.append(f"distance {dense.distance.value}, wanted Cosine")
    sparse = (config.params.sparse_vectors or {}).get(records.BM25)
    if sparse is None:
        problems.append(f"no sparse vector named {records.BM25}")
    elif sparse.modifier != models.Modifier.IDF:
        problems.append(f"sparse vector {records.BM25} without the IDF modifier")
    return problems


def _params(config: models.CollectionConfig, name: str) -> models.VectorParams | None:
    vectors = config.params.vectors
    return vectors.get(name) if isinstance(vectors, dict) else None


def filter_of(predicate: clauses.Predicate) -> models.Filter:
    return models.Filter(
        must=[_condition(clause) for clause in predicate.must],
        must_not=[_condition(clause) for clause in predicate.must_not],
    )


def _condition(
    clause: clauses.Clause,
) -> models.FieldCondition | models.HasIdCondition | models.HasVectorCondition | models.Filter:
    if isinstance(clause, clauses.AnyOf):
        if len(clause.values) == 1:
            only = models.MatchValue(value=clause.values[0])
            return models.FieldCondition(key=clause.key, match=only)
        return models.FieldCondition(key=clause.key, match=models.MatchAny(any=list(clause.values)))
    if isinstance(clause, clauses.Flag):
        return models.FieldCondition(key=clause.key, match=models.MatchValue(value=clause.value))
    if isinstance(clause, clauses.HasIds):
        return models.HasIdCondition(has_id=list(clause.point_ids))
    if isinstance(clause, clauses.HasVector):
        return models.HasVectorCondition(has_vector=clause.name)
    if isinstance(clause, clauses.OneOf):
        return models.Filter(should=[filter_of(option) for option in clause.options])
    bounds = models.Range(gt=clause.gt, gte=clause.gte, lt=clause.lt, lte=clause.lte)
    return models.FieldCondition(key=clause.key, range=bounds)


def point_of(point: records.IndexPoint) -> models.PointStruct:
    vectors: dict[str, Any] = {
        records.DENSE: point.dense.tolist(),
        records.BM25: models.SparseVector(indices=point.sparse.indices, values=point.sparse.values),
    }
    if point.encoder:
        vectors[records.ENCODER] = point.encoder[0].tolist()
    return models.PointStruct(id=point.point_id, vector=vectors, payload=payload_of(point))


def encoder_vectors(update: records.EncoderUpdate) -> models.PointVectors:
    (vector,) = update.vectors
    return models.PointVectors(id=update.point_id, vector={records.ENCODER: vector.tolist()})


def copied_point(
    point: records.PointCopy, stored: records.StoredPoint | None, *, encoder: bool
) -> records.IndexPoint | None:
    """`point` with the vectors of `stored`, those of the encoder if wanted; None when they are not
    of its words."""
    if stored is None or stored.dense is None or stored.sparse is None:
        return None
    if stored.payload.get(VECTOR_HASH) != point.payload[VECTOR_HASH]:
        return None
    return records.IndexPoint(
        point_id=point.point_id,
        dense=stored.dense,
        sparse=stored.sparse,
        payload=point.payload,
        rev=point.rev,
        encoder=(stored.encoder,) if encoder and stored.encoder is not None else (),
    )


def payload_operation(update: records.PayloadUpdate) -> models.SetPayloadOperation:
    guard = filter_of(clauses.not_newer_than(update.rev, (update.point_id,)))
    payload = {**update.payload, "rev": update.rev}
    return models.SetPayloadOperation(set_payload=models.SetPayload(payload=payload, filter=guard))


class _Asked(models.QueryRequest):
    """A request that the client may share instead of copying.

    It copies every request in depth before it replaces one attribute, vector and filters number by
    number: half of the processor time of a search's call (decision 0034).
    """

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> _Asked:
        return self.model_copy()


def query_of(sub_query: records.SubQuery, predicate: models.Filter) -> models.QueryRequest:
    using, vector = vector_of(sub_query)
    if sub_query.sparse is not None:
        vector = models.SparseVector(
            indices=sub_query.sparse.indices, values=sub_query.sparse.values
        )
    return _Asked(
        query=models.NearestQuery(nearest=vector),
        using=using,
        filter=predicate,
        limit=sub_query.limit,
        with_payload=False,
    )


def stored_point_of(record: models.Record) -> records.StoredPoint:
    return stored_point(record, models.SparseVector)


def delete_selectors(
    ids: Sequence[str], revs: Mapping[str, int] | None
) -> list[models.PointIdsList | models.FilterSelector]:
    """What to delete; with `revs` the server compares, so that nothing comes in between."""
    if revs is None:
        return [models.PointIdsList(points=list(ids))]
    by_rev: dict[int, list[str]] = {}
    for point_id in ids:
        by_rev.setdefault(revs[point_id], []).append(point_id)
    return [
        models.FilterSelector(filter=filter_of(clauses.not_newer_than(rev, tuple(group))))
        for rev, group in by_rev.items()
    ]
