"""Bulk jobs without a cluster: a launcher that keeps what it is asked, and fixed sweeps."""

from datetime import UTC, datetime
from typing import Any

from rayapp.bulk.model import Job, JobState, Partition, Plan
from rayapp.bulk.params import REINDEX
from rayapp.bulk.ports import JobStore
from rayapp.core.errors import RayappError
from rayapp.index.consistency.rules import SweepReport

NOTHING_FOUND = SweepReport(
    checked_at=datetime(2025, 5, 6, 8, tzinfo=UTC),
    duration_s=0.0,
    checked=0,
    found={},
    repaired={},
    issues=(),
    truth_count=0,
    index_count=0,
)


class FakeLauncher:
    """Implements `JobLauncher`; `error` is raised while it is set."""

    def __init__(self) -> None:
        self.launched: list[Job] = []
        self.error: RayappError | None = None

    async def launch(self, job: Job) -> str:
        if self.error is not None:
            raise self.error
        self.launched.append(job)
        return f"rayapp-{job.job_id}-{len(self.launched)}"


class FixedConsistency:
    """Implements `Consistency`: answers `report` and keeps what it is asked."""

    def __init__(self) -> None:
        self.report = NOTHING_FOUND
        self.asked: list[tuple[int, bool]] = []

    async def check(self, *, sample: int, repair: bool) -> SweepReport:
        self.asked.append((sample, repair))
        return self.report


async def a_job(jobs: JobStore, state: JobState, **fields: Any) -> Job:
    """A stored job in that state, `job-1` of the kind reindex unless `fields` say otherwise."""
    given = {"job_id": "job-1", "kind": REINDEX, "params": {}, **fields}
    job = Job(created_at=NOTHING_FOUND.checked_at, **given)
    await jobs.create(job)
    if state is not JobState.SUBMITTED:
        await jobs.take(job.job_id, 1, submission_id="rayapp-1")
        plan = Plan(partitions=[Partition(index=0, payload={})], total=10)
        await jobs.planned(job.job_id, 1, plan)
    if state not in {JobState.SUBMITTED, JobState.RUNNING}:
        await jobs.end(job.job_id, 1, state)
    found = await jobs.get(job.job_id)
    assert found is not None
    return found
