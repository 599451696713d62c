"""Jobs as operators see them: submit, wishes, and drivers that died."""

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from rayapp.bulk.model import DesiredState, Job, JobState, Plan, lease_of
from rayapp.bulk.params import CONSISTENCY, DEFERRED, PROMOTION, REINDEX
from rayapp.bulk.service import GIVE_UP_S, START_S, JobsService
from rayapp.container import bootstrap
from rayapp.core.errors import Conflict, InvalidInput, JobsDown, NotFound, RayappError, StoreDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from tests.support.clock import FakeClock
from tests.support.jobs import FakeLauncher
from tests.support.stores.jobs import InMemoryJobStore
from tests.support.stores.stores import InMemoryLeaseStore

LATE = START_S + 1


@dataclass
class Cluster:
    """The service and what stands behind it; `driver` plays the process that runs a job."""

    clock: FakeClock
    store: InMemoryJobStore
    leases: InMemoryLeaseStore
    launcher: FakeLauncher
    service: JobsService

    async def submit(self, kind: str = REINDEX, **params: Any) -> Job:
        return await self.service.submit(kind, params, requested_by="dana")

    async def driver(self, job: Job) -> Job:
        """A driver takes the job and holds the lease for a few seconds."""
        lease = await self.leases.acquire(lease_of(job.kind), str(uuid.uuid4()), 15.0)
        assert lease is not None
        return await self.store.take(job.job_id, lease.fence, submission_id="r")

    async def running(self) -> Job:
        return await self.driver(await self.submit())


@pytest.fixture
def cluster() -> Cluster:
    clock, launcher = FakeClock(), FakeLauncher()
    store, leases = InMemoryJobStore(clock), InMemoryLeaseStore(clock)
    runtime = bootstrap.runtime_of(load_settings("local", env={}), InMemoryMetrics(), clock)
    service = JobsService(store, leases, launcher, runtime=runtime)
    return Cluster(clock, store, leases, launcher, service)


class TestSubmit:
    async def test_a_job_is_stored_and_launched(self, cluster: Cluster) -> None:
        job = await cluster.submit(tier="documents", user_id=None)
        assert (job.state, job.params, job.requested_by) == (
            JobState.SUBMITTED,
            {"tier": "books"},
            "dana",
        )
        assert [one.job_id for one in cluster.launcher.launched] == [job.job_id]
        assert job.submission_id is not None
        assert await cluster.store.get(job.job_id) == job

    async def test_it_is_stored_before_it_is_launched(self, cluster: Cluster) -> None:
        seen: list[Job | None] = []

        async def launch(job: Job) -> str:
            seen.append(await cluster.store.get(job.job_id))
            return "r"

        cluster.launcher.launch = launch  # type: ignore[method-assign]
        await cluster.submit()
        assert seen[0] is not None

    @pytest.mark.parametrize(
        ("kind", "params"),
        [
            ("format_disk", {}),
            ("", {}),
            (REINDEX, {"tier": "cellar"}),
            (REINDEX, {"since": "yesterday"}),
            (REINDEX, {"since": 5}),
            (REINDEX, {"user_id": "a b"}),
            (REINDEX, {"user_id": "dana\n"}),
            (REINDEX, {"--rollback": True}),
            (REINDEX, {"rollback": True, "tier": "books"}),
            (CONSISTENCY, {"sample": 0}),
            (CONSISTENCY, {"sample": True}),
            (CONSISTENCY, {"sample": 100_001}),
            (CONSISTENCY, {"repair": 1}),
            (CONSISTENCY, {"full": True, "sample": 5}),
            (CONSISTENCY, {"quarantine": True}),
            ("datagov_ingest", {"source": "/etc/passwd"}),
            (PROMOTION, {"user_id": "dana"}),
        ],
    )
    async def test_what_a_kind_does_not_take_is_refused(
        self, cluster: Cluster, kind: str, params: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidInput) as refused:
            await cluster.service.submit(kind, params, requested_by="dana")
        assert refused.value.message.endswith(".")
        assert await cluster.store.recent(None, 10) == []
        assert cluster.launcher.launched == []

    async def test_two_ways_to_say_the_same_are_one(self, cluster: Cluster) -> None:
        first = await cluster.submit(since="2026-05-01T12:00:00+03:00", rollback=False)
        await cluster.service.set_desired_state(first.job_id, DesiredState.CANCEL)
        second = await cluster.submit(since="2026-05-01T09:00:00Z")
        assert first.params == second.params

    @pytest.mark.parametrize("state", [JobState.SUBMITTED, JobState.RUNNING, JobState.PAUSED])
    async def test_a_second_one_of_the_kind_is_busy(
        self, cluster: Cluster, state: JobState
    ) -> None:
        job = await cluster.submit()
        if state is not JobState.SUBMITTED:
            job = await cluster.driver(job)
        if state is JobState.PAUSED:
            await cluster.store.end(job.job_id, job.fence, state)
        with pytest.raises(Conflict) as refused:
            await cluster.submit()
        assert (refused.value.code, refused.value.details["job_id"]) == ("busy", job.job_id)
        assert (await cluster.submit(DEFERRED)).kind == DEFERRED

    @pytest.mark.parametrize(
        "state", [JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED], ids=str
    )
    async def test_after_its_end_another_one_may_run(
        self, cluster: Cluster, state: JobState
    ) -> None:
        job = await cluster.running()
        await cluster.store.end(job.job_id, job.fence, state)
        assert (await cluster.submit()).job_id != job.job_id

    @pytest.mark.parametrize("error", [JobsDown("No cluster."), InvalidInput("No such module.")])
    async def test_a_failed_launch_fails_the_job_with_its_reason(
        self, cluster: Cluster, error: RayappError
    ) -> None:
        cluster.launcher.error = error
        with pytest.raises(JobsDown, match=error.message):
            await cluster.submit()
        (job,) = await cluster.store.recent(None, 10)
        assert (job.state, job.error) == (JobState.FAILED, error.message)
        cluster.launcher.error = None
        await cluster.submit()

    async def test_a_driver_that_comes_after_its_launch_was_given_up_runs_nothing(
        self, cluster: Cluster
    ) -> None:
        cluster.launcher.error = JobsDown("No answer within 30 s.")
        with pytest.raises(JobsDown):
            await cluster.submit()
        (job,) = await cluster.store.recent(None, 10)
        with pytest.raises(Conflict) as refused:
            await cluster.driver(job)
        assert refused.value.code == "job_final"

    async def test_a_driver_that_came_before_its_launch_was_given_up_goes_on(
        self, cluster: Cluster
    ) -> None:
        async def late(job: Job) -> str:
            await cluster.driver(job)
            raise JobsDown("No answer within 30 s.")

        cluster.launcher.launch = late  # type: ignore[method-assign]
        assert (await cluster.submit()).state is JobState.RUNNING

    async def test_of_two_at_the_same_moment_the_later_one_steps_back(
        self, cluster: Cluster
    ) -> None:
        first = Job(job_id="0", kind=REINDEX, params={}, created_at=cluster.clock.now())
        found = cluster.store.unfinished

        async def meanwhile(kind: str) -> list[Job]:
            before = await found(kind)
            await cluster.store.create(first)
            return before

        cluster.store.unfinished = meanwhile  # type: ignore[method-assign]
        with pytest.raises(Conflict):
            await cluster.submit()
        states = {job.job_id: job.state for job in await cluster.store.recent(REINDEX, 10)}
        assert states.pop("0") is JobState.SUBMITTED
        assert list(states.values()) == [JobState.CANCELLED]
        assert cluster.launcher.launched == []


class TestReads:
    async def test_an_unknown_job_is_not_found(self, cluster: Cluster) -> None:
        for call in (cluster.service.get, cluster.service.partitions):
            with pytest.raises(NotFound):
                await call("nobody")
        with pytest.raises(NotFound):
            await cluster.service.set_desired_state("nobody", DesiredState.RUN)

    async def test_the_list_is_of_one_kind_or_of_all(self, cluster: Cluster) -> None:
        first = await cluster.submit()
        cluster.clock.advance(1)
        second = await cluster.submit(DEFERRED)
        everything = await cluster.service.recent(None, 10)
        assert [job.job_id for job in everything] == [second.job_id, first.job_id]
        assert [job.job_id for job in await cluster.service.recent(REINDEX, 10)] == [first.job_id]
        with pytest.raises(InvalidInput):
            await cluster.service.recent("format_disk", 10)


class TestWishes:
    async def test_pause_and_cancel_of_a_running_job_are_kept_for_its_driver(
        self, cluster: Cluster
    ) -> None:
        job = await cluster.running()
        paused = await cluster.service.set_desired_state(job.job_id, DesiredState.PAUSE)
        assert (paused.state, paused.wish) == (JobState.RUNNING, DesiredState.PAUSE)
        cancelled = await cluster.service.set_desired_state(job.job_id, DesiredState.CANCEL)
        assert (cancelled.state, cancelled.wish) == (JobState.RUNNING, DesiredState.CANCEL)

    async def test_going_on_while_its_driver_lives_takes_the_pause_back(
        self, cluster: Cluster
    ) -> None:
        job = await cluster.running()
        await cluster.service.set_desired_state(job.job_id, DesiredState.PAUSE)
        again = await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert again.wish is DesiredState.RUN
        assert len(cluster.launcher.launched) == 1

    async def test_a_paused_job_gets_a_new_driver(self, cluster: Cluster) -> None:
        job = await cluster.running()
        await cluster.store.end(job.job_id, job.fence, JobState.PAUSED)
        cluster.clock.advance(20)
        await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert [one.job_id for one in cluster.launcher.launched] == [job.job_id] * 2

    async def test_four_who_ask_at_once_start_one_driver(self, cluster: Cluster) -> None:
        job = await cluster.running()
        await cluster.store.end(job.job_id, job.fence, JobState.PAUSED)
        cluster.clock.advance(20)
        await asyncio.gather(
            *(cluster.service.set_desired_state(job.job_id, DesiredState.RUN) for _ in range(4))
        )
        again = await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert again.state is JobState.SUBMITTED
        assert len(cluster.launcher.launched) == 2

    async def test_a_paused_job_stays_so_when_no_driver_can_be_started(
        self, cluster: Cluster
    ) -> None:
        job = await cluster.running()
        await cluster.store.end(job.job_id, job.fence, JobState.PAUSED)
        cluster.clock.advance(20)
        cluster.launcher.error = JobsDown("No cluster.")
        with pytest.raises(JobsDown):
            await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert (await cluster.service.get(job.job_id)).state is JobState.PAUSED

    async def test_a_paused_job_does_not_go_on_beside_another_one(self, cluster: Cluster) -> None:
        job = await cluster.running()
        await cluster.store.end(job.job_id, job.fence, JobState.PAUSED)
        other = Job(job_id="other", kind=REINDEX, params={}, created_at=cluster.clock.now())
        await cluster.store.create(other)
        with pytest.raises(Conflict) as refused:
            await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert refused.value.code == "busy"
        assert len(cluster.launcher.launched) == 1

    async def test_a_job_that_lost_its_driver_gets_a_new_one(self, cluster: Cluster) -> None:
        job = await cluster.running()
        cluster.clock.advance(LATE)
        await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert len(cluster.launcher.launched) == 2

    async def test_a_driver_on_its_way_is_waited_for(self, cluster: Cluster) -> None:
        job = await cluster.submit()
        cluster.clock.advance(START_S / 2)
        await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert len(cluster.launcher.launched) == 1

    async def test_a_pause_before_a_driver_took_it_is_refused(self, cluster: Cluster) -> None:
        """Its driver would take the pause for one of the past."""
        job = await cluster.submit()
        with pytest.raises(Conflict) as refused:
            await cluster.service.set_desired_state(job.job_id, DesiredState.PAUSE)
        assert refused.value.code == "job_starting"
        assert (await cluster.service.get(job.job_id)).wish is DesiredState.RUN

    @pytest.mark.parametrize(
        ("wish", "state"),
        [(DesiredState.CANCEL, JobState.CANCELLED), (DesiredState.PAUSE, JobState.PAUSED)],
    )
    async def test_without_a_driver_it_rests_at_once(
        self, cluster: Cluster, wish: DesiredState, state: JobState
    ) -> None:
        job = await cluster.running()
        cluster.clock.advance(LATE)
        assert (await cluster.service.set_desired_state(job.job_id, wish)).state is state

    async def failed(self, cluster: Cluster) -> Job:
        job = await cluster.running()
        await cluster.store.planned(job.job_id, job.fence, Plan(partitions=(), total=1))
        return await cluster.store.end(job.job_id, job.fence, JobState.FAILED, error="Full.")

    async def test_a_failed_job_goes_on_from_its_checkpoints(self, cluster: Cluster) -> None:
        job = await self.failed(cluster)
        cluster.clock.advance(3_600)
        again = await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert (again.state, again.error) == (JobState.SUBMITTED, None)
        assert [one.job_id for one in cluster.launcher.launched] == [job.job_id] * 2
        with pytest.raises(Conflict):
            await cluster.submit()
        cluster.clock.advance(LATE)
        assert await cluster.service.resume_lost() == 1
        assert (await cluster.driver(again)).attempts == 1

    async def test_a_failed_job_stays_so_when_no_driver_can_be_started(
        self, cluster: Cluster
    ) -> None:
        job = await self.failed(cluster)
        cluster.launcher.error = JobsDown("No cluster.")
        with pytest.raises(JobsDown):
            await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        after = await cluster.service.get(job.job_id)
        assert (after.state, after.error) == (JobState.FAILED, "Full.")

    async def test_a_failed_job_does_not_go_on_beside_another_one(self, cluster: Cluster) -> None:
        job = await self.failed(cluster)
        await cluster.submit()
        with pytest.raises(Conflict) as refused:
            await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert refused.value.code == "busy"
        assert (await cluster.service.get(job.job_id)).state is JobState.FAILED

    @pytest.mark.parametrize("late", [False, True])
    async def test_a_failed_job_without_a_plan_or_of_long_ago_is_over(
        self, cluster: Cluster, late: bool
    ) -> None:
        if late:
            job = await self.failed(cluster)
            cluster.clock.advance(2 * 86_400)
        else:
            job = await cluster.running()
            await cluster.store.end(job.job_id, job.fence, JobState.FAILED)
        with pytest.raises(Conflict, match="start a new one") as refused:
            await cluster.service.set_desired_state(job.job_id, DesiredState.RUN)
        assert refused.value.code == "job_final"

    @pytest.mark.parametrize("wish", list(DesiredState))
    async def test_a_job_that_ended_can_be_asked_nothing(
        self, cluster: Cluster, wish: DesiredState
    ) -> None:
        job = await cluster.running()
        await cluster.store.end(job.job_id, job.fence, JobState.COMPLETED)
        with pytest.raises(Conflict) as refused:
            await cluster.service.set_desired_state(job.job_id, wish)
        assert refused.value.code == "job_final"


class TestLostDrivers:
    async def test_nothing_is_lost_while_a_driver_lives_or_starts(self, cluster: Cluster) -> None:
        await cluster.submit(DEFERRED)
        job = await cluster.running()
        cluster.clock.advance(5)
        assert await cluster.service.resume_lost() == 0
        cluster.clock.advance(LATE)
        await cluster.leases.acquire(lease_of(REINDEX), "its driver", 15.0)
        assert [one.kind for one in await cluster.service.orphaned()] == [DEFERRED]
        assert (await cluster.service.get(job.job_id)).state is JobState.RUNNING

    async def test_a_lost_job_gets_one_new_driver(self, cluster: Cluster) -> None:
        job = await cluster.running()
        cluster.clock.advance(LATE)
        assert await cluster.service.resume_lost() == 1
        assert await cluster.service.resume_lost() == 0
        assert [one.job_id for one in cluster.launcher.launched] == [job.job_id] * 2

    async def test_a_job_that_no_driver_took_gets_another_one(self, cluster: Cluster) -> None:
        await cluster.submit()
        cluster.clock.advance(LATE)
        assert await cluster.service.resume_lost() == 1

    async def test_a_job_that_no_driver_ever_takes_fails(self, cluster: Cluster) -> None:
        job = await cluster.submit()
        for _ in range(int(GIVE_UP_S / LATE) + 1):
            cluster.clock.advance(LATE)
            await cluster.service.resume_lost()
        ended = await cluster.service.get(job.job_id)
        assert ended.state is JobState.FAILED
        assert ended.error is not None

    async def test_after_its_last_driver_it_fails(self, cluster: Cluster) -> None:
        job = await cluster.submit()
        attempts = load_settings("local", env={}).jobs.attempts
        for number in range(1, attempts + 1):
            await cluster.driver(job)
            cluster.clock.advance(LATE)
            assert await cluster.service.resume_lost() == int(number < attempts)
        ended = await cluster.service.get(job.job_id)
        assert (ended.state, ended.attempts) == (JobState.FAILED, attempts)
        assert len(cluster.launcher.launched) == attempts

    @pytest.mark.parametrize(
        ("wish", "state"),
        [(DesiredState.CANCEL, JobState.CANCELLED), (DesiredState.PAUSE, JobState.PAUSED)],
    )
    async def test_what_was_to_rest_gets_no_driver(
        self, cluster: Cluster, wish: DesiredState, state: JobState
    ) -> None:
        job = await cluster.running()
        await cluster.service.set_desired_state(job.job_id, wish)
        cluster.clock.advance(LATE)
        assert await cluster.service.resume_lost() == 0
        assert (await cluster.service.get(job.job_id)).state is state
        assert len(cluster.launcher.launched) == 1

    async def test_a_job_that_was_handed_back_goes_on_however_often(self, cluster: Cluster) -> None:
        """A stack that goes down and comes back takes no job with it."""
        job = await cluster.submit()
        rounds = 2 * load_settings("local", env={}).jobs.attempts
        for _ in range(rounds):
            taken = await cluster.driver(job)
            await cluster.store.end(job.job_id, taken.fence, JobState.SUBMITTED)
            cluster.clock.advance(GIVE_UP_S)
            assert await cluster.service.resume_lost() == 1
        assert len(cluster.launcher.launched) == 1 + rounds

    async def test_a_paused_job_is_left_alone(self, cluster: Cluster) -> None:
        job = await cluster.running()
        await cluster.store.set_desired_state(job.job_id, DesiredState.PAUSE)
        await cluster.store.end(job.job_id, job.fence, JobState.PAUSED)
        cluster.clock.advance(LATE)
        assert await cluster.service.resume_lost() == 0

    async def test_one_that_was_told_to_go_on_while_its_driver_left_goes_on(
        self, cluster: Cluster
    ) -> None:
        job = await cluster.running()
        await cluster.store.set_desired_state(job.job_id, DesiredState.PAUSE)
        await cluster.store.set_desired_state(job.job_id, DesiredState.RUN)
        await cluster.store.end(job.job_id, job.fence, JobState.PAUSED)
        cluster.clock.advance(LATE)
        assert await cluster.service.resume_lost() == 1

    @pytest.mark.parametrize("error", [JobsDown("No cluster."), StoreDown("No primary.")])
    async def test_one_that_cannot_be_started_waits_and_stops_no_other(
        self, cluster: Cluster, error: RayappError
    ) -> None:
        job = await cluster.running()
        await cluster.driver(await cluster.submit(DEFERRED))
        cluster.clock.advance(LATE)
        launch, failing = cluster.launcher.launch, {REINDEX}

        async def flaky(one: Job) -> str:
            if one.kind in failing:
                raise error
            return await launch(one)

        cluster.launcher.launch = flaky  # type: ignore[method-assign]
        assert await cluster.service.resume_lost() == 1
        assert (await cluster.service.get(job.job_id)).state is JobState.RUNNING
        failing.clear()
        assert await cluster.service.resume_lost() == 1
