"""The seams of administration with their values: keys, upkeep, old data, events, health."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope


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
    def success(self) -> bool:
        return self.error is None

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
    """`orphans`: session users that nobody can be any more; `remaining` were not reached."""

    session_users: int
    orphans: Sequence[SessionUser]
    dry_run: bool
    users_removed: int = 0
    memories_removed: int = 0
    rows_removed: int = 0
    remaining: int = 0


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


@dataclass(slots=True, kw_only=True)
class SanitizeReport:
    """It grows while the work goes on. `next_cursor`: where a next call goes on; None when
    everything was looked at."""

    dry_run: bool
    scanned: int = 0
    corrupted: int = 0
    sanitized: int = 0
    failed: int = 0
    samples: list[Mapping[str, Any]] = field(default_factory=list)
    duration_ms: float = 0.0
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPreview:
    """What a reset would remove, and what it keeps.

    `old_indexes`: collections of the index that a rollback could bring back.
    """

    collections: Sequence[CollectionSize]
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


# What a follower of the event stream is told. Values only; no text of a memory is among them.


class StreamKind(StrEnum):
    """What happened. `JOB` is for operators, all others belong to one user."""

    STORED = "stored"
    INDEXED = "indexed"
    OUTCOME = "outcome"
    PROMOTED = "promoted"
    DEMOTED = "demoted"
    ARCHIVED = "archived"
    RESTORED = "restored"
    UPDATED = "updated"
    MERGED = "merged"
    LEARNED = "learned"
    EXTENDED = "extended"
    DETECTED = "outcome_detected"
    THOUGHT = "thought"
    EPISODE = "episode"
    IMPORTANT = "important"
    ONTOLOGY = "ontology"
    JOB = "job"


USER_KINDS = frozenset(StreamKind) - {StreamKind.JOB}


class MarkKind(StrEnum):
    """What the stream says about itself.

    READY: it listens from its position on. RESET: it does too, but what came before was lost to
    the follower, who should read again. ALIVE: nothing happened; the position may have moved on.
    """

    READY = "ready"
    RESET = "reset"
    ALIVE = "alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """`position` is where a follower goes on after this event; opaque, but later ones are greater.

    `user_id`: None for a job.
    """

    position: str
    kind: StreamKind
    at: datetime
    user_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMark:
    position: str
    kind: MarkKind


Frame = StreamEvent | StreamMark


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """Where to go on (None: now), what to tell, and whether to wait for more."""

    after: str | None = None
    kinds: frozenset[StreamKind] = USER_KINDS
    follow: bool = True


Scope = Literal["read", "write", "admin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Only the SHA-256 of the key is stored. `user_id` None: an admin key bound to no user.

    `org_id`: the tenant that it belongs to, None for the default one. `last_used_at`: within
    minutes (`api_keys.USED_S`).
    """

    key_hash: str
    principal: str
    user_id: str | None
    scopes: frozenset[Scope]
    created_at: datetime
    revoked_at: datetime | None = None
    org_id: str | None = None
    name: str = ""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def key_id(self) -> str:
        """Names the key where people see it; nobody finds the key by it."""
        return id_of_key(self.key_hash)

    def living_at(self, at: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


def id_of_key(key_hash: str) -> str:
    """The start of the hash: of a random key it tells nothing, and old rows have one too."""
    return key_hash[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Who did what, and from where; no text.

    Attributes:
        user_id: the owner in whose name, `ids`: what the address and the handler named.
        memory_ids: of a request about many memories, those that it named.
        source: the address that asked. `status`: of the answer.
    """

    principal: str
    key_id: str | None
    user_id: str
    source: str
    method: str
    route: str
    ids: Mapping[str, str]
    status: int
    request_id: str
    memory_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry(Deed):
    """A deed and when it was done. `entry_id`: later ones are greater; `expires_at`: when it
    goes."""

    entry_id: str
    at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuestion:
    """Which entries, the latest first; `before`: the last one of the page before."""

    before: str | None = None
    principal: str | None = None
    user_id: str | None = None
    route: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 50


class RetentionKind(StrEnum):
    """What a limit of age is for, by the names of the settings."""

    WORKING = "working"
    HISTORY = "history"
    PATTERNS = "patterns"
    MEMORY_BANK = "memory_bank"
    TOOL_RESULTS = "tool_results"
    CONVERSATIONS = "conversations"
    DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimit:
    """What was last changed before this moment goes. `memories`: which; None for kinds whose rows
    are no memories."""

    kind: RetentionKind
    before: datetime
    memories: ItemFilter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReport:
    """`due`: what is past its limit; `removed`: what a run deleted, merged memories included.

    Attributes:
        held: users of whom nothing goes.
        skipped: what stays for now: an active conversation, a document that others rest on.
        complete: False = the time was up; the next run goes on.
    """

    at: datetime
    limits: Sequence[RetentionLimit]
    due: Mapping[RetentionKind, int]
    users: int
    held: Sequence[str]
    removed: Mapping[RetentionKind, int] = field(default_factory=dict)
    skipped: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalHold:
    """Nothing of this user is deleted until it is released. `placed_by`: the principal."""

    user_id: str
    reason: str
    placed_by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """The service as its day (YYYY-MM-DD in UTC) ended, or stands now.

    Attributes:
        tiers: counts by tier, as `TierCount`; what outcomes counted grows from day to day.
        rows: by collection.
        store_bytes: files of collections and of their indexes.
        points: of the index; None: it was away.
        free_bytes: of the disk of the data; None: it is on another machine.
    """

    day: str
    at: datetime
    tiers: Mapping[str, Mapping[str, int]]
    rows: Mapping[str, int]
    store_bytes: int
    waiting: int
    failed: int
    points: int | None = None
    free_bytes: int | None = None


class DayStore(Protocol):
    """`daily_metrics`: one row per day, for 400 days."""

    async def keep(self, row: DayRow) -> None:
        """In the place of an earlier one of its day."""

    async def recent(self, days: int) -> list[DayRow]:
        """Newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupsSeen:
    """Whole backups of the folder; `newest_at` None: there is none."""

    count: int
    bytes: int
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class IntegrityCheck:
    """`found`: how many are not as they should be; None: it cannot be told now. `repair`: the
    command that puts it right."""

    name: str
    found: int | None
    says: str
    repair: str

    @property
    def well(self) -> bool:
        return self.found == 0


class HoldStore(Protocol):
    """`legal_holds`: one row per user that is held."""

    async def place(self, hold: LegalHold) -> bool:
        """False: the user is held already, and that hold stays."""

    async def release(self, user_id: str) -> bool:
        """False: there was none."""

    async def get(self, user_id: str) -> LegalHold | None: ...
    async def all(self) -> list[LegalHold]:
        """Oldest first."""


class ApiKeyStore(Protocol):
    async def add(self, key: ApiKey) -> None: ...
    async def find(self, key_hash: str) -> ApiKey | None: ...
    async def revoke(self, principal: str | None, at: datetime, *, org_id: str | None) -> int:
        """End the living keys of the tenant, of one principal or all; how many there were."""

    async def end(self, key_hash: str, at: datetime) -> None:
        """Revoke one key; nothing when it is revoked already."""

    async def expire(self, key_hash: str, at: datetime) -> None:
        """It ends then, unless it ends before."""

    async def used(self, key_hash: str, at: datetime) -> None:
        """It was used then, or later."""

    async def all(self) -> list[ApiKey]: ...
    async def end_token(self, token_id: str, expires_at: datetime) -> None:
        """Keep until `expires_at` that a session token is revoked. Harmless to repeat."""

    async def token_ended(self, token_id: str) -> bool: ...


class AuditStore(Protocol):
    """`audit_log`: rows are added and go at their time; nothing changes one."""

    async def append(self, entry: AuditEntry) -> None: ...
    async def page(self, asked: AuditQuestion, now: datetime) -> list[AuditEntry]:
        """The latest first, without those whose time is over."""


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

    async def finish(self, row: IdempotencyRow) -> None: ...
    async def drop(self, row: IdempotencyRow) -> None:
        """Forget this very running row (same `at`), so that a retry may run."""


class EventFeed(Protocol):
    """An open look at the events of some users. It must be closed."""

    @property
    def position(self) -> str:
        """Everything before it was told; it moves on without events too."""

    async def next(self) -> StreamEvent | None:
        """The next event; None after `poll_s` seconds without one."""

    async def close(self) -> None: ...


class EventStream(Protocol):
    """Changes of the truth as they happen, in the order in which they were committed."""

    async def open(
        self,
        users: Collection[str],
        *,
        after: str | None,
        kinds: frozenset[StreamKind],
        poll_s: float,
    ) -> EventFeed:
        """Listen to the events of these users, from `after` on; None: from now. Events of
        `StreamKind.JOB` are of all.

        Raises NotFound: code `position_lost`: `after` is none of ours, or too old to go on from.
        """


class Housekeeping(Protocol):
    """The truth as its administrator sees it: all users, nothing that says what they keep."""

    async def sizes(self) -> list[CollectionSize]:
        """Of every collection of this service that exists, by name."""

    async def compact(self, collection: str, timeout_s: float) -> Compaction:
        """Give the free space of one collection's file back, as far as the server can."""

    async def aged(self, limit: RetentionLimit, held: Collection[str]) -> dict[str, int]:
        """How many rows of each user but these are past a limit, in the order of the user ids."""

    async def session_users(self) -> list[SessionUser]:
        """Users whose id is 64 hexadecimal digits, the longest unchanged first."""

    async def forget_rows(self, user_id: str) -> int:
        """Remove what is kept of a user beside the memories; how many rows."""

    async def remove_points(self, point_ids: Sequence[str]) -> int:
        """Remove rows of memories, whatever their state, for a reset; how many there were."""

    async def empty(self, collection: str) -> int:
        """Remove all rows of a collection that a reset empties; how many there were."""


class LegacyBank(Protocol):
    """The first client's old collection of facts. Its rows only get a mark that they were moved."""

    async def total(self, scope: ReadScope) -> int:
        """Rows of the user; 0 when there is no such collection."""

    def rows(self, scope: ReadScope) -> AsyncIterator[LegacyFact]:
        """All rows of the user, in the order of their ids."""

    async def mark_moved(self, scope: WriteScope, raw_id: str, at: datetime) -> None:
        """`rows` gives the row with `moved` from now on; nothing when it is gone."""

    async def everybody(self) -> int:
        """Rows of all users, for a reset."""

    async def empty(self) -> int:
        """Remove the rows of all users, for a reset; how many there were."""
