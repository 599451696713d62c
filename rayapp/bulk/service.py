"""Bulk jobs as operators see them: submit, follow, pause, go on, cancel. The driver runs elsewhere.

A job is stored before it is started, so whatever dies in between leaves a row that
`resume_lost` finds, and never a driver that nobody knows of.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any

from rayapp.bulk.model import DesiredState, Job, JobState, PartitionRow, lease_of
from rayapp.bulk.params import KINDS, checked_params, known_kind
from rayapp.bulk.ports import JobLauncher, JobStore, LeaseStore
from rayapp.bulk.rules import can_be_resumed
from rayapp.core.errors import Conflict, JobsDown, NotFound, RayappError
from rayapp.core.runtime import Runtime

log = logging.getLogger("rayapp.jobs")
# Jobs of one answer.
MAX_LISTED = 200
# From its launch until a driver holds its lease, seconds: it imports Ray and loads the model, and
# on two busy cores that takes up to half a minute. Until then nobody starts a second one.
START_S = 60.0
# A job that no driver took for so long is given up, seconds: the cluster cannot run it.
GIVE_UP_S = 900.0
# What a job becomes whose driver is gone, by what is wanted of it.
AT_REST = {DesiredState.PAUSE: JobState.PAUSED, DesiredState.CANCEL: JobState.CANCELLED}


@dataclass(eq=False)
class JobsService:
    """Bulk jobs as operators see them. Raises InvalidInput, NotFound, Conflict, JobsDown.

    The maintenance owner also calls `resume_lost`.
    """

    store: JobStore
    leases: LeaseStore
    launcher: JobLauncher
    _: KW_ONLY
    runtime: Runtime

    async def submit(self, kind: str, params: Mapping[str, Any], *, requested_by: str) -> Job:
        """Store a job, then start its driver.

        Raises:
            InvalidInput: no such kind, or parameters that it does not take.
            Conflict: code `busy`, while another one of its kind has not ended.
            JobsDown: no driver could be started; the job has failed for good.
        """
        params = checked_params(kind, params)
        self._refuse_second(await self.store.unfinished(kind))
        job = Job(
            job_id=self.runtime.new_id(),
            kind=kind,
            params=params,
            created_at=self.runtime.clock.now(),
            requested_by=requested_by,
        )
        await self.store.create(job)
        await self._refuse_later(job)
        try:
            return await self._launch(job)
        except RayappError as error:
            return await self._unless_driven(job, error, error.message)

    async def get(self, job_id: str) -> Job:
        job = await self.store.get(job_id)
        if job is None:
            raise NotFound(
                f"No job {job_id}; list them with GET /api/memory/jobs.", details={"job_id": job_id}
            )
        return job

    async def partitions(self, job_id: str) -> list[PartitionRow]:
        await self.get(job_id)
        return await self.store.partitions(job_id)

    async def recent(self, kind: str | None, limit: int) -> list[Job]:
        """Newest first."""
        if kind is not None:
            known_kind(kind)
        return await self.store.recent(kind, min(limit, MAX_LISTED))

    async def page(self, kind: str | None, limit: int) -> tuple[list[Job], int]:
        """Newest first, and how many there are of all."""
        return await self.recent(kind, limit), await self.store.count(kind)

    async def set_desired_state(self, job_id: str, wish: DesiredState) -> Job:
        """Ask something of a job; one that nobody drives is started again, or cancelled at once.

        A job that failed in the last 24 hours goes on from its checkpoints.

        Raises:
            NotFound.
            Conflict: code `job_final` when it has ended, `busy` when another one of its kind runs,
                `job_starting` when it is to be paused while no driver has it.
            JobsDown: it was to go on and no driver could be started; it stays as it was.
        """
        job = await self.get(job_id)
        if wish is DesiredState.RUN and can_be_resumed(job, self.runtime.clock.now()):
            return await self._go_on(job)
        if wish is DesiredState.RUN and job.state is JobState.FAILED:
            raise Conflict(
                f"Job {job_id} failed before it had a plan, or too long ago: start a new one.",
                code="job_final",
                details={"job_id": job_id, "state": job.state.value},
            )
        if wish is DesiredState.PAUSE and job.state is JobState.SUBMITTED:
            raise Conflict(
                f"Job {job_id} waits for its driver; pause it once it runs, or cancel it.",
                code="job_starting",
                details={"job_id": job_id},
            )
        lost = await self._lost(job)
        job = await self.store.set_desired_state(job_id, wish)
        if lost and not job.final:
            return await self.store.end(job_id, job.fence, AT_REST[wish])
        return job

    async def orphaned(self) -> list[Job]:
        """Unfinished jobs that should have a driver and have none, the oldest of each kind."""
        found: list[Job] = []
        for kind in KINDS:
            for job in reversed(await self.store.unfinished(kind)):
                if await self._lost(job):
                    found.append(job)
                    break
        return found

    async def resume_lost(self) -> int:
        """Start a new driver for every orphaned job; how many were started.

        A job that used up its drivers, or that none ever took, has failed; one that was to be
        paused or cancelled is.
        """
        started = 0
        for job in await self.orphaned():
            try:
                started += await self._resume(job)
            except RayappError as error:
                log.warning("job %s waits for a driver: %s", job.job_id, error.message)
        return started

    # --- one job

    async def _go_on(self, job: Job) -> Job:
        others = [one for one in await self.store.unfinished(job.kind) if one.job_id != job.job_id]
        self._refuse_second([one for one in others if one.state is not JobState.PAUSED])
        failed = (job.error or "") if job.final else None
        seen, again = job, job.final or await self._lost(job)
        job = await self.store.set_desired_state(job.job_id, DesiredState.RUN)
        if not again and (job.state is not JobState.PAUSED or await self._driven(job.kind)):
            return job
        try:
            return await self._launch(seen)
        except JobsDown as error:
            if failed is None:
                raise
            return await self._unless_driven(job, error, failed)

    async def _unless_driven(self, job: Job, error: RayappError, text: str) -> Job:
        """Fail the job with `text` and raise `error`, unless a driver has it: one whose start
        took too long may come after all."""
        try:
            await self.store.end(job.job_id, job.fence, JobState.FAILED, error=text)
        except Conflict:
            return await self.get(job.job_id)
        raise error

    async def _resume(self, job: Job) -> bool:
        if job.wish is not DesiredState.RUN:
            await self.store.end(job.job_id, job.fence, AT_REST[job.wish])
            return False
        reason = self._hopeless(job)
        if reason is not None:
            await self.store.end(job.job_id, job.fence, JobState.FAILED, error=reason)
            log.error("job %s failed: %s", job.job_id, reason)
            return False
        log.warning("job %s lost its driver: starting driver %d", job.job_id, job.attempts + 1)
        await self._launch(job)
        return True

    def _hopeless(self, job: Job) -> str | None:
        """Why no further driver is started; None when one is."""
        died = job.attempts if job.state is JobState.RUNNING else job.attempts - 1
        if died >= self.runtime.settings.jobs.attempts:
            return (
                f"{job.attempts} drivers ended without finishing it: read the log of the job in "
                "the Ray dashboard, then submit it again."
            )
        waited = self.runtime.clock.now() - job.created_at
        if job.started_at is None and waited > timedelta(seconds=GIVE_UP_S):
            return "No driver ever took it: look at the jobs in the Ray dashboard, submit it again."
        return None

    async def _launch(self, seen: Job) -> Job:
        """Start a driver, unless another call does or did since the job was `seen`."""
        name = f"launch:{seen.kind}"
        lease = await self.leases.acquire(name, self.runtime.new_id(), START_S)
        if lease is None:
            return await self.get(seen.job_id)
        try:
            job = await self.get(seen.job_id)
            if job.submission_id != seen.submission_id:
                return job
            await self.store.submitted(job.job_id, await self._submission(job))
        finally:
            await self.leases.release(lease)
        return await self.get(job.job_id)

    async def _submission(self, job: Job) -> str:
        try:
            return await self.launcher.launch(job)
        except JobsDown:
            raise
        except RayappError as error:
            raise JobsDown(error.message, code=error.code, details=error.details) from error

    async def _driven(self, kind: str) -> bool:
        return await self.leases.current(lease_of(kind)) is not None

    async def _lost(self, job: Job) -> bool:
        """Nobody holds the lease, and no driver can still be on its way. Who asked a pausing job to
        go on while its driver was still leaving meant it, too."""
        if job.final or (job.state is JobState.PAUSED and job.wish is not DesiredState.RUN):
            return False
        quiet = self.runtime.clock.now() - (job.updated_at or job.created_at)
        patience_s = max(START_S, self.runtime.settings.jobs.lease_s)
        return quiet > timedelta(seconds=patience_s) and not await self._driven(job.kind)

    # --- one job of a kind at a time

    def _refuse_second(self, unfinished: Sequence[Job]) -> None:
        if not unfinished:
            return
        job = unfinished[0]
        what = "is paused: resume or cancel it" if job.state is JobState.PAUSED else "is going on"
        raise Conflict(
            f"Job {job.job_id} of the kind {job.kind} {what}; only one runs at a time.",
            code="busy",
            details={"job_id": job.job_id, "state": job.state.value},
        )

    async def _refuse_later(self, job: Job) -> None:
        """Of two that were stored at the same moment, the first one stays."""
        others = [one for one in await self.store.unfinished(job.kind) if one.job_id < job.job_id]
        if not others:
            return
        await self.store.set_desired_state(job.job_id, DesiredState.CANCEL)
        self._refuse_second(others)
