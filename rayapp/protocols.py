"""The seams. Every protocol has an in-memory fake and one contract suite that both pass.

Errors: an implementation raises only classes of `rayapp.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from rayapp.domain.index import (
    Arm,
    IndexHealth,
    IndexPoint,
    IndexSchema,
    PayloadUpdate,
    PointCopy,
    ScoredPoint,
    StoredPoint,
    Vector,
)
from rayapp.domain.memory import IndexOp, MemoryItem, MemoryVersion
from rayapp.domain.paging import SortKey
from rayapp.domain.scope import ItemFilter, ReadScope, WriteScope
from rayapp.domain.tiers import Tier
from rayapp.resilience.breaker import BreakerSnapshot

TextKind = Literal["query", "passage"]


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, tz-aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class Metrics(Protocol):
    """Names come from `rayapp.observability.metrics`; an unknown name raises."""

    def count(self, name: str, value: float = 1.0, **labels: str) -> None: ...
    def observe(self, name: str, value: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


# --- truth ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InsertResult:
    """`existing` is the active item that stood in the way: same id (`id`) or same text (`text`)."""

    inserted: bool
    existing: MemoryItem | None = None
    clash: Literal["id", "text"] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    items: list[MemoryItem]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexResult:
    """What the indexer did for one claimed item at `rev`; `error` None means synced.

    `blamed` False: a dependency was away, and the try does not count against the item.
    `context_prefix` is stored with the item whatever came of the try, so that it is asked for once;
    empty: what is there stays.
    """

    point_id: str
    rev: int
    op: IndexOp
    error: str | None = None
    next_attempt_at: datetime | None = None
    failed: bool = False
    blamed: bool = True
    vector_hash: str | None = None
    context_prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBacklog:
    """Counts over all users, claimed and backing-off items included in pending.

    `oldest_untried_s`: age of the oldest pending item that has not failed by itself.
    """

    pending: int
    synced: int
    failed: int
    oldest_pending_s: float
    oldest_untried_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierCount:
    """`deleted`: how many ever were; their rows go with their points. `waiting`: items whose newest
    state is not in the index yet."""

    tier: Tier
    active: int
    archived: int
    deleted: int
    uses_total: int
    worked: int
    failed: int
    waiting: int = 0


class MemoryStore(Protocol):
    """`memory_items` and `memory_versions`. MongoDB is the truth."""

    async def ensure_schema(self) -> None:
        """Create collections and indexes with all their options; idempotent."""
        ...

    async def insert(self, item: MemoryItem) -> InsertResult:
        """Insert with majority+journal; a unique clash is a result, not an error."""
        ...

    async def insert_many(self, items: Sequence[MemoryItem]) -> list[InsertResult]:
        """Same, unordered, one result per item in order."""
        ...

    async def get(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        """Any status but deleted; a merged id resolves to its winner."""
        ...

    async def by_points(self, scope: ReadScope, point_ids: Sequence[str]) -> list[MemoryItem]:
        """Hydrate hits; missing, deleted and foreign ids are left out; order is not kept."""
        ...

    async def find_duplicate(
        self, scope: WriteScope, tier: Tier, dedup_scope: str, content_hash: str
    ) -> MemoryItem | None:
        """The active item with the same text, if there is one."""
        ...

    async def mention(self, scope: WriteScope, memory_id: str, at: datetime) -> None:
        """quality.mentioned_count + 1."""
        ...

    async def page(
        self,
        scope: ReadScope,
        where: ItemFilter,
        *,
        sort: SortKey,
        limit: int,
        cursor: str | None = None,
        offset: int = 0,
        text_query: str | None = None,
    ) -> Page:
        """A sorted page; a cursor that cannot be read is an InvalidInput."""
        ...

    async def count(
        self, scope: ReadScope, where: ItemFilter, *, text_query: str | None = None
    ) -> int:
        """All items that `page` would show."""
        ...

    async def pending(
        self, scope: ReadScope, where: ItemFilter, limit: int, *, with_failed: bool = False
    ) -> list[MemoryItem]:
        """The newest items that the index does not hold yet in their current state.

        `with_failed`: also those it never will, unless they are tried again.
        """
        ...

    async def text_search(
        self, scope: ReadScope, where: ItemFilter, query: str, limit: int
    ) -> list[tuple[MemoryItem, float]]:
        """The "index down" rung: `$text` under the user prefix, asked for me and for system."""
        ...

    async def replace(
        self, item: MemoryItem, *, expected_version: int, row: MemoryVersion
    ) -> MemoryItem:
        """Compare-and-set on version, the old state to memory_versions, in one transaction.

        The stored item gets `version = expected_version + 1`.
        Raises VersionConflict, NotFound, DuplicateMemory.
        """
        ...

    async def versions(self, scope: ReadScope, memory_id: str, limit: int) -> list[MemoryVersion]:
        """Newest first."""
        ...

    async def lowest_quality(self, scope: WriteScope, tier: Tier, limit: int) -> list[MemoryItem]:
        """Active items by (quality_score, wilson, last_outcome_at), lowest first.

        What was replaced comes before what is current.
        """
        ...

    async def claim(self, *, token: str, limit: int, claim_s: float) -> list[MemoryItem]:
        """Take due pending items for `claim_s` seconds; fair over users; takes over expired."""
        ...

    async def finish(self, token: str, results: Sequence[IndexResult], schema: IndexSchema) -> int:
        """Write back what the indexer did, guarded by rev and claim; returns how many matched.

        A finished `delete` of a deleted item removes the tombstone row.
        """
        ...

    async def mark_all_pending(self) -> int:
        """Ask for every active item to be indexed again, but those that gave up."""
        ...

    async def backlog(self) -> IndexBacklog: ...

    async def failures(self, limit: int, user_id: str | None = None) -> list[MemoryItem]:
        """Items that gave up, of one user or of all, for diagnostics and reports."""
        ...

    async def retry_failed(self, user_id: str | None = None) -> int:
        """Make every failed item, of one user or of all, pending and due; how many there were."""
        ...

    async def hasten(self, user_id: str | None) -> int:
        """`retry_failed`, and make pending items that nobody has claimed due now. How many
        changed; what was due already did not. None: of all users."""
        ...

    async def waiting(self, user_id: str | None) -> int:
        """Items that the index does not have as they are, pending or failed, from index keys
        alone. None: of all users."""
        ...

    async def waiting_since(self, user_id: str | None, since: datetime) -> int:
        """Pending items that wait since then or earlier. None: of all users."""
        ...

    async def oldest_due(self) -> datetime | None:
        """When the next pending item becomes due, for the indexer's sleep."""
        ...

    async def tier_counts(self, scope: ReadScope | None) -> list[TierCount]:
        """One row per tier that has items; None counts all users."""
        ...

    async def tags(self, scope: ReadScope, tier: Tier) -> list[str]: ...

    async def growth(self, scope: ReadScope, since: datetime) -> list[tuple[str, str, int]]:
        """(UTC date, source label, items stored that day), plus one row dated "" with the base."""
        ...

    async def ping(self) -> float:
        """Seconds of one round trip; raises StoreDown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One line of a receipt, position from 1."""

    position: int
    memory_id: str
    tier: Tier
    final: float
    ranks: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    receipt_id: str
    user_id: str
    query: str
    recipe: str
    shown: tuple[Shown, ...]
    at: datetime
    expires_at: datetime
    conversation_id: str | None = None
    turn_id: str | None = None
    concepts: tuple[str, ...] = ()
    context_type: str | None = None
    timings: dict[str, float] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    principal: str = ""
    scored_at: datetime | None = None


class ReceiptStore(Protocol):
    async def put(self, receipt: Receipt) -> None: ...
    async def get(self, scope: ReadScope, receipt_id: str) -> Receipt | None: ...
    async def latest(
        self, scope: ReadScope, conversation_id: str, limit: int, *, unscored: bool = False
    ) -> list[Receipt]:
        """The living receipts of a conversation, newest first."""
        ...

    async def questions(
        self,
        scope: ReadScope,
        conversation_id: str,
        limit: int,
        *,
        besides_turn: str | None = None,
    ) -> list[tuple[str, tuple[str, ...], datetime]]:
        """(query, concepts, at) of the same receipts, without what they showed.

        Those of the turn `besides_turn` are left out.
        """
        ...

    async def recent(self, limit: int) -> list[Receipt]:
        """The last living receipts of all users, newest first. For maintenance only: nothing of
        this may reach an answer to a user."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    event_id: str
    user_id: str
    kind: str
    at: datetime
    memory_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


class EventStore(Protocol):
    async def add(self, event: Event) -> None: ...
    async def recent(self, scope: ReadScope, kind: str | None, limit: int) -> list[Event]: ...


@dataclass(frozen=True, slots=True)
class Lease:
    """Held until `expires_at`; `fence` grows with every new holder."""

    name: str
    holder: str
    fence: int
    expires_at: datetime


class LeaseStore(Protocol):
    async def acquire(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """Take or renew; None while another holder's lease is alive."""
        ...

    async def release(self, lease: Lease) -> None: ...
    async def current(self, name: str) -> Lease | None: ...
    async def last_released(self, name: str) -> datetime | None:
        """When a holder last gave it back by itself; None when none ever did."""
        ...


Scope = Literal["read", "write", "admin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Only the SHA-256 of the key is stored. `user_id` None: an admin key bound to no user."""

    key_hash: str
    principal: str
    user_id: str | None
    scopes: frozenset[Scope]
    created_at: datetime
    revoked_at: datetime | None = None


class ApiKeyStore(Protocol):
    async def add(self, key: ApiKey) -> None: ...
    async def find(self, key_hash: str) -> ApiKey | None: ...
    async def revoke(self, principal: str, at: datetime) -> int: ...
    async def all(self) -> list[ApiKey]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRow:
    user_id: str
    route: str
    key: str
    body_sha256: str
    state: Literal["running", "done"]
    at: datetime
    status: int | None = None
    response: bytes | None = None


class IdempotencyStore(Protocol):
    async def begin(self, row: IdempotencyRow) -> IdempotencyRow | None:
        """Insert `row` as running; return the row that was there first, if any."""
        ...

    async def finish(self, row: IdempotencyRow) -> None: ...
    async def drop(self, row: IdempotencyRow) -> None:
        """Forget this very running row (same `at`), so that a retry may run."""
        ...


# --- index ---------------------------------------------------------------------------------


class VectorIndex(Protocol):
    """Dense + BM25 in one point. Derived: anything here can be rebuilt from the truth.

    `collection` None means the one behind the alias. Every write is validated whole before the
    engine sees it: BadVector or InvalidInput leaves nothing written.
    """

    async def open(self, schema: IndexSchema) -> None:
        """Create collection and alias when there are none; SchemaMismatch when they differ."""
        ...

    async def upsert(self, points: Sequence[IndexPoint], *, collection: str | None = None) -> None:
        """Write points whose rev is not below the stored one."""
        ...

    async def copy(
        self, points: Sequence[PointCopy], *, source: str, collection: str | None = None
    ) -> list[str]:
        """Write points with the vectors that `source` holds under their ids, where its points are
        of the wanted `vector_hash`; the ids for which it has none. A stored point of a higher rev
        is left alone, as by `upsert`. NotFound; InvalidInput leaves nothing written.
        """
        ...

    async def set_payload(self, updates: Sequence[PayloadUpdate]) -> None: ...
    async def delete(
        self,
        point_ids: Sequence[str],
        *,
        revs: Mapping[str, int] | None = None,
        collection: str | None = None,
    ) -> None:
        """Ids that are not there are fine. With `revs`, a point of a higher rev is left alone."""
        ...

    async def query(
        self,
        scope: ReadScope,
        where: ItemFilter,
        arms: Sequence[Arm],
        *,
        collection: str | None = None,
    ) -> list[list[ScoredPoint]]:
        """One list per arm, best first, in one round trip."""
        ...

    async def retrieve(
        self,
        point_ids: Sequence[str],
        *,
        with_vectors: bool = False,
        keys: Sequence[str] | None = None,
        collection: str | None = None,
    ) -> list[StoredPoint]:
        """The points that are there. `keys`: of their payloads; None: all."""
        ...

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        keys: Sequence[str] | None = None,
        with_vectors: bool = False,
        collection: str | None = None,
    ) -> tuple[list[StoredPoint], str | None]:
        """Points in id order with after < id <= until; the second value continues, None ends.
        `keys` as in `retrieve`."""
        ...

    async def count(
        self,
        scope: ReadScope | None = None,
        where: ItemFilter | None = None,
        *,
        collection: str | None = None,
    ) -> int: ...

    async def create_collection(
        self, name: str, schema: IndexSchema, *, needs_rebuild: bool = False
    ) -> None:
        """Make it when it is missing; Conflict when it exists with another schema.

        `needs_rebuild`: it will go behind the alias empty, to be filled from the truth.
        """
        ...

    async def drop_collection(self, name: str) -> None: ...
    async def collections(self) -> list[str]: ...
    async def schema_of(self, collection: str) -> IndexSchema:
        """What a collection was built for. NotFound."""
        ...

    async def switch_alias(self, name: str, expected: str | None = None) -> None:
        """Point the alias at `name` atomically; harmless to repeat.

        NotFound: there is no such collection. Conflict: the alias points neither at `name` nor at
        `expected`, so somebody else moved it; None expects nothing. A server of its own looks just
        before, so that a caller looks at `health` afterwards.
        """
        ...

    async def rebuilt(self) -> None:
        """Clear `needs_rebuild`: the truth has been indexed again."""
        ...

    async def health(self) -> IndexHealth: ...
    async def close(self) -> None: ...


# --- models and cache ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderInfo:
    backend: str
    model: str
    dims: int
    langs: tuple[str, ...] = ()


class BreakerOwner(Protocol):
    """Has circuit breakers: of this process, or of the replicas behind a handle."""

    async def breakers(self) -> list[BreakerSnapshot]:
        """One per breaker and replica; equal names are replicas. DependencyDown."""
        ...

    async def reset_breakers(self) -> list[str]:
        """Close all of them in every replica, then ask what is behind them once.

        Returns the names of those that were not closed. Whether it answers now is in the
        `last_error` of `breakers`. DependencyDown.
        """
        ...


class Embedder(BreakerOwner, Protocol):
    async def info(self) -> EmbedderInfo: ...
    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        """One float32 vector of `info().dims` per text, unit length. EmbedderDown, BadVector."""
        ...

    async def health(self) -> dict[str, Any]: ...


class EmbeddingBackend(Protocol):
    """One model. `encode` may raise EmbedderDown; shapes are checked by the gateway."""

    async def info(self) -> EmbedderInfo: ...
    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]: ...
    async def close(self) -> None: ...


class Reranker(BreakerOwner, Protocol):
    async def rerank(
        self, query: str, documents: Sequence[str], *, timeout_s: float
    ) -> list[float] | None:
        """Probabilities in document order, or None when no reranker is configured. RerankerDown."""
        ...

    async def health(self) -> dict[str, Any]: ...


class RerankBackend(Protocol):
    name: str

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        """Raw relevance scores in document order (the gateway applies the sigmoid)."""
        ...

    async def close(self) -> None: ...


class Cache(Protocol):
    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]: ...
    async def set_many(self, values: Mapping[str, bytes], ttl_s: int) -> None: ...
    async def ping(self) -> float: ...
    async def close(self) -> None: ...
