"""The driver of a bulk job: find or make the job, plan, hand out partitions, finish, end.

It may be killed at any moment: what was done is in the checkpoints, and the next driver goes on.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeVar

from rayapp.bulk import lease, rules
from rayapp.bulk.model import (
    DesiredState,
    Finish,
    Job,
    JobState,
    PartitionRow,
    PartitionState,
    Plan,
)
from rayapp.bulk.ports import JobStore, JobWork, LeaseStore, WorkerLost, Workers
from rayapp.core.errors import ConfigError, Conflict, InvalidInput, NotFound, RayappError
from rayapp.core.runtime import Clock
from rayapp.core.settings.model import JobsSettings

log = logging.getLogger("rayapp.jobs")
T = TypeVar("T")

# Between two looks at the progress: a bar that moves, and a few reads per second at most.
PROGRESS_S = 0.5
# What a plan raises for arguments that cannot be met; nothing was begun then.
REFUSALS = (ConfigError, Conflict, InvalidInput, NotFound)
# After a worker died, before its partition is tried again, seconds.
LOST_PAUSE_S = 0.5

OpenWork = Callable[[Mapping[str, Any]], Awaitable[JobWork]]


class _StopAsked(Exception):
    """The process was asked to end."""


class _Wished(Exception):
    """People wish something else than that the job runs."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.job_id)
        self.job = job


@dataclass(eq=False)
class JobRunner:
    """Runs one job once. `stop` may be called at any time, from the same event loop."""

    jobs: JobStore
    leases: LeaseStore
    workers: Workers
    open_work: OpenWork
    _: KW_ONLY
    settings: JobsSettings
    clock: Clock
    process: str
    sleep: lease.Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self._stop = asyncio.Event()
        self._rest = JobState.SUBMITTED
        self._taken: Job | None = None

    def stop(self, *, pause: bool = False) -> None:
        """End soon: workers stop after their step, and the job can be resumed.

        `pause`: a person wants the job to rest. Without it the process alone has to go, and the job
        waits for its next driver, which the service starts by itself.
        """
        self._rest = JobState.PAUSED if pause else JobState.SUBMITTED
        self._stop.set()
        self.workers.stop()

    async def preview(self, request: lease.RunRequest) -> Plan:
        """What a run would do; nothing is written."""
        params = request.params
        if request.job_id is not None:
            params = (await lease.the_named(self.jobs, request, request.job_id)).params
        work = await self.open_work(params)
        try:
            return await lease.retry_while_away(work.plan, self.clock, self.sleep)
        finally:
            await work.close()

    async def run(
        self,
        request: lease.RunRequest,
        on_progress: lease.OnProgress = lambda job: None,
        on_follow: lease.OnProgress = lambda job: None,
    ) -> rules.JobResult:
        """Run to the end, a pause or a failure.

        While another driver has the same work, this one follows it (`on_follow` hears that): it
        shows that driver's progress, ends with its result, and takes over when it died.

        Raises Conflict, code `busy`, NotFound, InvalidInput, DependencyDown: nothing was begun.
        What goes wrong later is in the result and, when the store can be reached, in the job.
        """
        if request.job_id is not None:
            named = await lease.the_named(self.jobs, request, request.job_id)
            if rules.has_ended(named):
                return rules.result_of(named)

        async def followed(job: Job) -> None:
            # Workers that were started beside the plan are of no use to a follower.
            await self.workers.close()
            on_follow(job)

        follower = lease.JobFollower(
            self.jobs,
            self._lease_of(request.kind),
            request,
            self._stop,
            clock=self.clock,
            sleep=self.sleep,
            on_follow=followed,
            on_progress=on_progress,
        )
        while (result := await follower.seat()) is None:
            self._taken = None
            try:
                drive = self._drive(request, follower.job, on_progress)
                return await self._lease.guard(drive)
            except RayappError as error:
                if not (_is_lost(error) or self._came_too_late(error)):
                    if self._taken is None:
                        raise
                    # The store is gone: another driver may write to the job now.
                    return _failed(self._taken, error)
                # Another driver has the job, had it, or will have it: this one sees it through.
                log.warning("%s: %s", request.kind, error.message)
                follower.job = self._taken or follower.job
                if follower.job is None and request.job_id is not None:
                    follower.job = await lease.the_named(self.jobs, request, request.job_id)
            finally:
                await self._lease.release()
            await self.sleep(lease.RETRY_S)
        return result

    def _lease_of(self, kind: str) -> lease.JobLease:
        self._lease = lease.JobLease(
            self.leases,
            kind,
            self.process,
            self._move,
            ttl_s=self.settings.lease_s,
            clock=self.clock,
            sleep=self.sleep,
        )
        return self._lease

    def _came_too_late(self, error: RayappError) -> bool:
        """The job that was found had ended before it was taken."""
        return self._taken is None and isinstance(error, Conflict) and error.code == rules.JOB_FINAL

    async def _move(self, old: int, new: int) -> None:
        """The lease was taken back late: the job goes with it."""
        if self._taken is not None:
            await self.jobs.refence(self._taken.job_id, old, new)

    async def _drive(
        self, request: lease.RunRequest, known: Job | None, on_progress: lease.OnProgress
    ) -> rules.JobResult:
        job_id = (known or await self._find(request)).job_id
        async with self._lease.steady:
            self._taken = job = await self.jobs.take(
                job_id, self._lease.fence, submission_id=request.submission_id
            )
        # Another driver that was here since the job was found may have done the same work.
        await self._retry(self._lease.confirm)
        try:
            work = await self.open_work(job.params)
            try:
                return await self._work_through(job, work, request, on_progress)
            finally:
                await work.close()
        except _Wished as wished:
            return await self._end_as_wished(wished.job)
        except _StopAsked:
            return await self._end_as_stopped(job)
        except RayappError as error:
            return await self._fail(job, error)
        except Exception as error:  # a bug in one kind of job; its row must say so
            log.error("job %s failed", job.job_id, exc_info=error)
            return await self._fail(job, RayappError(_sentence(error)))
        finally:
            await self.workers.close()

    async def _work_through(
        self, job: Job, work: JobWork, request: lease.RunRequest, on_progress: lease.OnProgress
    ) -> rules.JobResult:
        if job.wish is not DesiredState.RUN:
            raise _Wished(job)
        if not job.planned:
            job = await self._plan(job, work, on_progress)
        await self._unless_ended(self._retry(lambda: work.begin(job.facts)))
        job = await self._all_partitions(job, request.concurrency, on_progress)
        await self._stage(job, "finish")
        rows = await self._retry(lambda: self.jobs.partitions(job.job_id))
        finish = await self._unless_ended(self._retry(lambda: work.finish(rows)), on_progress)
        return await self._complete(job, finish)

    async def _find(self, request: lease.RunRequest) -> Job:
        """The named job, the one to resume, or a new one."""
        if request.job_id is not None:
            return await lease.the_named(self.jobs, request, request.job_id)
        if request.resume:
            for job in await self.jobs.recent(request.kind, lease.RECENT_JOBS):
                # Only the last one counts: what an older one left was done by a later one.
                if job.params == request.params:
                    if rules.can_be_resumed(job, self.clock.now()):
                        return job
                    break
        job = Job(
            job_id=request.new_id,
            kind=request.kind,
            params=request.params,
            created_at=self.clock.now(),
            requested_by=request.requested_by,
        )
        await self.jobs.create(job)
        return job

    async def _plan(self, job: Job, work: JobWork, on_progress: lease.OnProgress) -> Job:
        await self._stage(job, "plan")
        plan = await self._unless_ended(self._retry(work.plan), on_progress)
        await self._run_fenced(lambda fence: self.jobs.planned(job.job_id, fence, plan))
        self._taken = job = await self._progress(job)
        return job

    async def _stage(self, job: Job, name: str) -> None:
        await self._run_fenced(lambda fence: self.jobs.stage(job.job_id, fence, name))

    async def _progress(self, job: Job) -> Job:
        return await self._run_fenced(lambda fence: self.jobs.progress(job.job_id, fence))

    async def _all_partitions(
        self, job: Job, concurrency: int, on_progress: lease.OnProgress
    ) -> Job:
        """Until all are done; the job as it then is."""
        await self._stage(job, "partitions")
        while True:
            rows = await self._retry(lambda: self.jobs.partitions(self._driven.job_id))
            waiting = deque(row for row in rows if row.state is PartitionState.WAITING)
            done = not waiting
            if waiting:
                await lease.beside(
                    self._share_out(job, waiting, concurrency), self._watch(on_progress)
                )
            job = await self._progress(job)
            on_progress(job)
            if job.wish is not DesiredState.RUN:
                raise _Wished(job)
            if self._stop.is_set():
                raise _StopAsked
            # Only the rows say that all is done: a pause that was taken back at once has stopped
            # the workers, too.
            if done:
                return job

    async def _share_out(self, job: Job, waiting: deque[PartitionRow], concurrency: int) -> None:
        """`concurrency` partitions at a time; the first error stops the others after their step."""
        errors: list[BaseException] = []

        async def take_turns() -> None:
            while waiting and not errors:
                try:
                    if not await self._partition(job, waiting.popleft()):
                        waiting.clear()
                except Exception as error:  # noqa: BLE001  # raised below, when the others ended
                    errors.append(error)
                    self.workers.stop()

        await asyncio.gather(*(take_turns() for _ in range(min(concurrency, len(waiting)))))
        if errors:
            raise errors[0]

    async def _partition(self, job: Job, row: PartitionRow) -> bool:
        """One partition, on a new worker whenever one died. Steps made between two deaths show
        that the partition itself is not what kills them."""
        tries, steps = 0, row.steps
        while True:
            fence = self._lease.fence
            try:
                return await self.workers.work_on(replace(job, fence=fence), row)
            except Conflict as error:
                # The lease was taken back: the step at hand is made again under the new fence.
                if not await self._lease.outlived(error, fence):
                    raise
                row = await self._row(row)
                if row.state is PartitionState.DONE:
                    return True
            except WorkerLost as lost:
                row = await self._row(row)
                tries, steps = (1 if row.steps > steps else tries + 1), row.steps
                if row.state is PartitionState.DONE:
                    return True
                if tries >= self.settings.attempts:
                    raise RayappError(
                        f"Partition {row.index} lost its worker {tries} times at one step; "
                        f"see the log of the workers ({lost.message})."
                    ) from lost
                await self.sleep(LOST_PAUSE_S)

    async def _row(self, row: PartitionRow) -> PartitionRow:
        rows = await self._retry(lambda: self.jobs.partitions(row.job_id))
        return next(one for one in rows if one.index == row.index)

    async def _watch(self, on_progress: lease.OnProgress, *, wishes: bool = False) -> None:
        """Show the progress; with `wishes`, raise _Wished once people want something else."""
        while True:
            await self.sleep(PROGRESS_S)
            try:
                job = await self._lease.fenced(
                    lambda fence: self.jobs.progress(self._driven.job_id, fence)
                )
            except lease.PASSING:
                continue  # the workers try again for themselves, the lease has its own limit
            on_progress(job)
            if wishes and job.wish is not DesiredState.RUN:
                raise _Wished(job)

    async def _end_as_wished(self, job: Job) -> rules.JobResult:
        cancel = job.wish is DesiredState.CANCEL
        return await self._left(job, JobState.CANCELLED if cancel else JobState.PAUSED)

    async def _end_as_stopped(self, job: Job) -> rules.JobResult:
        """What people asked of it comes before what the process was told."""
        job = await self.jobs.get(job.job_id) or job
        if job.wish is not DesiredState.RUN:
            return await self._end_as_wished(job)
        if self._rest is JobState.PAUSED:
            # Whoever stopped it at its terminal asked for a pause: nobody else takes it up.
            job = await self.jobs.set_desired_state(job.job_id, DesiredState.PAUSE)
        return await self._left(job, self._rest)

    async def _left(self, job: Job, state: JobState) -> rules.JobResult:
        # Not tried again: a stack that goes down takes the store with it, and whoever looks for
        # lost jobs reads the wish in the row.
        ended = await self._lease.fenced(lambda fence: self.jobs.end(job.job_id, fence, state))
        return rules.result_of(ended)

    async def _complete(self, job: Job, finish: Finish) -> rules.JobResult:
        report = {**finish.report, "complete": finish.complete}
        ended = await self._run_fenced(
            lambda fence: self.jobs.end(job.job_id, fence, JobState.COMPLETED, report=report)
        )
        return rules.result_of(ended)

    async def _fail(self, job: Job, error: RayappError) -> rules.JobResult:
        """A job without a plan cannot be resumed, so its row says why it never began.

        Raises Conflict, code `lease_lost`, when another driver has the job."""
        if _is_lost(error):
            raise error
        refused = isinstance(error, REFUSALS) and not self._driven.planned
        failed = _failed(job, error, rules.EXIT_BAD_ARGUMENTS if refused else None)
        try:
            ended = await self._lease.fenced(
                lambda fence: self.jobs.end(
                    job.job_id,
                    fence,
                    JobState.FAILED,
                    error=error.message,
                    exit_code=failed.exit_code,
                )
            )
        except RayappError as second:
            if _is_lost(second):
                raise
            log.warning("job %s: its failure is not stored: %s", job.job_id, second.message)
            return failed
        return rules.result_of(ended)

    async def _unless_ended(
        self, work: Coroutine[Any, Any, T], on_progress: lease.OnProgress = lambda job: None
    ) -> T:
        """`work`, which `stop` and wishes cancel at once; when the job is resumed, it is repeated
        as a whole, and one that reached its end before counts."""
        watched = lease.beside(work, self._watch(on_progress, wishes=True))
        return await lease.beside(watched, self._stopped())

    @property
    def _driven(self) -> Job:
        """The job of this driver, as it was when it was taken or planned."""
        assert self._taken is not None
        return self._taken

    async def _stopped(self) -> None:
        await self._stop.wait()
        raise _StopAsked

    async def _run_fenced(self, call: Callable[[int], Awaitable[T]]) -> T:
        return await self._retry(lambda: self._lease.fenced(call))

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        return await lease.retry_while_away(call, self.clock, self.sleep)


def _is_lost(error: RayappError) -> bool:
    """Another driver has the lease, or the job."""
    return isinstance(error, Conflict) and error.code == rules.LEASE_LOST


def _failed(job: Job, error: RayappError, code: int | None = None) -> rules.JobResult:
    if code is None:
        code = rules.EXIT_DEPENDENCY if isinstance(error, lease.PASSING) else rules.EXIT_INCOMPLETE
    return rules.JobResult(job=job, exit_code=code, sentence=error.message)


def _sentence(error: Exception) -> str:
    """One line of a bug; its trace is in the log."""
    first = (str(error).splitlines() or [""])[0][:300]
    return f"The job broke with {type(error).__name__}: {first or 'no message'}; see its log."
