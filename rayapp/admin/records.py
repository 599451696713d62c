"""Values of administration: sizes, counts, and reports of what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rayapp.memory.tiers import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Health of one dependency; `critical` ones make the service unhealthy, others degraded."""

    name: str
    healthy: bool
    latency_ms: float
    message: str
    critical: bool = False
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthDay:
    """`date` is YYYY-MM-DD in UTC; `total` is cumulative; `by_source` counts that day's items."""

    date: str
    total: int
    by_source: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Shares of the last few minutes, 0..1; None where nothing was there to measure.

    promotion, demotion: moves per active item of working and history. cache_hit: vectors found in
    a cache, since this process started.
    """

    promotion: float | None = None
    demotion: float | None = None
    cache_hit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierStats:
    tier: Tier
    active: int = 0
    archived: int = 0
    deleted: int = 0
    uses_total: int = 0
    success_rate: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSize:
    """Of one collection. `size`: its documents; `storage`: its file; `index`: its indexes."""

    name: str
    count: int
    size_bytes: int
    storage_bytes: int
    index_bytes: int = 0
    free_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSize:
    """Of the vector index. None: there is no collection yet."""

    collection: str | None
    points: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    collections: Sequence[CollectionSize]
    index: IndexSize | None
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What compacting one collection gave back to the file system; `error` when it could not."""

    collection: str
    before_bytes: int
    after_bytes: int
    error: str | None = None

    @property
    def freed_bytes(self) -> int:
        return max(0, self.before_bytes - self.after_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUser:
    """A user id that was a browser session, its memories, and when one of them last changed."""

    user_id: str
    memories: int
    last_change: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """`orphans`: session users that nobody can be any more; `left` of them were not reached."""

    session_users: int
    orphans: Sequence[SessionUser]
    dry_run: bool
    removed_users: int = 0
    removed_memories: int = 0
    removed_rows: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyFact:
    """A row of the first client's old memory bank. `raw_id` is its place in the order.

    `moved`: it is done with; what became of the memory since then is the user's word.
    """

    raw_id: str
    fields: Mapping[str, Any]
    moved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What moving the old memory bank in did, or would do."""

    dry_run: bool
    total: int
    looked_at: int = 0
    migrated: int = 0
    duplicates: int = 0
    rejected: int = 0
    problems: Sequence[Mapping[str, Any]] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every usable old row was moved whole; `missing`: the ids of some that were not."""

    total: int
    present: int
    unusable: int
    missing: Sequence[str] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizeReport:
    """`next_cursor`: where a next call goes on; None when everything was looked at."""

    dry_run: bool
    scanned: int
    corrupted: int
    sanitized: int
    failed: int
    samples: Sequence[Mapping[str, Any]]
    duration_ms: float
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPreview:
    """What a reset would remove, and what it keeps.

    `old_indexes`: collections of the index that a rollback could bring back.
    """

    collections: Sequence[CollectionSize]
    missing: Sequence[str]
    kept: Sequence[str]
    index: IndexSize | None
    old_indexes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetReport:
    """What a reset removed. Not `complete`: its time was up, and asking again goes on.

    `dropped`: collections of the index that a rollback could have brought back.
    """

    removed: Mapping[str, int]
    points: int
    complete: bool
    dropped: Sequence[str] = ()
