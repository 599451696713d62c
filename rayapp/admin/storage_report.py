"""What the stores take, whether they agree, how old the last backup is; and a row per day of it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from rayapp.admin import ports
from rayapp.admin.rules import backup_is_late, differences_left
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.index.consistency.service import last_report
from rayapp.index.ports import ItemScan, VectorIndex
from rayapp.memory.ports import EventStore, IndexBacklog, MemoryStore
from rayapp.portability.ports import KeptArchive

DEFERRED = "rayapp job deferred"
SWEEP = "rayapp job consistency_sweep --full --repair"
BACKUP = "rayapp job backup create"
OLD_S = 60.0


class ReportStores(Protocol):
    """What is counted."""

    items: MemoryStore
    scan: ItemScan
    events: EventStore
    housekeeping: ports.Housekeeping
    days: ports.DayStore


@dataclass(eq=False)
class StorageReport:
    """`backups`: the whole ones, newest first; it reads a folder."""

    stores: ReportStores
    index: VectorIndex
    stored: Callable[[], Sequence[KeptArchive]]
    _: KW_ONLY
    runtime: Runtime

    async def backups(self) -> ports.BackupsSeen:
        found = await asyncio.to_thread(self.stored)
        return ports.BackupsSeen(
            count=len(found),
            bytes=sum(one.bytes for one in found),
            newest_at=found[0].at if found else None,
        )

    async def checks(self) -> list[ports.IntegrityCheck]:
        """Each with the command that repairs it."""
        backlog, active, sweep, points, backups = await asyncio.gather(
            self.stores.items.backlog(),
            self.stores.scan.total(),
            last_report(self.stores.events),
            self._points(),
            self.backups(),
        )
        return [
            *_of_backlog(backlog),
            _of_index(points, active - backlog.pending),
            *_of_sweep(sweep),
            _of_backups(backups, self.runtime.settings.backup.every_h, self.runtime.clock.now()),
        ]

    async def roll_up(self) -> ports.DayRow:
        """Keep the row of today, as it stands."""
        now = self.runtime.clock.now()
        tiers, sizes, backlog, points = await asyncio.gather(
            self.stores.items.tier_counts(None),
            self.stores.housekeeping.sizes(),
            self.stores.items.backlog(),
            self._points(),
        )
        disk = self.runtime.disk.look()
        row = ports.DayRow(
            day=f"{now:%Y-%m-%d}",
            at=now,
            tiers={one.tier.value: _counts(asdict(one)) for one in tiers},
            rows={one.name: one.count for one in sizes},
            store_bytes=sum(one.storage_bytes + one.index_bytes for one in sizes),
            waiting=backlog.pending,
            failed=backlog.failed,
            points=points,
            free_bytes=None if disk is None else disk.free_bytes,
        )
        await self.stores.days.keep(row)
        return row

    async def days(self, number: int) -> list[ports.DayRow]:
        """Newest first."""
        return await self.stores.days.recent(number)

    async def _points(self) -> int | None:
        try:
            return await self.index.count()
        except RayappError:
            return None


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    return {name: count for name, count in row.items() if name != "tier"}


def _of_backlog(backlog: IndexBacklog) -> list[ports.IntegrityCheck]:
    late = backlog.pending if backlog.oldest_pending_s > OLD_S else 0
    waiting = f"memories that wait, the oldest for {backlog.oldest_pending_s:.0f} s"
    return [
        ports.IntegrityCheck(
            "failed", backlog.failed, "memories that the index gave up on", DEFERRED
        ),
        ports.IntegrityCheck("waiting", late, waiting, DEFERRED),
    ]


def _of_index(points: int | None, indexed: int) -> ports.IntegrityCheck:
    """An active memory has a point that counts: fewer points than memories that wait for nothing
    say that some are lost."""
    if points is None:
        return ports.IntegrityCheck("counts", None, "the index is away", SWEEP)
    lost = max(0, indexed - points)
    return ports.IntegrityCheck("counts", lost, "memories more than points", SWEEP)


def _of_sweep(sweep: Mapping[str, Any] | None) -> list[ports.IntegrityCheck]:
    if sweep is None:
        return [ports.IntegrityCheck("drift", None, "no sweep ran yet", SWEEP)]
    left = differences_left(sweep)
    said = f"left by the sweep of {sweep['at']}"
    return [
        ports.IntegrityCheck(kind, left.get(kind, 0), said, SWEEP)
        for kind in sorted({"missing_in_index", "orphan_in_index", *left})
    ]


def _of_backups(backups: ports.BackupsSeen, every_h: float, now: datetime) -> ports.IntegrityCheck:
    if backups.newest_at is None:
        says = "there is no backup"
    else:
        says = f"the newest backup is {(now - backups.newest_at).total_seconds() / 3_600:.1f} h old"
    late = backup_is_late(backups.newest_at, every_h, now)
    return ports.IntegrityCheck("backup", int(late), says, BACKUP)
