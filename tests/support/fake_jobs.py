"""Bulk jobs without a cluster: a launcher that keeps what it is asked, and fixed sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rayapp.bulk.model import REINDEX, Job, JobState, Partition, Plan
from rayapp.bulk.ports import LeaseStore
from rayapp.bulk.service import JobsService
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.index.consistency.rules import SweepReport
from rayapp.index.deferred import DeferredService
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.index import InMemoryIndex
from tests.support.stores.jobs import InMemoryItemScan, InMemoryJobStore

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


@dataclass(frozen=True, slots=True)
class JobParts:
    """What the job services of a fake world stand on."""

    store: InMemoryJobStore
    launcher: FakeLauncher
    consistency: FixedConsistency
    index: InMemoryIndex


def job_parts(runtime: Runtime) -> JobParts:
    return JobParts(
        InMemoryJobStore(runtime.clock), FakeLauncher(), FixedConsistency(), InMemoryIndex()
    )


async def a_job(parts: JobParts, state: JobState, **fields: Any) -> Job:
    """A stored job in that state, `job-1` of the kind reindex unless `fields` say otherwise."""
    given = {"job_id": "job-1", "kind": REINDEX, "params": {}, **fields}
    job = Job(created_at=NOTHING_FOUND.checked_at, **given)
    await parts.store.create(job)
    if state is not JobState.SUBMITTED:
        await parts.store.take(job.job_id, 1, submission_id="rayapp-1")
        plan = Plan(partitions=[Partition(index=0, payload={})], total=10)
        await parts.store.planned(job.job_id, 1, plan)
    if state not in {JobState.SUBMITTED, JobState.RUNNING}:
        await parts.store.end(job.job_id, 1, state)
    found = await parts.store.get(job.job_id)
    assert found is not None
    return found


def job_services(
    parts: JobParts, items: InMemoryMemoryStore, leases: LeaseStore, runtime: Runtime
) -> dict[str, object]:
    """The fields of `Services` about jobs, by name."""
    return {
        "jobs": JobsService(parts.store, leases, parts.launcher, runtime=runtime),
        "consistency": parts.consistency,
        "deferred": DeferredService(items, parts.index, InMemoryItemScan(items), runtime=runtime),
    }
