"""The client's calls about jobs and operations against the real API on a real socket."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette

from rayapp.api.app import create_api
from rayapp.bulk.model import Job, JobState, Step
from rayapp.client import JobView, MemoryClient, RetryPolicy
from rayapp.core.errors import Conflict, DeadlineExceeded, DependencyDown, JobsDown, NotFound
from tests.support.harness import Harness
from tests.support.jobs import FixedConsistency, a_job
from tests.unit.fake_service import FakeService, serving

FAST = RetryPolicy(attempts=2, base_s=0.001)


@dataclass
class RealService(FakeService):
    """The real application in the place of the small one."""

    sweeps: FixedConsistency = field(default_factory=FixedConsistency)
    world: Harness = field(init=False)

    def __post_init__(self) -> None:
        self.world = Harness.ready(consistency=self.sweeps)

    def app(self) -> Starlette:
        return create_api(self.world.services)


@pytest.fixture
def service() -> Iterator[RealService]:
    real = RealService()
    with serving(real):
        yield real


def launched(service: RealService) -> list[Job]:
    return service.world.launcher.launched


async def test_jobs_are_submitted_with_their_conditions(service: RealService) -> None:
    async with MemoryClient(service.url) as client:
        ids = [await client.ops.reindex(tier="books", user_id="dana")]
        await client.ops.cancel_job(ids[0])
        ids.append(await client.ops.reindex_rollback())
        ids.append(await client.ops.ingest_datagov("ckan"))
        ids.append(await client.ops.sweep(repair=False))
        with pytest.raises(Conflict) as refused:
            await client.ops.reindex()
    assert refused.value.code == "busy"
    assert [job.job_id for job in launched(service)] == ids
    assert [(job.kind, dict(job.params)) for job in launched(service)] == [
        ("reindex", {"tier": "books", "user_id": "dana"}),
        ("reindex", {"rollback": True}),
        ("datagov_ingest", {"source": "ckan"}),
        ("consistency_sweep", {"full": True}),
    ]


async def test_a_sampled_look_is_typed(service: RealService) -> None:
    async with MemoryClient(service.url) as client:
        found = await client.ops.consistency(sample=50, repair=False)
    assert service.sweeps.asked == [(50, False)]
    assert (found.total_checked, found.issues_found) == (0, 0)


async def test_jobs_are_listed_paused_and_resumed(service: RealService) -> None:
    await a_job(service.world.jobs, JobState.RUNNING)
    async with MemoryClient(service.url) as client:
        assert [job.job_id for job in await client.ops.jobs("reindex", limit=5)] == ["job-1"]
        assert await client.ops.jobs("deferred") == ()
        assert (await client.ops.pause_job("job-1")).state == "running"
        assert (await client.ops.job("job-1")).total == 10
        assert (await client.ops.resume_job("job-1")).job_id == "job-1"
        with pytest.raises(NotFound):
            await client.ops.job("nobody/at all")


async def test_without_a_cluster_the_reason_reaches_the_caller(service: RealService) -> None:
    service.world.launcher.error = JobsDown("The cluster takes no jobs.")
    async with MemoryClient(service.url, retry=FAST) as client:
        with pytest.raises(DependencyDown, match="The cluster takes no jobs"):
            await client.ops.reindex()


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.PAUSED, JobState.FAILED])
async def test_waiting_ends_with_the_job_and_shows_its_progress(
    service: RealService, state: JobState
) -> None:
    jobs = service.world.jobs
    await a_job(jobs, JobState.RUNNING)
    await jobs.checkpoint("job-1", 0, 1, Step(cursor=None, done=10))
    seen: list[JobView] = []

    async with MemoryClient(service.url) as client:

        def note(job: JobView) -> None:
            seen.append(job)

        read = jobs.get
        reads = 0

        async def get(job_id: str) -> Job | None:
            nonlocal reads
            reads += 1
            if reads == 4:
                await jobs.progress(job_id, 1)
                await jobs.end(job_id, 1, state)
            return await read(job_id)

        jobs.get = get
        job = await client.ops.wait_job("job-1", poll_s=0.001, on_progress=note)
    assert (job.state, job.done) == (state.value, 10)
    assert seen[0].done == 0
    assert seen[-1] == job


async def test_a_job_that_does_not_move_is_not_waited_for(service: RealService) -> None:
    await a_job(service.world.jobs, JobState.RUNNING)
    async with MemoryClient(service.url) as client:
        with pytest.raises(DeadlineExceeded, match="has not moved"):
            await client.ops.wait_job("job-1", stall_s=0.0, poll_s=0.001)
