"""Which requests a full disk refuses, and what a caller is told when it took MongoDB down."""

from __future__ import annotations

from rayapp.api.auth import DATA_CLEAR, JOB, RouteRule
from rayapp.core.disk_space import DiskSpace, DiskState
from rayapp.core.errors import RayappError, StoreDown, StoreFull

READS = frozenset({"GET", "HEAD", "OPTIONS"})
# They keep less, or stop what would keep more.
FREES = frozenset(
    {
        "/api/memory/bulk/archive",
        "/api/memory/bulk/delete",
        DATA_CLEAR,
        "/api/data/compact-database",
        "/api/memory/cleanup",
        "/api/memory/ops/reindex/pause",
        "/api/memory/ops/reindex/cancel",
        f"{JOB}/pause",
        f"{JOB}/cancel",
    }
)
# Nothing of theirs reaches the disk.
STORES_NOTHING = frozenset({"/api/memory/ops/circuit-breaker"})


def check_room(disk: DiskSpace, method: str, rule: RouteRule) -> None:
    """Before the handler runs. Tools look themselves: one route leads to those that only read.

    Raises:
        StoreFull: it would store something, and there is no room.
    """
    if method in READS or rule.scope == "read" or rule.template in STORES_NOTHING:
        return
    disk.check(frees=method == "DELETE" or rule.template in FREES)


def explained(error: RayappError, disk: DiskSpace) -> RayappError:
    """`error`, or why MongoDB is away: it ends itself on a disk without room."""
    if not isinstance(error, StoreDown) or isinstance(error, StoreFull):
        return error
    found = disk.look()
    if found is None or found.state is not DiskState.FULL:
        return error
    return StoreDown(
        f"{found.reason}; MongoDB stopped and comes back by itself when there is room.",
        details=error.details | {"folder": found.folder, "free_bytes": found.free_bytes},
        retry_after_s=error.retry_after_s,
    )
