"""The tasks of the owner of maintenance besides tiers: sweeps, lost jobs, old collections, ..."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from rayapp.admin.retention import RetentionService
from rayapp.admin.storage_report import StorageReport
from rayapp.bulk.params import CONSISTENCY
from rayapp.bulk.service import JobsService
from rayapp.core.disk_space import DiskSpace
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.runtime import Clock, Runtime
from rayapp.core.settings.model import ConsistencySettings, RetentionSettings, Settings
from rayapp.datagov.service import DatagovPreload
from rayapp.index.consistency.service import REPORT, ConsistencyService, count_drift
from rayapp.learning.leader import ONCE, PeriodicTask
from rayapp.memory.ports import EventStore
from rayapp.memory.scope import ReadScope
from rayapp.portability.backup import BackupService
from rayapp.portability.encryption import BackupKeys
from rayapp.portability.sealing import KeysWritten
from rayapp.storage.backup_files import open_backups
from rayapp.storage.mongo.backup import MongoBackups

log = logging.getLogger("rayapp.maintenance")
# The first sweep after a start, seconds: late enough that a start is over, soon enough that what a
# crash left is found while somebody still looks.
FIRST_SWEEP_S = 300.0
# Pause between two looks for jobs that lost their driver, seconds: a driver's lease is as long.
RESUME_S = 15.0
# Pause between two looks for collections whose rollback window has ended, seconds.
CLEANUP_S = 600.0
# Pause between two looks for reports of sweeps that were jobs, seconds; how old an unseen one may
# be (another owner has counted older ones); and how many are looked at.
REPORTS_S = 60.0
REPORT_FRESH_S = 300.0
REPORTS = 20
# After the service started, before the catalogue is asked for, seconds: searches come first.
PRELOAD_FIRST_S = 5.0
# The first look at backups after a start, and between two, seconds: the age of the newest decides.
FIRST_BACKUP_S, BACKUP_LOOK_S = 60.0, 600.0
# Between two looks whether an erasure took the key of a user, seconds.
USER_KEYS_S = 30.0
# The first look for what is past its age, seconds after a start: later than what is urgent.
FIRST_RETENTION_S = 600.0
# Between two looks at what the day held, and before the first one, seconds: each counts all rows.
DAILY_S, FIRST_DAILY_S = 3_600.0, 120.0
HOUR_S = 3_600.0


def sweep_task(consistency: ConsistencyService, settings: ConsistencySettings) -> PeriodicTask:
    """A sampled sweep, again and again, so that the whole space is looked at over time."""

    async def sweep() -> bool:
        report = await consistency.check(sample=settings.sample, repair=settings.repair)
        if report.found:
            found = ", ".join(f"{number} {kind.value}" for kind, number in report.found.items())
            done = "repaired" if settings.repair else "not repaired"
            log.warning("%d points looked at: %s, %s", report.checked, found, done)
        if report.unreadable:
            log.warning("%d points have rows that cannot be read: left alone", report.unreadable)
        return True

    first_s = min(FIRST_SWEEP_S, settings.interval_s / 3)
    return PeriodicTask(name="sweep", every_s=settings.interval_s, first_s=first_s, run=sweep)


def drift_task(events: EventStore, runtime: Runtime) -> PeriodicTask:
    """Counts what sweeps found that were jobs: nobody scrapes the processes of a job."""
    seen: set[str] | None = None

    async def count() -> bool:
        nonlocal seen
        newest = await events.recent(ReadScope(SYSTEM_USER), REPORT, REPORTS)
        oldest_at = runtime.clock.now() - timedelta(seconds=REPORT_FRESH_S)
        for event in newest if seen is not None else ():
            new = event.event_id not in (seen or ()) and event.at > oldest_at
            if new and event.data["owner"] == CONSISTENCY:
                count_drift(runtime.metrics, event.data["found"])
        # What was there before the first look was counted by the owner before this one.
        seen = {event.event_id for event in newest}
        return True

    return PeriodicTask(name="drift of jobs", every_s=REPORTS_S, first_s=0.0, run=count)


def resume_task(jobs: JobsService) -> PeriodicTask:
    """A new driver for every job that lost its own."""
    return PeriodicTask(
        name="resume jobs", every_s=RESUME_S, first_s=RESUME_S, run=jobs.resume_lost
    )


def cleanup_task(drop_expired: Callable[[], Awaitable[object]]) -> PeriodicTask:
    """Delete collections that a reindex replaced, once nobody can go back to them."""
    return PeriodicTask(
        name="old collections", every_s=CLEANUP_S, first_s=CLEANUP_S, run=drop_expired
    )


def preload_task(preload: DatagovPreload) -> PeriodicTask:
    """Ask for the open-data catalogue once after a start."""
    return PeriodicTask(name="preload", every_s=ONCE, first_s=PRELOAD_FIRST_S, run=preload.run)


def daily_task(report: StorageReport) -> PeriodicTask:
    """The row of the day, kept anew until the day is over."""
    return PeriodicTask(
        name="daily metrics", every_s=DAILY_S, first_s=FIRST_DAILY_S, run=report.roll_up
    )


def retention_tasks(retention: RetentionService, settings: RetentionSettings) -> list[PeriodicTask]:
    """What is past its age goes, if anything is limited; the rest of a long run soon after."""
    if not settings.days:
        return []

    async def run() -> bool:
        done = await retention.run()
        if gone := sum(done.removed.values()):
            log.info("retention: %d rows removed, complete=%s", gone, done.complete)
        return done.complete

    every_s = settings.every_h * HOUR_S
    first_s = min(FIRST_RETENTION_S, every_s)
    return [PeriodicTask(name="retention", every_s=every_s, first_s=first_s, run=run)]


@asynccontextmanager
async def _opened_backups(settings: Settings, clock: Clock) -> AsyncIterator[BackupService]:
    backup = settings.backup
    files = open_backups(backup.place_in(settings.data.dir))
    keys = BackupKeys(backup.recipient, backup.key_file)
    key_place = open_backups(backup.user_keys) if backup.user_keys else None
    database = MongoBackups(settings.mongo)
    try:
        yield BackupService(database, files, clock, keys, key_place)
    finally:
        await database.close()


def backup_tasks(settings: Settings, clock: Clock, disk: DiskSpace) -> list[PeriodicTask]:
    """A backup of the whole store, if any are wanted; an owner that is new looks for the newest
    one first. A disk that is nearly full takes none, but one that goes elsewhere is wanted most
    then."""
    every_s = settings.backup.every_h * HOUR_S
    beside_data = "://" not in settings.backup.url and settings.backup.dir is None

    async def run() -> bool:
        if disk.tight and beside_data:
            log.warning("no backup is made: the disk of the data is nearly full")
            return False
        async with _opened_backups(settings, clock) as service:
            kept = await asyncio.to_thread(service.kept)
            due_at = kept[0].at + timedelta(seconds=every_s) if kept else clock.now()
            if due_at <= clock.now():
                made, _ = await service.create()
                gone = await asyncio.to_thread(service.cleanup, settings.backup.keep)
                log.info("backup %s, %d bytes; %d removed", made.name, made.bytes, len(gone))
            return True

    look_s = min(every_s, BACKUP_LOOK_S)
    if not every_s:
        return []
    return [PeriodicTask(name="backup", every_s=look_s, first_s=FIRST_BACKUP_S, run=run)]


def user_keys_tasks(settings: Settings, clock: Clock) -> list[PeriodicTask]:
    """The file with the keys of users follows erasures, if backups are sealed."""
    written: KeysWritten | None = None

    async def run() -> bool:
        nonlocal written
        async with _opened_backups(settings, clock) as service:
            written = await service.user_keys.write(written)
        return True

    if not settings.backup.user_keys:
        return []
    return [PeriodicTask(name="user keys", every_s=USER_KEYS_S, first_s=0.0, run=run)]
