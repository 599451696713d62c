"""Builders of index points for tests: small vectors, full payloads."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from rayapp.core.vectors import IndexSchema, SparseVector, Vector
from rayapp.index.records import IndexPoint, PayloadUpdate, StoredPoint, SubQuery
from rayapp.memory.item import point_id_of
from rayapp.memory.tiers import Tier

DIMS = 8
SCHEMA = IndexSchema(model="Test/model-1", dims=DIMS, analyser="a1")
NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
# Index 1 is in every point, so every point is a lexical hit for it.
COMMON_TERM = 1


def vector(seed: int, dims: int = DIMS) -> Vector:
    """A unit vector that depends on `seed` only."""
    raw = np.random.default_rng(seed).standard_normal(dims).astype(np.float32)
    unit: Vector = raw / np.linalg.norm(raw)
    return unit


def index_point(
    memory_id: str,
    user_id: str = "ann",
    *,
    rev: int = 1,
    seed: int | None = None,
    sparse: SparseVector | None = None,
    **payload: Any,
) -> IndexPoint:
    """A point of `user_id` in the history tier unless `payload` says otherwise."""
    number = sum(ord(c) * (i + 1) for i, c in enumerate(memory_id))
    base: dict[str, Any] = {
        "user_id": user_id,
        "memory_id": memory_id,
        "tier": Tier.HISTORY.value,
        "status": "active",
        "lang": "en",
        "tags": [],
        "entities": [],
        "created_at": (NOW - timedelta(days=1)).timestamp(),
        "superseded": False,
        "always_inject": False,
    }
    terms = SparseVector([COMMON_TERM, 100 + number % 50], [1.0, 1.0])
    return IndexPoint(
        point_id=point_id_of(user_id, memory_id),
        dense=vector(number if seed is None else seed),
        sparse=sparse or terms,
        payload=base | payload,
        rev=rev,
    )


def written_again(stored: StoredPoint, **changes: Any) -> IndexPoint:
    """A point that was read whole, with other vectors in it."""
    vectors = {"dense": stored.dense, "sparse": stored.sparse, **changes}
    rev = int(stored.payload["rev"])
    return IndexPoint(point_id=stored.point_id, payload=stored.payload, rev=rev, **vectors)


def payload_update(point_id: str, *, rev: int = 1, **payload: Any) -> PayloadUpdate:
    return PayloadUpdate(point_id=point_id, payload=payload, rev=rev)


def dense_query(
    seed: int = 0, *, limit: int = 50, tiers: tuple[Tier, ...] | None = None
) -> SubQuery:
    return SubQuery(name="dense", limit=limit, dense=vector(seed), tiers=tiers)


def sparse_query(*indices: int, limit: int = 50, tiers: tuple[Tier, ...] | None = None) -> SubQuery:
    terms = list(indices) or [COMMON_TERM]
    sparse = SparseVector(terms, [1.0] * len(terms))
    return SubQuery(name="bm25", limit=limit, sparse=sparse, tiers=tiers)
