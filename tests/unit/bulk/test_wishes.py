"""What people ask of a running job: pause, cancel, and a driver that is told to stop."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rayapp.bulk.model import (
    DesiredState,
    Finish,
    Job,
    JobState,
    PartitionRow,
    PartitionState,
    Step,
)
from rayapp.bulk.rules import EXIT_DONE, EXIT_INCOMPLETE
from tests.support.clock import FakeClock
from tests.support.stores.jobs import InMemoryJobStore
from tests.unit.bulk.fake_workers import CountingWork, World
from tests.unit.bulk.job_rig import KIND, Rig


@pytest.mark.parametrize(
    ("wish", "state"),
    [(DesiredState.PAUSE, JobState.PAUSED), (DesiredState.CANCEL, JobState.CANCELLED)],
)
async def test_a_wish_stops_the_workers_after_their_step(
    wish: DesiredState, state: JobState
) -> None:
    rig = Rig(World(sizes=[400], batch=1))

    def ask(job: Job) -> None:
        asks.append(asyncio.create_task(rig.jobs.set_desired_state(job.job_id, wish)))

    asks: list[asyncio.Task[Job]] = []
    result = await rig.driver().run(rig.request(), lambda job: None if asks else ask(job))
    assert result.job.state is state
    assert result.exit_code == EXIT_INCOMPLETE
    assert 0 < result.job.done < 400
    assert rig.world.finished == 0
    again = await rig.run()
    assert again.exit_code == EXIT_DONE
    same = again.job.job_id == result.job.job_id
    assert same is (wish is DesiredState.PAUSE)
    assert len(rig.world.worked) == 400 if same else 400 + result.job.done


async def test_a_pause_that_is_taken_back_at_once_leaves_nothing_undone() -> None:
    class Wavering(InMemoryJobStore):
        """A pause is asked for at the first checkpoint, and taken back before the driver looks."""

        asked = False

        async def checkpoint(self, job_id: str, index: int, fence: int, step: Step) -> DesiredState:
            wish = await super().checkpoint(job_id, index, fence, step)
            if self.asked:
                return wish
            self.asked = True
            await self.set_desired_state(job_id, DesiredState.PAUSE)
            return DesiredState.PAUSE

        async def progress(self, job_id: str, fence: int) -> Job:
            if self.asked:
                await self.set_desired_state(job_id, DesiredState.RUN)
            return await super().progress(job_id, fence)

    rig = Rig(World(sizes=[4, 4, 4], batch=2), jobs=Wavering(FakeClock()))
    result = await rig.run(concurrency=1)
    assert result.job.state is JobState.COMPLETED
    assert result.job.done == 12
    rows = await rig.jobs.partitions(result.job.job_id)
    assert {row.state for row in rows} == {PartitionState.DONE}


async def test_partitions_of_one_step_stop_at_a_wish_too() -> None:
    rig = Rig(World(sizes=[2] * 9, batch=2))
    request = rig.request(concurrency=1)
    moment = rig.world.moment

    def asked() -> None:
        moment()
        if len(rig.world.worked) == 4:
            asks.append(
                asyncio.create_task(rig.jobs.set_desired_state(request.new_id, DesiredState.PAUSE))
            )

    asks: list[asyncio.Task[Any]] = []
    rig.world.moment = asked  # type: ignore[method-assign]
    result = await rig.driver().run(request)
    assert result.job.state is JobState.PAUSED
    assert 0 < result.job.done < 18


async def test_a_job_cancelled_before_its_driver_came_is_not_run() -> None:
    rig = Rig()
    await rig.jobs.create(Job(job_id="x", kind=KIND, params={}, created_at=rig.clock.now()))
    await rig.jobs.take("x", 0, submission_id=None)
    await rig.jobs.set_desired_state("x", DesiredState.CANCEL)
    result = await rig.run(job_id="x")
    assert result.job.state is JobState.CANCELLED
    assert rig.world.plans == 0


@pytest.mark.parametrize(
    ("pause", "state", "says"),
    [(True, JobState.PAUSED, "was paused"), (False, JobState.SUBMITTED, "service starts the next")],
)
async def test_stop_gives_the_lease_back_and_leaves_the_job_to_a_person_or_to_the_service(
    pause: bool, state: JobState, says: str
) -> None:
    rig = Rig(World(sizes=[400, 400], batch=1))
    runner = rig.driver()
    result = await runner.run(rig.request(), lambda job: runner.stop(pause=pause))
    assert result.exit_code == EXIT_INCOMPLETE
    assert result.job.state is state
    assert says in result.sentence
    assert 0 < len(rig.world.worked) < 800
    assert await rig.leases.current(f"job:{KIND}") is None
    again = await rig.run()
    assert again.exit_code == EXIT_DONE
    assert again.job.attempts == 1
    assert len(rig.world.worked) == 800


@pytest.mark.parametrize(
    ("wish", "state"),
    [(DesiredState.PAUSE, JobState.PAUSED), (DesiredState.CANCEL, JobState.CANCELLED)],
)
async def test_a_stop_does_what_people_asked_before(wish: DesiredState, state: JobState) -> None:
    rig = Rig()
    runner = rig.driver()
    asked = rig.request()

    async def open_work(_params: Mapping[str, Any]) -> CountingWork:
        await rig.jobs.set_desired_state(asked.new_id, wish)
        runner.stop()
        return CountingWork(rig.world)

    runner.open_work = open_work
    assert (await runner.run(asked)).job.state is state


class LongFinish(CountingWork):
    """Its finish ends only when it is cut short, and says so."""

    cut = False

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        try:
            await asyncio.Event().wait()
        finally:
            self.cut = True
        raise AssertionError


@pytest.mark.parametrize(
    ("wish", "state"),
    [(DesiredState.PAUSE, JobState.PAUSED), (DesiredState.CANCEL, JobState.CANCELLED)],
)
async def test_a_wish_cuts_the_finish_short(wish: DesiredState, state: JobState) -> None:
    rig = Rig()
    work, runner = LongFinish(rig.world), rig.driver()

    async def open_work(_params: Mapping[str, Any]) -> CountingWork:
        return work

    runner.open_work = open_work
    asks: list[asyncio.Task[Job]] = []

    def ask(job: Job) -> None:
        if job.stage == "finish" and not asks:
            asks.append(asyncio.create_task(rig.jobs.set_desired_state(job.job_id, wish)))

    result = await runner.run(rig.request(), ask)
    assert (result.job.state, result.job.report) == (state, None)
    assert work.cut
    again = await rig.run()
    assert again.exit_code == EXIT_DONE
    assert (again.job.job_id == result.job.job_id) is (wish is DesiredState.PAUSE)
