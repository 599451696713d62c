"""The seams of the index: the engine, scans of all items, quarantine, and its services.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rayapp.core.vectors import IndexSchema
from rayapp.index import records
from rayapp.index.records import PAYLOAD, Projection
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.scope import ItemFilter, ReadScope


class VectorIndex(Protocol):
    """Dense + BM25 in one point. Derived: anything here can be rebuilt from the truth.

    An engine keeps the points it is given; `PassageIndex` makes points of the passages of an item,
    and is what services are given.

    Points are those of the collection behind the alias; `at` has those of another. Every write is
    validated whole before the engine sees it: BadVector or InvalidInput leaves nothing written.
    """

    def at(self, collection: str | None) -> "VectorIndex":
        """This index with the points of `collection`; None: of the one behind the alias."""

    async def open(self, schema: IndexSchema) -> None:
        """Create collection and alias when there are none; SchemaMismatch when they differ. Where
        only the encoder's vectors are missing, the embedded engine makes place for them."""

    async def upsert(self, points: Sequence[records.IndexPoint]) -> None:
        """Write points whose rev is not below the stored one."""

    async def copy(self, points: Sequence[records.PointCopy], source: str) -> list[str]:
        """Write points with the vectors that `source` holds under their ids, where its points are
        of the wanted `vector_hash`; the ids for which it has none. Those of the encoder come along
        where both are of the same one. A stored point of a higher rev
        is left alone, as by `upsert`. NotFound; InvalidInput leaves nothing written.
        """

    async def set_payload(self, updates: Sequence[records.PayloadUpdate]) -> None: ...
    async def set_encoder(self, updates: Sequence[records.EncoderUpdate]) -> None:
        """Give points the encoder's vectors. InvalidInput: the collection has no place for them."""

    async def delete(self, point_ids: Sequence[str], revs: Mapping[str, int] | None = None) -> None:
        """Ids that are not there are fine. With `revs`, a point of a higher rev is left alone."""

    async def query(
        self, scope: ReadScope, where: ItemFilter, sub_queries: Sequence[records.SubQuery]
    ) -> list[list[records.ScoredPoint]]:
        """One list per sub-query, best first, in one round trip."""

    async def retrieve(
        self, point_ids: Sequence[str], read: Projection = PAYLOAD
    ) -> list[records.StoredPoint]:
        """The points that are there."""

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        read: Projection = PAYLOAD,
        unencoded: bool = False,
    ) -> records.Page:
        """Points in id order with after < id <= until; the second value continues, None ends.

        `unencoded`: those alone that lack the encoder's vector; none where it has no place.
        """

    async def count(self, scope: ReadScope | None = None, where: ItemFilter | None = None) -> int:
        """Items: passages beyond the first of each do not count."""

    async def unencoded(self) -> int:
        """How many items lack the encoder's vector; 0 where it has no place."""

    async def create_collection(
        self, name: str, schema: IndexSchema, *, needs_rebuild: bool = False
    ) -> None:
        """Make it when it is missing; Conflict when it exists with another schema.

        `needs_rebuild`: it will go behind the alias empty, to be filled from the truth.
        """

    async def drop_collection(self, name: str) -> None: ...
    async def collections(self) -> list[str]: ...
    async def schema_of(self, collection: str) -> IndexSchema:
        """What a collection was built for. NotFound."""

    async def switch_alias(self, name: str, expected: str | None = None) -> None:
        """Point the alias at `name` atomically; harmless to repeat.

        NotFound: there is no such collection. Conflict: the alias points neither at `name` nor at
        `expected`, so somebody else moved it; None expects nothing. A server of its own looks just
        before, so that a caller looks at `health` afterwards.
        """

    async def rebuilt(self) -> None:
        """Clear `needs_rebuild`: the truth has been indexed again."""

    async def health(self) -> records.IndexHealth: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Ask for an index write of an item that is still at `rev`."""

    point_id: str
    rev: int
    op: IndexOp


@dataclass(frozen=True, slots=True)
class RowState:
    """What decides whether the point of a row is right: an eighth of the row to read."""

    point_id: str
    status: Status
    sync_state: SyncState
    rev: int
    content_hash: str
    context_prefix: str = ""


class ItemScan(Protocol):
    """Reads and repairs over the items of all users, in the order of point ids.

    For jobs and maintenance only: no scope, so nothing of this may reach an answer to a user.
    Rows that cannot be read are skipped, and a page is only short when the range has ended.
    """

    async def page(
        self, *, after: str | None, until: str | None, limit: int
    ) -> tuple[list[MemoryItem], str | None]:
        """Items of every status with after < point_id <= until; the second value is the last point
        id looked at, None when the range has ended."""

    async def by_points(self, point_ids: Sequence[str]) -> list[MemoryItem]:
        """Of every user and status, tombstones included."""

    async def states(self, point_ids: Sequence[str]) -> list[RowState]:
        """As `by_points`, without what the items say."""

    async def existing(self, point_ids: Sequence[str]) -> set[str]:
        """Which of them have a row, one that cannot be read too: it may be of a newer version."""

    async def indexed_since(
        self, since: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[MemoryItem]:
        """Active items whose index write ended at `since` or later, in (indexed_at, point_id)
        order, those that come after `after`."""

    async def total(self) -> int:
        """Active items that did not give up on the index, from counters or an index alone."""

    async def in_flight(self) -> int:
        """Items claimed by an indexer that is still within its claim."""

    async def requeue(self, wanted: Sequence[Requeue]) -> int:
        """Make synced items pending with that op and a higher rev; how many were still at their
        rev. Pending and failed items are left as they are."""

    async def requeue_indexed_since(self, since: datetime) -> int:
        """Make every active item whose index write ended at `since` or later pending (vector)."""

    async def now(self) -> datetime:
        """The server's clock, the one that `indexed_at` comes from."""


class QuarantineStore(Protocol):
    """`quarantine`: points that were taken out of the index, with the reason, for 30 days."""

    async def keep(self, points: Sequence[records.StoredPoint], reason: str) -> None:
        """Store whole points, vectors included when they have them. Repeating is harmless."""

    async def purge(self, point_ids: Sequence[str]) -> None:
        """Forget the memories of these points: what was kept under these ids, and what was kept
        under another id but names one of these memories in its payload."""

    async def kept(self, limit: int) -> list[tuple[records.StoredPoint, str, datetime]]:
        """Newest first."""
