"""Bulk jobs, the scan over all items, and the quarantine in process memory, for tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Unpack

from rayapp.bulk.model import DesiredState, Job, JobState, PartitionRow, PartitionState, Plan, Step
from rayapp.bulk.ports import Ending
from rayapp.bulk.rules import (
    IDLE_STATES,
    SAMPLES_KEPT,
    can_be_taken,
    driven_by,
    job_final,
    lease_lost,
    no_job,
    no_partition,
    plain,
    plain_plan,
    plain_step,
    sum_counts,
)
from rayapp.core.errors import InvalidInput
from rayapp.core.runtime import Clock
from rayapp.index.ports import Requeue, RowState
from rayapp.index.records import StoredPoint
from rayapp.index.rules.points import home_of
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.rules.revision import requeued
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.rows import Row, to_ms

QUARANTINE_LIFETIME = timedelta(days=30)


def _attempts_after_take(job: Job) -> int:
    if job.state is JobState.RUNNING:
        return job.attempts + 1
    return 1 if job.state is JobState.FAILED else max(1, job.attempts)


class InMemoryJobStore:
    """A working `JobStore`; every method is one step, as no other task runs within it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs: dict[str, Job] = {}
        self._rows: dict[str, dict[int, PartitionRow]] = {}

    async def create(self, job: Job) -> bool:
        if job.job_id in self._jobs:
            return False
        now = self._now()
        kept = replace(job, params=plain(job.params), facts=plain(job.facts))
        kept = replace(kept, counts=plain(job.counts), report=plain(job.report))
        self._jobs[job.job_id] = replace(kept, created_at=now, updated_at=now)
        return True

    async def get(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    async def count(self, kind: str | None) -> int:
        return sum(kind in (None, job.kind) for job in self._jobs.values())

    async def recent(self, kind: str | None, limit: int) -> list[Job]:
        found = [job for job in self._jobs.values() if kind in (None, job.kind)]
        return sorted(found, key=_age, reverse=True)[: max(0, limit)]

    async def unfinished(self, kind: str) -> list[Job]:
        found = [job for job in self._jobs.values() if job.kind == kind and not job.final]
        return sorted(found, key=_age, reverse=True)

    async def take(self, job_id: str, fence: int, *, submission_id: str | None) -> Job:
        job, now = self._job(job_id), self._now()
        if job.fence > fence:
            raise lease_lost(job_id)
        if not can_be_taken(job):
            raise job_final(job_id, job.state)
        taken = self._save(
            job,
            state=JobState.RUNNING,
            wish=DesiredState.RUN if job.wish is DesiredState.PAUSE else job.wish,
            fence=fence,
            attempts=_attempts_after_take(job),
            error=None,
            exit_code=None,
            submission_id=submission_id,
            started_at=job.started_at or now,
            finished_at=None,
        )
        self._give_rows(job_id, fence)
        return taken

    async def refence(self, job_id: str, old: int, new: int) -> None:
        job = self._job(job_id)
        if job.fence not in (old, new):
            raise lease_lost(job_id)
        self._save(job, fence=new)
        self._give_rows(job_id, new)

    def _give_rows(self, job_id: str, fence: int) -> None:
        rows = self._rows.get(job_id, {})
        for index, row in rows.items():
            rows[index] = replace(row, fence=max(row.fence, fence))

    async def planned(self, job_id: str, fence: int, plan: Plan) -> None:
        plan, job = plain_plan(plan), self._driven(job_id, fence)
        if job.planned:
            return
        self._rows[job_id] = {
            one.index: PartitionRow(
                job_id=job_id, index=one.index, payload=one.payload, fence=fence
            )
            for one in plan.partitions
        }
        self._save(job, planned=True, facts=plan.facts, total=plan.total)

    async def partitions(self, job_id: str) -> list[PartitionRow]:
        rows = self._rows.get(job_id, {})
        return [rows[index] for index in sorted(rows)]

    async def checkpoint(self, job_id: str, index: int, fence: int, step: Step) -> DesiredState:
        step, job = plain_step(step), self._job(job_id)
        row = self._rows.get(job_id, {}).get(index)
        if row is None:
            raise no_partition(job_id, index)
        driven_by(row, fence)
        if row.state is not PartitionState.DONE:
            self._rows[job_id][index] = replace(
                row,
                state=PartitionState.DONE if step.cursor is None else PartitionState.WAITING,
                cursor=step.cursor,
                done=row.done + step.done,
                failed=row.failed + step.failed,
                counts=sum_counts([row.counts, step.counts]),
                samples=(*row.samples, *step.samples)[:SAMPLES_KEPT],
                steps=row.steps + 1,
                updated_at=self._now(),
            )
        return job.wish

    async def progress(self, job_id: str, fence: int) -> Job:
        job, rows = self._driven(job_id, fence), await self.partitions(job_id)
        return self._save(
            job,
            done=sum(row.done for row in rows),
            failed=sum(row.failed for row in rows),
            counts=sum_counts(row.counts for row in rows),
        )

    async def stage(self, job_id: str, fence: int, name: str) -> None:
        self._save(self._driven(job_id, fence), stage=name)

    async def end(self, job_id: str, fence: int, state: JobState, **how: Unpack[Ending]) -> Job:
        job = self._driven(job_id, fence)
        if job.final:
            return job
        ended = replace(job, state=state)
        return self._save(
            ended,
            report=plain(how.get("report")),
            error=how.get("error"),
            exit_code=how.get("exit_code"),
            finished_at=self._now() if ended.final else None,
        )

    async def set_desired_state(self, job_id: str, wish: DesiredState) -> Job:
        job = self._job(job_id)
        if job.state is JobState.FAILED and job.planned and wish is DesiredState.RUN:
            job = replace(job, state=JobState.SUBMITTED, attempts=0, error=None, finished_at=None)
            job = replace(job, exit_code=None)
        if job.final:
            raise job_final(job_id, job.state)
        if wish is DesiredState.CANCEL and job.state in IDLE_STATES:
            job = replace(job, state=JobState.CANCELLED, finished_at=self._now())
        return self._save(job, wish=wish)

    async def submitted(self, job_id: str, submission_id: str) -> None:
        job = self._job(job_id)
        state = JobState.SUBMITTED if job.state is JobState.PAUSED else job.state
        self._save(job, submission_id=submission_id, state=state)

    async def add_to_report(self, job_id: str, facts: Mapping[str, Any]) -> None:
        job = self._job(job_id)
        self._save(job, report={**(job.report or {}), **plain(facts)})

    def _job(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is None:
            raise no_job(job_id)
        return job

    def _driven(self, job_id: str, fence: int) -> Job:
        job = self._job(job_id)
        driven_by(job, fence)
        return job

    def _save(self, job: Job, **changes: Any) -> Job:
        new = replace(job, **changes, updated_at=self._now())
        self._jobs[job.job_id] = new
        return new

    def _now(self) -> datetime:
        return to_ms(self._clock.now())


class InMemoryItemScan:
    """A working `ItemScan` over the rows of the in-memory store."""

    def __init__(self, store: InMemoryMemoryStore) -> None:
        self._store = store

    async def page(
        self, *, after: str | None, until: str | None, limit: int
    ) -> tuple[list[MemoryItem], str | None]:
        if limit < 1:
            raise InvalidInput("A page holds at least one item: ask for a limit of 1 or more.")
        points = sorted(
            point
            for point in self._store._rows
            if (after is None or point > after) and (until is None or point <= until)
        )
        items = [self._store._rows[point].item for point in points[:limit]]
        return items, points[limit - 1] if len(points) > limit else None

    async def by_points(self, point_ids: Sequence[str]) -> list[MemoryItem]:
        wanted = set(point_ids)
        return [row.item for row in self._store._rows.values() if row.item.point_id in wanted]

    async def states(self, point_ids: Sequence[str]) -> list[RowState]:
        return [
            RowState(
                item.point_id,
                item.status,
                item.index.sync_state,
                item.index.rev,
                item.content_hash,
                item.context_prefix,
            )
            for item in await self.by_points(point_ids)
        ]

    async def existing(self, point_ids: Sequence[str]) -> set[str]:
        return set(point_ids) & self._store._rows.keys()

    async def indexed_since(
        self, since: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[MemoryItem]:
        placed = sorted(
            ((row.item.index.indexed_at, row.item.point_id), row.item)
            for row in self._active(_indexed_since(since))
            if row.item.index.indexed_at is not None
        )
        found = [item for place, item in placed if after is None or place > after]
        return found[: max(0, limit)]

    async def total(self) -> int:
        gave_up = SyncState.FAILED
        return len(self._active(lambda row: row.item.index.sync_state is not gave_up))

    async def in_flight(self) -> int:
        now = await self.now()
        return sum(
            row.item.index.claim is not None and row.due_at is not None and row.due_at > now
            for row in self._store._rows.values()
        )

    async def requeue(self, wanted: Sequence[Requeue]) -> int:
        now, changed = await self.now(), 0
        for one in wanted:
            row = self._store._rows.get(one.point_id)
            state = row.item.index if row is not None else None
            if row is None or state is None or state.sync_state is not SyncState.SYNCED:
                continue
            if state.rev == one.rev:
                row.hold(replace(row.item, index=requeued(state, one.op, now)), now)
                changed += 1
        return changed

    async def requeue_indexed_since(self, since: datetime) -> int:
        now = await self.now()
        rows = self._active(_indexed_since(since))
        for row in rows:
            state = requeued(row.item.index, IndexOp.VECTOR, now)
            row.hold(replace(row.item, index=state), now)
        return len(rows)

    async def now(self) -> datetime:
        return self._store._now()

    def _active(self, chosen: Callable[[Row], bool]) -> list[Row]:
        rows = self._store._rows.values()
        return [row for row in rows if row.item.status is Status.ACTIVE and chosen(row)]


class InMemoryQuarantine:
    """A working `QuarantineStore`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._points: dict[tuple[str, int], tuple[StoredPoint, str, datetime]] = {}

    async def keep(self, points: Sequence[StoredPoint], reason: str) -> None:
        now = to_ms(self._clock.now())
        for point in points:
            key = (point.point_id, int(point.payload.get("rev", 0)))
            old = self._points[key][0] if key in self._points else point
            kept = replace(
                point,
                payload=plain(point.payload),
                dense=old.dense if point.dense is None else point.dense,
                sparse=old.sparse if point.sparse is None else point.sparse,
            )
            self._points[key] = (kept, reason, now)

    async def purge(self, point_ids: Sequence[str]) -> None:
        gone = set(point_ids)
        for key, (point, _, _) in list(self._points.items()):
            if point.point_id in gone or home_of(point.payload) in gone:
                del self._points[key]

    async def kept(self, limit: int) -> list[tuple[StoredPoint, str, datetime]]:
        since = to_ms(self._clock.now()) - QUARANTINE_LIFETIME
        found = [one for one in self._points.values() if one[2] > since]
        return sorted(found, key=lambda one: one[2], reverse=True)[: max(0, limit)]


def _age(job: Job) -> tuple[datetime, str]:
    return job.created_at, job.job_id


def _indexed_since(since: datetime) -> Callable[[Row], bool]:
    start = to_ms(since)

    def chosen(row: Row) -> bool:
        at = row.item.index.indexed_at
        return at is not None and at >= start

    return chosen
