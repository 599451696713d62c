"""Values that cross the vector index protocol. Text never does: the truth hydrates hits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rayapp.core.vectors import SparseVector, Vector
from rayapp.memory.tiers import Tier

DENSE = "dense"
BM25 = "bm25"
ENCODER = "encoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPoint:
    """One item. `payload` holds plain JSON values; times are epoch seconds (float).

    Attributes:
        dense, sparse: of its text, or of the first passage of a long one.
        passages: those of its other passages, in order.
        encoder: the encoder's vectors of all passages, the first one's first; none: they come
            later, by `set_encoder`, and a write without them takes away those of an older text.
    """

    point_id: str
    dense: Vector
    sparse: SparseVector
    payload: dict[str, Any]
    rev: int
    passages: tuple[tuple[Vector, SparseVector], ...] = ()
    encoder: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCopy:
    """A point to be written with the vectors that another collection holds under its id.

    `payload` is the whole new payload; its `vector_hash` says of which words they must be.
    """

    point_id: str
    payload: dict[str, Any]
    rev: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadUpdate:
    """New payload keys of a point; ignored when the point is gone or has a higher rev."""

    point_id: str
    payload: dict[str, Any]
    rev: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderUpdate:
    """The encoder's vectors of the passages of a text; ignored when its point is gone or has a
    higher rev, so that they are never beside those of another text."""

    point_id: str
    vectors: tuple[Vector, ...]
    rev: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubQuery:
    """One ranked list to fetch: exactly one of `dense`, `sparse` and `encoder` is set."""

    name: str
    limit: int
    dense: Vector | None = None
    sparse: SparseVector | None = None
    encoder: Vector | None = None
    tiers: tuple[Tier, ...] | None = None


class ScoredPoint(NamedTuple):
    """`passage`: which one of its text scored, from 0."""

    point_id: str
    score: float
    passage: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPoint:
    """A point read back; vectors are None unless asked for."""

    point_id: str
    payload: dict[str, Any]
    dense: Vector | None = None
    sparse: SparseVector | None = None
    encoder: Vector | None = None


Page = tuple[list[StoredPoint], str | None]


@dataclass(frozen=True, slots=True)
class Projection:
    """What is read of points: these keys of their payloads, None for all, and their vectors."""

    keys: Sequence[str] | None = None
    vectors: bool = False


PAYLOAD = Projection()
WHOLE = Projection(vectors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHealth:
    """`needs_rebuild`: the engine started empty or set a broken folder aside."""

    ready: bool
    engine: str
    collection: str | None
    points: int
    needs_rebuild: bool = False
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
