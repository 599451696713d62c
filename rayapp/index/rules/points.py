"""What the index keeps of an item, and what a batch must satisfy before an engine sees it. Pure."""

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from rayapp.core.errors import BadVector, Conflict, InvalidInput, SchemaMismatch
from rayapp.core.vectors import IndexSchema, SparseVector, Vector
from rayapp.index.records import (
    EncoderUpdate,
    IndexPoint,
    Page,
    PayloadUpdate,
    PointCopy,
    StoredPoint,
    SubQuery,
)
from rayapp.memory.item import MemoryItem, point_id_of
from rayapp.memory.rules.filtering import flag_names, headings_of, pages_of

# Shorter vectors are left as they are by the engine's cosine normalisation and are never found
# (qdrant, lib/segment/src/spaces: is_length_zero_or_normalized).
MIN_VECTOR_NORM = float(np.finfo(np.float32).eps)
SPARSE_INDEX_LIMIT = 1 << 32
COLLECTION_PATTERN = re.compile(r"^[a-z0-9][a-z0-9_-]{0,190}$")
VECTOR_HASH_CHARS = 32
STAMP_FORMAT = "%Y%m%d%H%M%S%f"
VECTOR_HASH = "vector_hash"  # the payload key
# Payload keys: how many passages an item has, where they are several; which one a point is.
PASSAGES, PASSAGE = "passages", "passage"
# Point ids are UUIDs of version 5, so 6 bits of each say nothing: the version, at this place of the
# text, and the variant, in the higher half of that one. Those of a passage hold its number there.
VERSION_AT, VARIANT_AT = 14, 19
VERSION, VARIANT = 5, 0b10

Written = TypeVar("Written", IndexPoint, PointCopy, EncoderUpdate)


def epoch_s(at: datetime | None) -> float | None:
    """Seconds since 1970 UTC, the form of every time in a payload."""
    return None if at is None else at.timestamp()


def payload_of(item: MemoryItem) -> dict[str, Any]:
    """The payload keys that change without a new vector; None stands for "no value".

    `point_of` adds what belongs to the vectors.
    """
    source = item.source
    datagov, book = source.datagov or {}, source.book or {}
    first_page, last_page = pages_of(source) or (None, None)
    return {
        "user_id": item.user_id,
        "memory_id": item.memory_id,
        "tier": item.tier.value,
        "status": item.status.value,
        "lang": item.lang,
        "tags": list(item.tags),
        "entities": list(item.entities),
        "conversation_id": source.conversation_id,
        "source_type": source.type.value,
        "tool_name": source.tool_name,
        "doc_id": source.doc_id,
        "subject_id": item.subject_id,
        "perspective_owner_id": item.perspective_owner_id,
        "topics": list(item.topics),
        "category": datagov.get("category"),
        "format": datagov.get("format"),
        "organization": datagov.get("organization"),
        "flags": list(flag_names(source)),
        "author": book.get("author"),
        "headings": headings_of(source),
        "first_page": first_page,
        "last_page": last_page,
        "has_code": book.get("has_code"),
        "attached": True if item.attached_to is not None else None,
        "attached_to": item.attached_to,
        "created_at": epoch_s(item.created_at),
        "expires_at": epoch_s(item.expires_at),
        "valid_from": epoch_s(item.valid_from),
        "valid_to": epoch_s(item.valid_to),
        "superseded": item.superseded_by is not None,
        "score": item.stats.score,
        "quality_score": item.quality.quality_score,
        "uses": item.stats.uses,
        "always_inject": item.always_inject,
        "rev": item.index.rev,
    }


def point_of(
    item: MemoryItem,
    passages: Sequence[tuple[Vector, SparseVector]],
    schema: IndexSchema,
    encoder: Sequence[Vector] = (),
) -> IndexPoint:
    """The point of `item` with the vectors of its passages, made under `schema`."""
    (dense, sparse), *others = passages
    return IndexPoint(
        point_id=item.point_id,
        dense=dense,
        sparse=sparse,
        payload=_whole_payload(item, schema),
        rev=item.index.rev,
        passages=tuple(others),
        encoder=tuple(encoder),
    )


def copy_of(item: MemoryItem, schema: IndexSchema) -> PointCopy:
    """The point of `item` with vectors that were made of the same words under `schema`."""
    return PointCopy(
        point_id=item.point_id, payload=_whole_payload(item, schema), rev=item.index.rev
    )


def _whole_payload(item: MemoryItem, schema: IndexSchema) -> dict[str, Any]:
    payload = payload_of(item)
    payload["analyser"] = schema.analyser
    payload[VECTOR_HASH] = vector_hash_of(item.content_hash, schema, item.context_prefix)
    return payload


def payload_update_of(item: MemoryItem) -> PayloadUpdate:
    """The update that brings the stored payload of `item` up to date, vectors untouched."""
    return PayloadUpdate(point_id=item.point_id, payload=payload_of(item), rev=item.index.rev)


def owner_of(payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """(user_id, memory_id) that a payload names."""
    user_id, memory_id = payload.get("user_id"), payload.get("memory_id")
    if isinstance(user_id, str) and isinstance(memory_id, str):
        return user_id, memory_id
    return None


def home_of(payload: Mapping[str, Any]) -> str | None:
    """The id of the one right point of the memory that a payload names."""
    owner = owner_of(payload)
    return None if owner is None else point_id_of(*owner)


def is_passage(point_id: str) -> bool:
    """Whether this is the point of another passage than an item's first."""
    return point_id[VERSION_AT] != "5" or point_id[VARIANT_AT] not in "89ab"


def passage_point(point_id: str, number: int) -> str:
    """The point of passage `number`, 0 to 63, of the item whose point is `point_id`."""
    return _marked(point_id, VERSION * 4 + VARIANT + number) if number else point_id


def item_point(point_id: str) -> tuple[str, int]:
    """The point of the item, and the number of the passage whose point this is."""
    if not is_passage(point_id):
        return point_id, 0
    mark = int(point_id[VERSION_AT], 16) * 4 + (int(point_id[VARIANT_AT], 16) >> 2)
    home = VERSION * 4 + VARIANT
    return _marked(point_id, home), (mark - home) % 64


def _marked(point_id: str, mark: int) -> str:
    """`point_id` with the 6 bits of `mark`, which counts on from 0 after 63."""
    variant = (mark % 4) << 2 | int(point_id[VARIANT_AT], 16) & 0b11
    version = mark // 4 % 16
    head, middle = point_id[:VERSION_AT], point_id[VERSION_AT + 1 : VARIANT_AT]
    return f"{head}{version:x}{middle}{variant:x}{point_id[VARIANT_AT + 1 :]}"


def vector_hash_of(content_hash: str, schema: IndexSchema, context_prefix: str) -> str:
    """What a point's vectors were made from: the content, what a model said of its surroundings,
    and the schema that shaped them.

    Equal hashes mean equal vectors, so a reindex copies instead of embedding, and a search knows
    that a point speaks of an older text, both without the model. Without a prefix the hash is that
    of the content alone.
    """
    basis = f"{content_hash}\n{schema.model}\n{schema.dims}\n{schema.analyser}"
    if context_prefix:
        basis = f"{basis}\n{context_prefix}"
    return hashlib.sha256(basis.encode()).hexdigest()[:VECTOR_HASH_CHARS]


def collection_name(alias: str, schema: IndexSchema, stamp: datetime | None) -> str:
    """`<alias>_<model-slug>_<dims>_<timestamp>`; timestamp 0 marks the first collection.

    The first one has a fixed name so that processes which start together make only one.
    """
    when = "0" if stamp is None else stamp.strftime(STAMP_FORMAT)
    return f"{alias}_{schema.slug}_{schema.dims}_{when}"


def collections_of(alias: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that `collection_name` made for `alias`.

    A server may hold collections of another alias whose name starts with this one.
    """
    made = re.compile(rf"{re.escape(alias)}_[^_]+_\d+_\d+")
    return [name for name in names if made.fullmatch(name)]


def collection_made_at(name: str) -> datetime | None:
    """When a collection got its name; None for the first one and for names of another form."""
    stamp = name.rpartition("_")[2]
    try:
        return datetime.strptime(stamp, STAMP_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def page_of(points: Sequence[StoredPoint], limit: int, until: str | None, *, more: bool) -> Page:
    """A page of `scroll` from points in id order, cut at `until`; `more`: others may follow.

    Engines know no range of ids, so a page may have read beyond the end.
    """
    page = [p for p in points[:limit] if until is None or p.point_id <= until]
    ended = len(page) < min(len(points), limit) or (page and page[-1].point_id == until)
    return page, page[-1].point_id if page and more and not ended else None


def checked_collection(name: str) -> str:
    """`name`, if it is safe as a folder and collection name; else InvalidInput."""
    if not COLLECTION_PATTERN.match(name):
        raise InvalidInput(
            f"Collection name {name[:80]!r} is not allowed: use a-z, 0-9, '-' and '_'."
        )
    return name


def check_moved(target: str | None, name: str, expected: str | None) -> None:
    """Raise Conflict unless the alias, which points at `target`, may be moved to `name`."""
    if expected is not None and target not in (name, expected):
        raise Conflict(
            f"The alias points at {target or 'nothing'}, not at {expected}: it was moved meanwhile."
        )


def check_schema(
    collection: str, stored: IndexSchema, wanted: IndexSchema, problems: Sequence[str] = ()
) -> None:
    """Raise SchemaMismatch when the collection was built for anything else than `wanted`."""
    # A service without the encoder leaves its vectors alone.
    stored = stored if wanted.encoder else stored.first
    found = [
        f"{name} is {have!r}, wanted {want!r}"
        for name, have in asdict(stored).items()
        if have != (want := getattr(wanted, name))
    ]
    found += problems
    if found:
        raise SchemaMismatch(
            f"Collection {collection} does not fit ({'; '.join(found)}): "
            "run `rayapp job reindex`, or set the embedding model back.",
            details={"collection": collection, "problems": found},
        )


def checked_ids(point_ids: Iterable[str]) -> list[str]:
    """Canonical point ids without repeats, in order; InvalidInput when one is not a UUID."""
    return list(dict.fromkeys(_checked_id(point_id) for point_id in point_ids))


def checked_points(points: Sequence[IndexPoint], schema: IndexSchema) -> list[IndexPoint]:
    """The batch with one point per id (the highest rev, the later of equals).

    Raises:
        BadVector: a dense vector has the wrong size, NaN, infinity or no length.
        InvalidInput: an id, a rev, a sparse vector or the owner in a payload is not usable.
    """
    if not points:
        return []
    for point in points:
        _check_identity(point.point_id, point.rev)
        _check_owner(point.payload.get("user_id"), point.point_id)
    _check_dense([p.dense for p in points], [p.point_id for p in points], schema.dims)
    _check_sparse([p.sparse for p in points], [p.point_id for p in points])
    pairs = [(vector, p.point_id) for p in points for vector in p.encoder]
    _check_dense([v for v, _ in pairs], [name for _, name in pairs], schema.encoder_dims)
    return list(_newest(points))


def checked_encoder_updates(
    updates: Sequence[EncoderUpdate], schema: IndexSchema
) -> list[EncoderUpdate]:
    """One per id, as `checked_points`; InvalidInput where the collection has no place for them."""
    if updates and not schema.encoder:
        raise InvalidInput("The index has no encoder's vectors: run `rayapp job reindex`.")
    for update in updates:
        _check_identity(update.point_id, update.rev)
    pairs = [(vector, u.point_id) for u in updates for vector in u.vectors]
    _check_dense([v for v, _ in pairs], [name for _, name in pairs], schema.encoder_dims)
    return list(_newest(updates))


def checked_copies(copies: Sequence[PointCopy]) -> list[PointCopy]:
    """One per id, as `checked_points`; InvalidInput when an id, rev, owner or hash is unusable."""
    for copy in copies:
        _check_identity(copy.point_id, copy.rev)
        _check_owner(copy.payload.get("user_id"), copy.point_id)
        if not isinstance(copy.payload.get(VECTOR_HASH), str):
            raise InvalidInput(f"Copy {copy.point_id} names no {VECTOR_HASH}: use copy_of().")
    return list(_newest(copies))


def checked_updates(updates: Sequence[PayloadUpdate]) -> list[PayloadUpdate]:
    """The updates in rev order per id; InvalidInput when an id, rev or owner is not usable."""
    for update in updates:
        _check_identity(update.point_id, update.rev)
        if "user_id" in update.payload:
            _check_owner(update.payload["user_id"], update.point_id)
    return sorted(updates, key=lambda update: update.rev)


def checked_sub_queries(sub_queries: Sequence[SubQuery], schema: IndexSchema) -> Sequence[SubQuery]:
    """`sub_queries`, each with exactly one usable query vector and a limit above 0."""
    for sub_query in sub_queries:
        vectors = (sub_query.dense, sub_query.sparse, sub_query.encoder)
        if sum(vector is not None for vector in vectors) != 1:
            raise InvalidInput(
                f"SubQuery {sub_query.name!r} needs exactly one of dense, sparse and encoder."
            )
        if sub_query.limit < 1:
            raise InvalidInput(
                f"SubQuery {sub_query.name!r} has limit {sub_query.limit}: ask for at least 1."
            )
    dense = [sub_query for sub_query in sub_queries if sub_query.dense is not None]
    _check_dense([a.dense for a in dense], [a.name for a in dense], schema.dims)
    if schema.encoder:
        read = [sub_query for sub_query in sub_queries if sub_query.encoder is not None]
        _check_dense([a.encoder for a in read], [a.name for a in read], schema.encoder_dims)
    sparse = [sub_query for sub_query in sub_queries if sub_query.sparse is not None]
    _check_sparse([a.sparse for a in sparse], [a.name for a in sparse])
    return sub_queries


def _newest(points: Sequence[Written]) -> Iterable[Written]:
    kept: dict[str, Written] = {}
    for point in points:
        known = kept.get(point.point_id)
        if known is None or point.rev >= known.rev:
            kept[point.point_id] = point
    return kept.values()


def _checked_id(point_id: str) -> str:
    try:
        return str(uuid.UUID(point_id))
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidInput(f"Point id {point_id!r} is not a UUID: use point_id_of().") from error


def _check_identity(point_id: str, rev: int) -> None:
    if _checked_id(point_id) != point_id:
        raise InvalidInput(f"Point id {point_id!r} is not in canonical form: use point_id_of().")
    if not isinstance(rev, int) or rev < 0:
        raise InvalidInput(f"Point {point_id} has rev {rev!r}: it must be an integer from 0.")


def _check_owner(user_id: object, point_id: str) -> None:
    if not isinstance(user_id, str) or not user_id:
        raise InvalidInput(f"Point {point_id} has no user_id in its payload: set its owner.")


def _check_dense(vectors: Sequence[Vector | None], names: Sequence[str], dims: int) -> None:
    for name, vector in zip(names, vectors, strict=True):
        if not isinstance(vector, np.ndarray) or vector.shape != (dims,):
            shape = getattr(vector, "shape", None)
            raise BadVector(
                f"Dense vector of {name} has shape {shape}, the index holds {dims} dimensions: "
                "embed with the model of the index or run `rayapp job reindex`.",
                details={"name": name, "dims": dims},
            )
    if not vectors:
        return
    stacked = np.asarray(vectors, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", stacked, stacked))
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms >= MIN_VECTOR_NORM)))
    if bad.size:
        name = names[int(bad[0])]
        raise BadVector(
            f"Dense vector of {name} has NaN, infinity or no length: embed the text again.",
            details={"name": name, "norm": repr(float(norms[bad[0]]))},
        )


def _check_sparse(vectors: Sequence[SparseVector | None], names: Sequence[str]) -> None:
    kept = [(name, v) for name, v in zip(names, vectors, strict=True) if v is not None]
    for name, vector in kept:
        if len(vector.indices) != len(vector.values):
            raise InvalidInput(f"Sparse vector of {name} has indices and values of two lengths.")
        if len(set(vector.indices)) != len(vector.indices):
            raise InvalidInput(f"Sparse vector of {name} repeats an index: merge equal terms.")
    indices = list(chain.from_iterable(v.indices for _, v in kept))
    if indices and not (min(indices) >= 0 and max(indices) < SPARSE_INDEX_LIMIT):
        raise InvalidInput("A sparse vector has an index outside 0..2^32-1: hash terms to 32 bits.")
    values = np.fromiter(chain.from_iterable(v.values for _, v in kept), dtype=np.float64)
    if not np.isfinite(values).all():
        raise InvalidInput("A sparse vector has a weight that is NaN or infinite: analyse again.")


def was_embedded(item: MemoryItem) -> bool:
    """Whether vectors were made of its words, by whatever model: a reindex brings the points over
    without a word to their rows, which name the schema that the indexer last wrote them for."""
    state = item.index
    if state.vector_hash is None or state.model is None or state.dims is None:
        return False
    schema = IndexSchema(model=state.model, dims=state.dims, analyser=state.analyser or "")
    return state.vector_hash == vector_hash_of(item.content_hash, schema, item.context_prefix)
