"""One job has one driver: its lease, the steps of its workers, and whoever follows it."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, TypeVar

from rayapp.bulk.model import DesiredState, Job, JobState, Partition, PartitionRow, Step, lease_of
from rayapp.bulk.ports import JobStore, JobWork, Lease, LeaseStore
from rayapp.bulk.rules import LEASE_LOST, JobResult, at_rest, no_job, result_of
from rayapp.core import errors
from rayapp.core.cancelling import end
from rayapp.core.deadline import Deadline
from rayapp.core.retry import RetryPolicy, retry
from rayapp.core.runtime import Clock
from rayapp.core.token_bucket import TokenBucket

# What a worker of a bulk job does: step by step through a partition, each step checkpointed.

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

PASSING = (errors.DependencyDown, errors.Overloaded, errors.RateLimited, errors.DeadlineExceeded)
# About 8 s in the mean, 15 s at most: a restarted mongod or vector engine answers within 5 s.
STEP_RETRY = RetryPolicy(attempts=6, base_s=0.5, max_s=8.0)
# Beside the pauses stand the calls themselves, each with its own timeout.
STEP_RETRY_S = 120.0
# A worker that waits for its rate looks this often whether it should stop, seconds.
PACE_SLICE_S = 0.5


async def retry_while_away(call: Callable[[], Awaitable[T]], clock: Clock, sleep: Sleep) -> T:
    """Repeat a harmless-to-repeat `call` while a dependency is away, for some seconds."""
    return await retry(
        call,
        policy=STEP_RETRY,
        deadline=Deadline(STEP_RETRY_S, clock.monotonic),
        retryable=PASSING,
        sleep=sleep,
        random=random.random,
    )


class JobRate:
    """Keeps a worker at or below `per_s` records per second; None is no limit."""

    def __init__(self, per_s: float | None, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
        # A burst of one second, so that the rate holds over any few seconds.
        self._burst = max(1.0, per_s or 1.0)
        self._bucket = TokenBucket(per_s, self._burst) if per_s else None
        self._clock, self._sleep = clock, sleep

    async def spend(self, records: int, given_up: Callable[[], Awaitable[bool]]) -> None:
        """Wait until `records` more were allowed, or until `given_up`."""
        left = float(records)
        while self._bucket is not None and left > 0:
            share = min(left, self._burst)
            wait_s = self._bucket.take(self._clock.monotonic(), share)
            if wait_s == 0.0:
                left -= share
                continue
            if await given_up():
                return
            await self._sleep(min(wait_s, PACE_SLICE_S))


@dataclass(eq=False)
class PartitionSteps:
    """The loop of one worker, over one partition at a time."""

    store: JobStore
    work: JobWork
    rate: JobRate
    clock: Clock
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self._stopping = False

    def stop(self) -> None:
        """Return after the present step, and at once from now on."""
        self._stopping = True

    async def run(self, row: PartitionRow, fence: int) -> bool:
        """True when the partition is done and the job goes on; False when `stop` or a wish came.

        Raises what the work raised, once it was tried again in vain; Conflict, code `lease_lost`.
        """
        partition = Partition(index=row.index, payload=row.payload)
        cursor, steps = row.cursor, row.steps
        while not self._stopping:
            # The lambda is called within this round, so late binding does no harm.
            step = await retry_while_away(
                lambda at=cursor: self.work.step(partition, at),  # type: ignore[misc]
                self.clock,
                self.sleep,
            )
            wish = await self._checkpoint(row, fence, step, steps)
            if wish is not DesiredState.RUN:
                return False
            if step.cursor is None:
                return True
            cursor, steps = step.cursor, steps + 1
            await self.rate.spend(step.done, lambda: self._given_up(row.job_id))
        return False

    async def _checkpoint(
        self, row: PartitionRow, fence: int, step: Step, steps: int
    ) -> DesiredState:
        """Store `step` exactly once: a lost answer is looked up before it is written again."""
        unsure = False

        async def save() -> DesiredState:
            nonlocal unsure
            if unsure and await self._steps_of(row) > steps:
                return await self._wish(row.job_id)
            unsure = True
            return await self.store.checkpoint(row.job_id, row.index, fence, step)

        return await retry_while_away(save, self.clock, self.sleep)

    async def _steps_of(self, row: PartitionRow) -> int:
        rows = await self.store.partitions(row.job_id)
        return next(one.steps for one in rows if one.index == row.index)

    async def _wish(self, job_id: str) -> DesiredState:
        job = await self.store.get(job_id)
        if job is None:
            raise errors.NotFound(f"Job {job_id} is gone: start a new one.")
        return job.wish

    async def _given_up(self, job_id: str) -> bool:
        return self._stopping or await self._wish(job_id) is not DesiredState.RUN


log = logging.getLogger("rayapp.jobs")

# Renewed three times in its life, so that two lost attempts do no harm.
RENEWALS = 3
# Between two tries while another holder has it or the store is away, seconds.
RETRY_S = 0.5

# Carries what the driver has from its old fence to its new one. Conflict, code `lease_lost`: what
# it had is another driver's, or was.
Move = Callable[[int, int], Awaitable[None]]


async def beside(main: Coroutine[Any, Any, T], side: Coroutine[Any, Any, None]) -> T:
    """The result of `main`, while `side` runs; an error of `side` cancels `main` and is raised."""
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(main), asyncio.create_task(side)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            tasks[1].result()
        return await tasks[0]  # type: ignore[no-any-return]
    finally:
        await end(*tasks)


@dataclass(eq=False)
class JobLease:
    """In the hands of one driver of a kind.

    A renewal may come late, after a stall of the machine. If nobody else had the lease meanwhile,
    it is taken back with a new fence, the next one: `move` carries the job to it, and the driver
    goes on.
    """

    leases: LeaseStore
    kind: str
    holder: str
    move: Move
    _: KW_ONLY
    ttl_s: float
    clock: Clock
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self._name = lease_of(self.kind)
        self._lease: Lease | None = None
        # That of every write from now on; it does not change while `steady` is held.
        self.fence = 0
        self.steady = asyncio.Lock()

    async def acquire(self) -> bool:
        """Try once to take it."""
        self._lease = await self._take()
        if self._lease is None:
            return False
        self.fence = self._lease.fence
        return True

    async def held(self) -> Lease | None:
        """Whoever has it now."""
        return await self.leases.current(self._name)

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` while renewing; cancel it as soon as another driver has the lease or the job.

        Raises Conflict, code `lease_lost`; what the store raised when it was away for too long.
        """
        return await beside(work, self._renew())

    async def release(self) -> None:
        """Give it back; a store that is away lets it run out instead."""
        if self._lease is not None:
            with contextlib.suppress(errors.RayappError):
                await self.leases.release(self._lease)

    async def confirm(self) -> None:
        """Renew now: nobody else had the lease from `acquire` to this moment.

        Raises Conflict, code `lease_lost`, when somebody had.
        """
        async with self.steady:
            await self._renew_once()

    async def fenced(self, call: Callable[[int], Awaitable[T]]) -> T:
        """`call` with the present fence, and again when that one moved on while it ran."""
        while True:
            fence = self.fence
            try:
                return await call(fence)
            except errors.Conflict as error:
                if not await self.outlived(error, fence):
                    raise

    async def outlived(self, error: errors.Conflict, fence: int) -> bool:
        """Whether `error` refused a write only because this driver has a later fence by now."""
        if error.code != LEASE_LOST:
            return False
        async with self.steady:
            return self.fence != fence

    async def _renew(self) -> None:
        failing_since: float | None = None
        pause_s = self.ttl_s / RENEWALS
        while True:
            await self.sleep(pause_s)
            asked_at = self.clock.monotonic()
            try:
                async with self.steady:
                    await self._renew_once()
            except PASSING:
                # Not since the last good renewal: that may be long ago only because of a stall.
                failing_since = asked_at if failing_since is None else failing_since
                if self.clock.monotonic() - failing_since >= self.ttl_s:
                    raise
                pause_s = RETRY_S
                continue
            failing_since, pause_s = None, self.ttl_s / RENEWALS

    async def _renew_once(self) -> None:
        had = 0 if self._lease is None else self._lease.fence
        self._lease = lease = await self._take()
        # Every other holder has taken one fence.
        if lease is None or lease.fence > had + 1:
            raise errors.Conflict("Another driver got the lease of this one.", code=LEASE_LOST)
        if lease.fence != self.fence:
            log.warning("%s was renewed late: taken back as %d", self._name, lease.fence)
            await self.move(self.fence, lease.fence)
            self.fence = lease.fence

    def _take(self) -> Awaitable[Lease | None]:
        return self.leases.acquire(self._name, self.holder, self.ttl_s)


# One job has one driver. Whoever asks for the same work meanwhile follows that driver to its end,
# and takes over when it dies.

STOPPED = "stopped"
# Jobs of a kind looked through for the one that is meant.
RECENT_JOBS = 100

OnProgress = Callable[[Job], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What one driver shall do.

    Attributes:
        new_id: of the job, when a new one is made.
        job_id: go on with exactly this stored job; its own parameters count.
        resume: go on with the last job of equal parameters, if it did not end.
        submission_id: of the Ray job this driver is.
        concurrency: partitions at a time.
    """

    kind: str
    params: Mapping[str, Any]
    new_id: str
    job_id: str | None = None
    resume: bool = True
    submission_id: str | None = None
    requested_by: str = ""
    concurrency: int = 2

    def means(self, job: Job) -> bool:
        """Whether `job` is what this asks for."""
        if self.job_id is not None:
            return job.job_id == self.job_id
        return job.job_id == self.new_id or (self.resume and job.params == self.params)


@dataclass(eq=False)
class JobFollower:
    """Waits for the lease of a kind in the name of one request.

    `stop`: set when this process was asked to end. `on_follow` hears once which job is followed,
    then `on_progress` how far it is.
    """

    jobs: JobStore
    lease: JobLease
    request: RunRequest
    stop: asyncio.Event
    _: KW_ONLY
    clock: Clock
    sleep: Sleep
    on_follow: Callable[[Job], Awaitable[None]]
    on_progress: OnProgress

    def __post_init__(self) -> None:
        self._told: str | None = None
        # Fence of the lease as this request first saw it: what was driven since was done meanwhile.
        self._since: int | None = None
        # The job that this request came to, as it was last seen.
        self.job: Job | None = None

    async def seat(self) -> JobResult | None:
        """None when this process has the lease and is to drive `self.job`, or to find one; else
        the result of the driver that had it.

        A holder that was killed does not renew, so this takes one life of a lease at most, unless
        there is a driver to follow.

        Raises Conflict, code `busy`, when a living driver works on something else.
        """
        seen: Lease | None = None
        while not await self._retry(self.lease.acquire):
            held = await self._retry(self.lease.held)
            seen = seen or held
            if held is not None:
                self._since = self._since or held.fence
                await self._retry(partial(self._look, held, held != seen))
            if self.job is not None and (at_rest(self.job) or self.stop.is_set()):
                return result_of(self.job)
            if self.stop.is_set():
                raise errors.Conflict("Stopped before the job began.", code=STOPPED)
            await self.sleep(RETRY_S)
        result = await self._result_meanwhile()
        self._since = self._since or self.lease.fence
        if result is not None:
            await self.lease.release()
        return result

    async def _look(self, held: Lease, renewed: bool) -> None:
        """At the job that this request came to; at first, at what the holder works on."""
        if self.job is None:
            driven = await self._driven_under(held.fence)
            if driven is None:
                return
            if not self.request.means(driven):
                if renewed:
                    await self._give_up_own(driven)
                    raise busy(driven)
                return
            self.job = driven
        self.job = await self._present(self.job)
        await self._tell(self.job)

    async def _result_meanwhile(self) -> JobResult | None:
        """With the lease in hand: what others did since this request first asked for it."""
        if self.job is not None:
            self.job = await self._retry(partial(self._present, self.job))
        elif self._since is not None:
            latest = await self._retry(self._latest_alike)
            if latest is not None and latest.fence >= self._since:
                await self._give_up_own(latest)
                self.job = latest
        # What failed while it was followed has its result; it is not tried again at once.
        return None if self.job is None or not at_rest(self.job) else result_of(self.job)

    async def _present(self, job: Job) -> Job:
        """`job` as it is now. One of equal parameters that was driven after it takes its place: of
        several such jobs only the last one counts, and one of our own is given up."""
        found = await self.jobs.get(job.job_id)
        if found is None:
            raise errors.NotFound(f"No job {job.job_id} any more: start a new one.")
        latest = await self._latest_alike()
        chosen = found if latest is None or latest.fence <= found.fence else latest
        await self._give_up_own(chosen)
        return chosen

    async def _give_up_own(self, chosen: Job) -> None:
        """Cancel the job that this request made, when another one is done in its place."""
        if chosen.job_id == self.request.new_id:
            return
        own = await self.jobs.get(self.request.new_id)
        if own is None or own.final:
            return
        try:
            await self.jobs.end(own.job_id, own.fence, JobState.CANCELLED)
        except errors.Conflict as error:
            if error.code != LEASE_LOST:
                raise

    async def _latest_alike(self) -> Job | None:
        """Of the jobs of equal parameters, the one that was driven last."""
        if not self.request.resume or self.request.job_id is not None:
            return None
        jobs = await self.jobs.recent(self.request.kind, RECENT_JOBS)
        alike = [job for job in jobs if job.params == self.request.params]
        return max(alike, key=lambda job: job.fence, default=None)

    async def _driven_under(self, fence: int) -> Job | None:
        jobs = await self.jobs.unfinished(self.request.kind)
        return next((job for job in jobs if job.fence == fence), None)

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """With patience for the store once there is a job to see through to its end."""
        return (
            await call()
            if self.job is None
            else await retry_while_away(call, self.clock, self.sleep)
        )

    async def _tell(self, job: Job) -> None:
        if self._told != job.job_id:
            self._told = job.job_id
            await self.on_follow(job)
        self.on_progress(job)


async def the_named(jobs: JobStore, request: RunRequest, job_id: str) -> Job:
    """The stored job of this id. NotFound; InvalidInput when it is of another kind."""
    job = await jobs.get(job_id)
    if job is None:
        raise no_job(job_id)
    if job.kind != request.kind:
        raise errors.InvalidInput(f"Job {job_id} is a {job.kind}, not a {request.kind}.")
    return job


def busy(running: Job) -> errors.Conflict:
    return errors.Conflict(
        f"Job {running.job_id} is running: wait for it, pause it or cancel it.",
        code="busy",
        details={"job_id": running.job_id, "kind": running.kind},
    )
