"""The driver of a bulk job on fakes: what it resumes, what it repeats, how it ends."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rayapp.bulk.model import DesiredState, Job, JobState, PartitionState, Plan
from rayapp.bulk.rules import (
    EXIT_BAD_ARGUMENTS,
    EXIT_DEPENDENCY,
    EXIT_DONE,
    EXIT_INCOMPLETE,
    JobResult,
)
from rayapp.core.errors import (
    ConfigError,
    Conflict,
    DeadlineExceeded,
    DependencyDown,
    IndexDown,
    InvalidInput,
    NotFound,
    Overloaded,
    RayappError,
    StoreDown,
)
from tests.support.clock import FakeClock
from tests.support.examples import examples
from tests.support.stores.jobs import InMemoryJobStore
from tests.support.stores.stores import InMemoryLeaseStore
from tests.unit.bulk.fake_workers import CLOCK, CountingWork, World, no_sleep
from tests.unit.bulk.job_rig import KIND, Rig, everything


async def test_a_job_is_planned_worked_on_and_finished() -> None:
    rig = Rig()
    seen: list[Job] = []
    result = await rig.driver().run(rig.request(), seen.append)
    assert result.exit_code == EXIT_DONE
    assert result.job.state is JobState.COMPLETED
    assert (result.job.done, result.job.total, result.job.failed) == (8, 8, 0)
    assert result.job.counts == {"seen": 8}
    assert result.job.report == {"total": 8, "complete": True}
    assert sorted(rig.world.worked) == everything(rig.world)
    assert (rig.world.plans, rig.world.finished) == (1, 1)
    assert seen[-1].done == 8
    assert rig.workers[0].closed
    assert rig.world.closed == 1
    assert await rig.leases.current(f"job:{KIND}") is None


async def test_a_finished_job_is_not_resumed_but_done_anew() -> None:
    rig = Rig()
    first, second = await rig.run(), await rig.run()
    assert first.job.job_id != second.job.job_id
    assert rig.world.worked.count((0, 0)) == 2


@pytest.mark.parametrize(("complete", "failed"), [(False, 0), (True, 1)])
async def test_failed_records_or_an_incomplete_finish_end_with_3(
    complete: bool, failed: int
) -> None:
    result = await Rig(World(complete=complete, failed_each=failed)).run()
    assert result.exit_code == EXIT_INCOMPLETE
    assert result.job.state is JobState.COMPLETED
    assert result.job.report is not None
    assert result.job.report["complete"] is complete


async def test_a_preview_writes_nothing() -> None:
    rig = Rig()
    plan = await rig.driver().preview(rig.request())
    assert plan.total == 8
    assert await rig.jobs.recent(None, 10) == []
    assert rig.world.begun == 0
    assert await rig.leases.current(f"job:{KIND}") is None


@hypothesis_settings(max_examples=examples(120), deadline=None)
@given(
    sizes=st.lists(st.integers(0, 7), min_size=1, max_size=4),
    driver_kills=st.sets(st.integers(1, 40), max_size=4),
    worker_kills=st.sets(st.integers(1, 40), max_size=4),
    concurrency=st.integers(1, 3),
)
def test_killed_anywhere_and_resumed_it_works_on_every_record_and_counts_it_once(
    sizes: list[int], driver_kills: set[int], worker_kills: set[int], concurrency: int
) -> None:
    world = World(sizes=sizes, kill_driver_at=driver_kills, kill_worker_at=worker_kills)
    rig = Rig(world)

    async def through() -> JobResult:
        for n in range(len(driver_kills) + 1):
            before = {row.index for row in await rows() if row.state is PartitionState.DONE}
            result = await rig.run_until_killed(f"driver-{n}")
            assert not before & set(rig.workers[-1].calls), "a finished partition was redone"
            if result is not None:
                return result
        raise AssertionError("more deaths than kills")

    async def rows() -> list[Any]:
        jobs = await rig.jobs.recent(KIND, 10)
        return await rig.jobs.partitions(jobs[0].job_id) if jobs else []

    result = asyncio.run(through())
    assert result.exit_code == EXIT_DONE
    assert set(world.worked) == set(everything(world))
    # A step may be repeated, a checkpoint never.
    assert result.job.done == result.job.total == sum(sizes)
    assert result.job.counts.get("seen", 0) == sum(sizes)
    deaths = len(driver_kills) + len(worker_kills)
    assert len(world.worked) - sum(sizes) <= deaths * world.batch * concurrency
    assert len(asyncio.run(rig.jobs.recent(KIND, 10))) == 1


async def test_a_killed_driver_is_followed_by_one_that_waits_for_its_lease() -> None:
    rig = Rig(World(kill_driver_at={3}))
    assert await rig.run_until_killed("first") is None
    died_at = rig.clock.monotonic()
    result = await rig.driver("second").run(rig.request())
    assert result.exit_code == EXIT_DONE
    assert result.job.attempts == 2
    assert 0 < rig.clock.monotonic() - died_at <= rig.settings.lease_s + 1


async def test_a_second_driver_is_refused_while_the_first_renews() -> None:
    rig = Rig()
    await rig.jobs.create(Job(job_id="x", kind=KIND, params={}, created_at=rig.clock.now()))
    await rig.leases.acquire(f"job:{KIND}", "other", 15)
    await rig.jobs.take("x", 1, submission_id=None)

    async def renew() -> None:
        while True:
            await asyncio.sleep(0)
            await rig.leases.acquire(f"job:{KIND}", "other", 15)

    renewing = asyncio.create_task(renew())
    with pytest.raises(Conflict) as caught:
        await rig.driver().run(rig.request())
    renewing.cancel()
    assert caught.value.code == "busy"
    assert "x" in caught.value.message
    assert caught.value.details["job_id"] == "x"


async def test_a_driver_that_lost_its_lease_stops_and_sees_its_job_through() -> None:
    rig = Rig(World(sizes=[400], batch=1))

    class Stolen(InMemoryLeaseStore):
        calls = 0

        async def acquire(self, name: str, holder: str, ttl_s: float) -> Any:
            self.calls += 1
            return None if self.calls == 3 else await super().acquire(name, holder, ttl_s)

    rig.leases = Stolen(rig.clock)
    result = await rig.run()
    assert (result.exit_code, result.job.done) == (EXIT_DONE, 400)
    assert rig.workers[0].closed
    assert rig.leases.calls > 2
    assert len(await rig.jobs.recent(KIND, 5)) == 1
    assert len(rig.world.worked) <= 401  # at most the step in progress was repeated


async def test_a_driver_without_the_store_for_a_whole_lease_ends_with_4() -> None:
    rig = Rig(World(sizes=[4_000], batch=1))

    class Away(InMemoryLeaseStore):
        calls = 0

        async def acquire(self, name: str, holder: str, ttl_s: float) -> Any:
            self.calls += 1
            if self.calls > 1:
                raise StoreDown("MongoDB is away: start it.")
            return await super().acquire(name, holder, ttl_s)

    rig.leases = Away(rig.clock)
    result = await rig.run()
    assert result.exit_code == EXIT_DEPENDENCY
    assert rig.leases.calls > 2


async def test_a_fenced_out_driver_writes_nothing_more() -> None:
    rig = Rig(World(sizes=[40], batch=1))
    runner, seen, stopped = rig.driver(), asyncio.Event(), asyncio.Event()
    rig.workers[0].when_closed = stopped.set
    task = asyncio.create_task(runner.run(rig.request(), lambda job: seen.set()))
    await seen.wait()
    (job,) = await rig.jobs.recent(KIND, 1)
    # Another driver, which took the lease when it had run out.
    rig.clock.advance(rig.settings.lease_s)
    other = await rig.leases.acquire(f"job:{KIND}", "other", 1e6)
    assert other is not None
    await rig.jobs.take(job.job_id, other.fence, submission_id=None)
    done = (await rig.jobs.partitions(job.job_id))[0].done
    await stopped.wait()
    assert (await rig.jobs.partitions(job.job_id))[0].done == done
    ended = await rig.jobs.end(
        job.job_id, other.fence, JobState.FAILED, error="Its disk is full.", exit_code=4
    )
    result = await task
    assert (result.job, result.exit_code) == (ended, 4)
    assert result.sentence == "Its disk is full."


@pytest.mark.parametrize(
    "error",
    [ConfigError("No such folder."), InvalidInput("No."), NotFound("Nothing."), Conflict("x")],
)
@pytest.mark.parametrize("where", ["open", "plan"])
async def test_arguments_that_cannot_be_met_end_with_2_and_the_job_is_not_taken_again(
    error: RayappError, where: str
) -> None:
    rig = Rig()
    runner = rig.driver()

    class Refusing(CountingWork):
        async def plan(self) -> Plan:
            raise error

    async def open_work(_params: Mapping[str, Any]) -> CountingWork:
        if where == "open":
            raise error
        return Refusing(rig.world)

    runner.open_work = open_work
    result = await runner.run(rig.request())
    assert (result.exit_code, result.sentence) == (EXIT_BAD_ARGUMENTS, error.message)
    assert (result.job.state, result.job.error) == (JobState.FAILED, error.message)
    again = await rig.run(job_id=result.job.job_id)
    assert (again.exit_code, again.sentence) == (result.exit_code, result.sentence)
    assert again.job.attempts == 1
    assert (await rig.run()).job.job_id != result.job.job_id


async def test_a_refusal_after_the_plan_is_a_failure() -> None:
    rig = Rig(World(errors=[InvalidInput("A record is bad.")]))
    assert (await rig.run()).exit_code == EXIT_INCOMPLETE


@pytest.mark.parametrize(
    "error", [Overloaded("Full."), DeadlineExceeded("Late."), StoreDown("MongoDB is away.")]
)
@pytest.mark.parametrize("call", ["progress", "stage", "partitions", "planned"])
async def test_a_store_that_fails_for_a_moment_ends_no_job(error: RayappError, call: str) -> None:
    rig = Rig(World(sizes=[40], batch=1))
    real, count = getattr(rig.jobs, call), 0

    async def shaky(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count % 2:
            raise error
        return await real(*args, **kwargs)

    setattr(rig.jobs, call, shaky)
    assert (await rig.run()).exit_code == EXIT_DONE


async def test_a_renewal_that_is_refused_for_a_moment_keeps_the_lease() -> None:
    rig = Rig(World(sizes=[400], batch=1))
    acquire, count = rig.leases.acquire, 0

    async def shaky(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count % 2 == 0:
            raise Overloaded("Full.")
        return await acquire(*args)

    rig.leases.acquire = shaky  # type: ignore[method-assign]
    assert (await rig.run()).exit_code == EXIT_DONE
    assert count > 1


async def test_stop_during_the_plan_or_the_finish_leaves_it_to_the_next_driver() -> None:
    rig = Rig()
    runner = rig.driver()
    runner.stop()
    assert (await runner.run(rig.request())).job.state is JobState.SUBMITTED
    assert rig.world.worked == []
    assert (await rig.run()).exit_code == EXIT_DONE


@pytest.mark.parametrize("error", [IndexDown("The index is away."), StoreDown("MongoDB is away.")])
async def test_a_dependency_that_comes_back_within_seconds_is_waited_for(
    error: DependencyDown,
) -> None:
    rig = Rig(World(errors=[error, error]))
    result = await rig.run()
    assert result.exit_code == EXIT_DONE
    assert sorted(rig.world.worked) == everything(rig.world)


async def test_a_dependency_that_stays_away_fails_the_job_with_4_and_it_is_resumed() -> None:
    rig = Rig(World(sizes=[4], batch=1, errors=[]))
    rig.world.errors = [IndexDown("The index is away: start it.") for _ in range(6)]
    result = await rig.run()
    assert result.exit_code == EXIT_DEPENDENCY
    assert result.job.state is JobState.FAILED
    assert result.job.error == "The index is away: start it."
    again = await rig.run()
    assert again.exit_code == EXIT_DONE
    assert again.job.job_id == result.job.job_id
    assert (again.job.error, again.job.attempts) == (None, 1)


async def test_a_bug_fails_the_job_with_one_sentence() -> None:
    rig = Rig(World(errors=[ValueError("first line\nsecond line")]))
    result = await rig.run()
    assert result.exit_code == EXIT_INCOMPLETE
    assert result.job.state is JobState.FAILED
    assert result.job.error is not None
    assert "ValueError: first line" in result.job.error
    assert "\n" not in result.job.error


@pytest.mark.parametrize(("after_s", "resumed"), [(3_600, True), (2 * 86_400, False)])
async def test_a_failed_job_is_resumed_within_a_day(after_s: float, resumed: bool) -> None:
    rig = Rig(World(errors=[ValueError("x")]))
    failed = await rig.run()
    rig.clock.advance(after_s)
    again = await rig.run()
    assert (again.job.job_id == failed.job.job_id) is resumed
    assert sorted(set(rig.world.worked)) == everything(rig.world)


async def test_only_the_last_job_with_equal_params_is_resumed() -> None:
    rig = Rig(World(sizes=[4], batch=1, kill_driver_at={3}))
    assert await rig.run_until_killed("first") is None
    fresh = await rig.run(resume=False)
    assert fresh.job.attempts == 1
    # The one that was cut short is out of date now: the next run does not go back to it.
    again = await rig.run()
    assert again.job.job_id not in {fresh.job.job_id, "job-0001"}
    other = await rig.run(params={"a": 2})
    assert other.job.job_id != again.job.job_id


async def test_a_partition_whose_worker_always_dies_fails_the_job() -> None:
    rig = Rig(World(sizes=[10], batch=1, kill_worker_at=set(range(4, 1_000))))
    result = await rig.run()
    assert result.exit_code == EXIT_INCOMPLETE
    assert result.job.error is not None
    assert f"{rig.settings.attempts} times" in result.job.error
    assert len(rig.workers[0].calls) == rig.settings.attempts


async def test_workers_that_die_now_and_then_do_not_fail_a_job_that_moves_on() -> None:
    kills = set(range(3, 200, 4))  # three moments of life are two steps and their checkpoints
    rig = Rig(World(sizes=[40], batch=1, kill_worker_at=kills))
    result = await rig.run()
    assert result.exit_code == EXIT_DONE
    assert result.job.done == 40
    assert len(rig.workers[0].calls) > rig.settings.attempts


async def test_the_named_job_runs_with_its_own_params() -> None:
    rig = Rig()
    stored = Job(job_id="api", kind=KIND, params={"a": 9}, created_at=rig.clock.now())
    await rig.jobs.create(stored)
    result = await rig.run(job_id="api", submission_id="ray-1")
    assert result.job.params == {"a": 9}
    assert result.job.submission_id == "ray-1"
    worked = list(rig.world.worked)
    again = await rig.run(job_id="api")
    assert (again.exit_code, again.sentence) == (EXIT_DONE, result.sentence)
    assert rig.world.worked == worked
    with pytest.raises(NotFound):
        await rig.run(job_id="nobody")
    await rig.jobs.create(replace(stored, job_id="else", kind="reindex"))
    with pytest.raises(InvalidInput):
        await rig.run(job_id="else")


async def test_a_lost_answer_of_a_checkpoint_is_counted_once() -> None:
    class Forgetful(InMemoryJobStore):
        lost = 0

        async def checkpoint(self, *args: Any) -> DesiredState:
            wish = await super().checkpoint(*args)
            self.lost += 1
            if self.lost % 2:
                raise StoreDown("The answer was lost.")
            return wish

    clock = FakeClock()
    rig = Rig(World(sizes=[9, 4]), jobs=Forgetful(clock))
    result = await rig.run()
    assert result.exit_code == EXIT_DONE
    assert result.job.done == 13
    assert len(rig.world.worked) == 13


async def test_a_rate_holds_over_all_records() -> None:
    from rayapp.bulk.lease import JobRate

    clock = FakeClock()

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    async def never() -> bool:
        return False

    rate = JobRate(10.0, clock, sleep)
    for _ in range(5):
        await rate.spend(20, never)
    assert clock.monotonic() == pytest.approx(9.0)  # 100 records, of which 10 at once


async def test_a_worker_that_waits_for_its_rate_stops_when_asked() -> None:
    from rayapp.bulk.lease import JobRate

    async def asked() -> bool:
        return True

    await JobRate(0.001, CLOCK, no_sleep).spend(1_000, asked)
