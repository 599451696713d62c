"""The seams of administration: keys, upkeep, old data, events, health.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from rayapp.admin.records import (
    Cleanup,
    CollectionSize,
    Compaction,
    Component,
    GrowthDay,
    LegacyFact,
    Migration,
    Rates,
    ResetPreview,
    ResetReport,
    SanitizeReport,
    SessionUser,
    Sizes,
    TierStats,
    Verification,
)
from rayapp.admin.stream_events import Frame, StreamEvent, StreamKind, StreamRequest
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier

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


class EventFeed(Protocol):
    """An open look at the events of one user. It must be closed."""

    @property
    def position(self) -> str:
        """Everything before it was told; it moves on without events too."""
        ...

    async def next(self) -> StreamEvent | None:
        """The next event; None after `poll_s` seconds without one."""
        ...

    async def close(self) -> None: ...


class EventStream(Protocol):
    """Changes of the truth as they happen, in the order in which they were committed."""

    async def open(
        self,
        scope: ReadScope,
        *,
        after: str | None,
        kinds: frozenset[StreamKind],
        poll_s: float,
    ) -> EventFeed:
        """Listen from `after` on, None: from now. Events of `StreamKind.JOB` are of all users.

        Raises:
            NotFound: code `position_lost`: `after` is none of ours, or too old to go on from.
        """
        ...


class Upkeep(Protocol):
    """Work of an administrator on the store. Raises InvalidInput, Conflict, StoreDown."""

    async def sizes(self) -> Sizes: ...
    async def compact(self) -> tuple[list[Compaction], bool]:
        """What each collection gave back, and whether there was time for all of them."""
        ...

    async def cleanup(self, *, dry_run: bool, quiet_days: int) -> Cleanup:
        """Users that were browser sessions: nobody's key is bound to them, and nothing of theirs
        changed for `quiet_days`."""
        ...

    async def migrate(self, scope: WriteScope, *, dry_run: bool) -> Migration:
        """Move the old memory bank of the user in; what is there already stays as it is."""
        ...

    async def verify_migration(self, scope: ReadScope) -> Verification: ...
    async def sanitize(
        self, scope: WriteScope, tier: Tier | None, *, dry_run: bool, cursor: str | None
    ) -> SanitizeReport:
        """Take encoded files out of the user's texts."""
        ...

    async def reset_preview(self) -> ResetPreview: ...
    async def reset(self) -> ResetReport:
        """Remove the data of all users. Conflict, code `busy`, while a job goes on."""
        ...


class Health(Protocol):
    async def not_ready(self) -> list[str]:
        """Reasons why the service cannot serve; empty when it can."""
        ...

    async def components(self) -> list[Component]: ...
    async def breakers(self) -> dict[str, dict[str, Any]]:
        """By dependency: those of this process and of every replica of a model."""
        ...

    async def reset_breakers(self) -> list[str]:
        """Close them by hand; the names of those that were not closed."""
        ...

    async def diagnostics(self, *, metrics: bool = False) -> dict[str, Any]:
        """The body of `GET /api/memory/diagnostics`, contract fields included."""
        ...


class Statistics(Protocol):
    async def tiers(self, scope: ReadScope) -> list[TierStats]:
        """All seven tiers, empty ones included."""
        ...

    async def rates(self, scope: ReadScope, active: int, window: timedelta) -> Rates:
        """`active`: items of working and history, as `tiers` counts them."""
        ...

    async def growth(self, scope: ReadScope, days: int) -> list[GrowthDay]:
        """One row per UTC day, gaps filled, oldest first."""
        ...


class Following(Protocol):
    """One open event stream, closed by whoever opened it."""

    @property
    def frames(self) -> AsyncIterator[Frame]: ...
    async def close(self) -> None: ...


class Events(Protocol):
    async def follow(self, scope: ReadScope, request: StreamRequest) -> Following:
        """Raises Overloaded when as many streams are open as may be, and StoreDown."""
        ...


class Housekeeping(Protocol):
    """The truth as its administrator sees it: all users, nothing that says what they keep."""

    async def sizes(self) -> list[CollectionSize]:
        """Of every collection of this service that exists, by name."""
        ...

    async def compact(self, collection: str, timeout_s: float) -> Compaction:
        """Give the free space of one collection's file back, as far as the server can."""
        ...

    async def session_users(self) -> list[SessionUser]:
        """Users whose id is 64 hexadecimal digits, the longest unchanged first."""
        ...

    async def forget_rows(self, user_id: str) -> int:
        """Remove what is kept of a user beside the memories; how many rows."""
        ...

    async def remove_points(self, point_ids: Sequence[str]) -> int:
        """Remove rows of memories, whatever their state, for a reset; how many there were."""
        ...

    async def empty(self, collection: str) -> int:
        """Remove all rows of a collection that a reset empties; how many there were."""
        ...


class LegacyBank(Protocol):
    """The first client's old collection of facts. Its rows only get a mark that they were moved."""

    async def total(self, scope: ReadScope) -> int:
        """Rows of the user; 0 when there is no such collection."""
        ...

    def rows(self, scope: ReadScope) -> AsyncIterator[LegacyFact]:
        """All rows of the user, in the order of their ids."""
        ...

    async def mark_moved(self, scope: WriteScope, raw_id: str, at: datetime) -> None:
        """`rows` gives the row with `moved` from now on; nothing when it is gone."""
        ...

    async def everybody(self) -> int:
        """Rows of all users, for a reset."""
        ...

    async def empty(self) -> int:
        """Remove the rows of all users, for a reset; how many there were."""
        ...
