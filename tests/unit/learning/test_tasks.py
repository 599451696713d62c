"""When the duties of the owner are due, and that one that fails stops no other."""

from typing import Any

import pytest

from rayapp.bulk.model import DesiredState, JobState, Partition, Plan
from rayapp.bulk.params import DATAGOV
from rayapp.bulk.service import JobsService
from rayapp.container import bootstrap, leader_tasks
from rayapp.container.leader_tasks import (
    RESUME_S,
    backup_tasks,
    cleanup_task,
    preload_task,
    sweep_task,
)
from rayapp.core.disk_space import DiskLimits, DiskSpace
from rayapp.core.errors import IndexDown, JobsDown, RayappError
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.datagov.service import DatagovPreload
from rayapp.index.consistency.rules import Drift
from rayapp.learning.leader import ONCE, RETRY_S, PeriodicTask, PeriodicTasks
from rayapp.learning.rules.promotion import OWNER_LEASE
from tests.support.clock import FakeClock
from tests.support.harness import Harness
from tests.support.jobs import FakeLauncher, FixedConsistency
from tests.support.stores.jobs import InMemoryJobStore
from tests.support.stores.stores import InMemoryLeaseStore


class Work:
    """What a duty runs: counts, and answers or raises what a test says."""

    def __init__(self) -> None:
        self.runs = 0
        self.done = True
        self.error: Exception | None = None

    async def run(self) -> bool:
        self.runs += 1
        if self.error is not None:
            raise self.error
        return self.done

    def duty(self, name: str, *, every_s: float, first_s: float) -> PeriodicTask:
        return PeriodicTask(name=name, every_s=every_s, first_s=first_s, run=self.run)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def runs(tasks: PeriodicTasks, clock: FakeClock, work: Work, seconds: float) -> int:
    before = work.runs
    clock.advance(seconds)
    await tasks.run_due()
    return work.runs - before


async def test_a_duty_waits_for_its_first_time_and_comes_again(clock: FakeClock) -> None:
    work = Work()
    tasks = PeriodicTasks([work.duty("one", every_s=100, first_s=30)], clock)
    seen = [await runs(tasks, clock, work, seconds) for seconds in (0, 29, 1, 99, 1, 99, 1)]
    assert seen == [0, 0, 1, 0, 1, 0, 1]


async def test_a_duty_that_comes_once_is_not_repeated(clock: FakeClock) -> None:
    work = Work()
    tasks = PeriodicTasks([work.duty("one", every_s=ONCE, first_s=0)], clock)
    assert [await runs(tasks, clock, work, s) for s in (0, 1e9)] == [1, 0]


@pytest.mark.parametrize("error", [IndexDown("away"), ValueError("a bug"), None])
async def test_a_duty_that_was_not_done_is_tried_again_soon(
    clock: FakeClock, error: Exception | None
) -> None:
    bad, good = Work(), Work()
    bad.error, bad.done = error, False
    tasks = PeriodicTasks(
        [bad.duty("bad", every_s=ONCE, first_s=0), good.duty("good", every_s=900, first_s=0)], clock
    )
    assert await runs(tasks, clock, bad, 0) == 1
    assert good.runs == 1
    bad.error, bad.done = None, True
    assert await runs(tasks, clock, bad, RETRY_S - 1) == 0
    assert await runs(tasks, clock, bad, 1) == 1
    assert await runs(tasks, clock, bad, 1e9) == 0


async def test_a_frequent_duty_that_failed_keeps_its_own_pause(clock: FakeClock) -> None:
    work = Work()
    work.error = IndexDown("away")
    tasks = PeriodicTasks([work.duty("one", every_s=10, first_s=0)], clock)
    assert [await runs(tasks, clock, work, s) for s in (0, 10, 10)] == [1, 1, 1]


async def test_who_becomes_the_owner_again_begins_anew(clock: FakeClock) -> None:
    work = Work()
    tasks = PeriodicTasks([work.duty("one", every_s=100, first_s=30)], clock)
    await tasks.run_due()
    clock.advance(29)
    tasks.forget()
    assert [await runs(tasks, clock, work, s) for s in (1, 29, 1)] == [0, 0, 1]


# --- the duties themselves


def settings(**groups: Any) -> Settings:
    return load_settings(env={}, overrides=groups)


@pytest.mark.parametrize(("interval_s", "first_s"), [(900, 300), (3_600, 300), (60, 20)])
async def test_sweeps_begin_soon_and_follow_the_settings(interval_s: float, first_s: float) -> None:
    wanted = settings(consistency={"interval_s": interval_s, "sample": 77, "repair": False})
    consistency = FixedConsistency()
    duty = sweep_task(consistency, wanted.consistency)
    assert (duty.every_s, duty.first_s) == (interval_s, first_s)
    assert await duty.run()
    assert consistency.asked == [(77, False)]


async def test_old_collections_are_dropped_now_and_then() -> None:
    dropped: list[str] = []

    async def drop_expired() -> list[str]:
        dropped.append("old")
        return dropped

    assert await cleanup_task(drop_expired).run()
    assert dropped == ["old"]


async def test_only_the_owner_sweeps_and_what_it_finds_is_healed() -> None:
    h = await Harness.open(consistency={"interval_s": 60, "grace_s": 0})
    await h.store("התקציב אושר", memory_id="m-1")
    await h.drain()
    points, _ = await h.index.scroll(after=None, limit=9)
    await h.index.delete([points[0].point_id])
    assert await h.leases.acquire(OWNER_LEASE, "another process", 30)
    for _ in range(2):
        assert not await h.maintenance.act()
        h.clock.advance(21)
    for _ in range(2):
        assert await h.maintenance.act()
        assert (await h.items.backlog()).pending == 0  # the first one waits a third of the interval
        h.clock.advance(10)
    assert await h.maintenance.act()
    assert (await h.items.backlog()).pending == 1
    assert h.metrics.counters["drift", (("kind", Drift.MISSING.value),)] == 1
    await h.drain()
    assert await h.index.retrieve([points[0].point_id])


async def test_the_owner_starts_a_new_driver_for_a_lost_job() -> None:
    h = await Harness.open()
    job = await h.services.jobs.submit("deferred", {}, requested_by="dana")
    assert len(h.launcher.launched) == 1
    await h.maintenance.act()
    h.clock.advance(RESUME_S)
    await h.maintenance.act()
    assert len(h.launcher.launched) == 1  # its driver may still be on its way
    h.clock.advance(300)
    await h.maintenance.act()
    assert [one.job_id for one in h.launcher.launched] == [job.job_id, job.job_id]


# --- preload


class Catalogue:
    """The jobs of a process whose settings ask for the catalogue."""

    def __init__(self, clock: FakeClock, **datagov: Any) -> None:
        wanted = settings(datagov={"preload": True, **datagov})
        self.store, self.launcher = InMemoryJobStore(clock), FakeLauncher()
        self.clock = clock
        runtime = bootstrap.runtime_of(wanted, InMemoryMetrics(), clock)
        leases = InMemoryLeaseStore(clock)
        self.jobs = JobsService(self.store, leases, self.launcher, runtime=runtime)
        self.duty = preload_task(DatagovPreload(self.jobs, wanted.datagov))

    async def asked(self) -> list[dict[str, Any]]:
        """The parameters of the jobs that one run of the duty started."""
        before = len(self.launcher.launched)
        assert await self.duty.run()
        return [dict(job.params) for job in self.launcher.launched[before:]]

    async def end(self, state: JobState, **facts: Any) -> None:
        job = self.launcher.launched[-1]
        await self.store.take(job.job_id, 1, submission_id=None)
        plan = Plan(partitions=[Partition(index=0, payload={})], total=1, facts=facts)
        await self.store.planned(job.job_id, 1, plan)
        await self.store.end(job.job_id, 1, state)
        self.clock.advance(1)


async def ended(clock: FakeClock, state: JobState) -> Catalogue:
    """With an ingest that was asked for, planned and left in this state."""
    catalogue = Catalogue(clock)
    await catalogue.asked()
    await catalogue.end(state, source="ckan")
    return catalogue


async def test_preload_is_off_by_default(clock: FakeClock) -> None:
    assert not settings().datagov.preload
    assert await Catalogue(clock, preload=False).asked() == []


async def test_preload_asks_for_its_source(clock: FakeClock) -> None:
    catalogue = Catalogue(clock)
    assert await catalogue.asked() == [{"source": "ckan"}]
    assert await catalogue.asked() == []  # it runs already
    [job] = await catalogue.store.recent(DATAGOV, 9)
    assert job.requested_by == "maintenance"


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.COMPLETED, JobState.CANCELLED])
async def test_every_start_asks_again_whatever_became_of_the_last_ingest(
    clock: FakeClock, state: JobState
) -> None:
    """It may have been incomplete, and the files or the texts may have changed since."""
    catalogue = await ended(clock, state)
    assert await catalogue.asked() == [{"source": "ckan"}]


async def test_one_owner_asks_once(clock: FakeClock) -> None:
    catalogue = Catalogue(clock)
    tasks = PeriodicTasks([catalogue.duty], clock)
    for _ in range(3):
        await tasks.run_due()
        clock.advance(catalogue.duty.first_s)
    await catalogue.end(JobState.COMPLETED, source="ckan")
    clock.advance(1e9)
    await tasks.run_due()
    assert len(catalogue.launcher.launched) == 1


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.SUBMITTED, JobState.RUNNING])
async def test_an_ingest_that_lost_its_driver_is_begun_anew(
    clock: FakeClock, state: JobState
) -> None:
    """It was paused with its driver, handed back by it, or left by one that was killed."""
    catalogue = await ended(clock, state)
    if state is JobState.RUNNING:
        assert await catalogue.asked() == []  # its driver may be alive
        clock.advance(300)
    assert await catalogue.asked() == [{"source": "ckan"}]
    new, old = await catalogue.store.recent(DATAGOV, 9)
    assert (new.state, old.state) == (JobState.SUBMITTED, JobState.CANCELLED)


async def test_an_ingest_that_people_paused_stays_and_is_asked_about_again(
    clock: FakeClock,
) -> None:
    catalogue = Catalogue(clock)
    await catalogue.asked()
    job = catalogue.launcher.launched[-1]
    await catalogue.store.take(job.job_id, 1, submission_id=None)
    await catalogue.store.set_desired_state(job.job_id, DesiredState.PAUSE)
    await catalogue.store.end(job.job_id, 1, JobState.PAUSED)
    assert not await catalogue.duty.run()
    assert (await catalogue.jobs.get(job.job_id)).state is JobState.PAUSED
    await catalogue.store.set_desired_state(job.job_id, DesiredState.CANCEL)
    assert await catalogue.asked() == [{"source": "ckan"}]


async def test_a_stopped_ingest_of_somebody_else_stays(clock: FakeClock) -> None:
    catalogue = Catalogue(clock)
    job = await catalogue.jobs.submit(DATAGOV, {}, requested_by="dana")
    await catalogue.end(JobState.PAUSED)
    assert not await catalogue.duty.run()
    assert (await catalogue.jobs.get(job.job_id)).state is JobState.PAUSED


async def test_a_folder_of_the_settings_is_loaded_and_no_path_is_sent(clock: FakeClock) -> None:
    assert await Catalogue(clock, source="/srv/catalogue").asked() == [{}]


async def test_a_cluster_that_takes_no_jobs_is_asked_again_later(clock: FakeClock) -> None:
    catalogue = Catalogue(clock)
    error: RayappError = JobsDown("away")
    catalogue.launcher.error = error
    with pytest.raises(JobsDown):
        await catalogue.duty.run()
    catalogue.launcher.error = None
    assert await catalogue.asked() == [{"source": "ckan"}]


@pytest.mark.parametrize(
    ("place", "made"),
    [({}, False), ({"dir": "/mnt/backups"}, True), ({"url": "s3://bucket/path"}, True)],
)
async def test_a_full_disk_keeps_back_only_backups_that_it_would_hold(
    place: dict[str, str], made: bool, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    class Opened(Exception):
        """The place of backups was asked for, so one would be made."""

    def opened(*_: object) -> None:
        raise Opened

    monkeypatch.setattr(leader_tasks, "_opened_backups", opened)
    settings = load_settings(env={}, overrides={"backup": {"every_h": 1, **place}})
    disk = DiskSpace("data", DiskLimits(warn_bytes=3, min_bytes=2), lambda: (1_000, 1))
    (task,) = backup_tasks(settings, clock, disk)
    if made:
        with pytest.raises(Opened):
            await task.run()
    else:
        assert await task.run() is False
