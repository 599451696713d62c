"""One job has one driver. Whoever asks for the same work meanwhile follows that driver to its end,
and takes over when it dies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from rayapp.bulk.lease import RETRY_S, JobLease
from rayapp.bulk.model import Job, JobState
from rayapp.bulk.ports import JobStore, Lease
from rayapp.bulk.results import JobResult, at_rest, result_of
from rayapp.bulk.rules import LEASE_LOST
from rayapp.bulk.steps import Sleep, tried
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.ports import Clock

T = TypeVar("T")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowListener:
    """Hears once which job is followed, then how far it is."""

    on_follow: Callable[[Job], Awaitable[None]]
    on_progress: OnProgress


class JobFollower:
    """Waits for the lease of a kind in the name of one request.

    Args:
        stop: set when this process was asked to end.
    """

    def __init__(
        self,
        jobs: JobStore,
        lease: JobLease,
        request: RunRequest,
        stop: asyncio.Event,
        *,
        clock: Clock,
        sleep: Sleep,
        listener: FollowListener,
    ) -> None:
        self._jobs, self._lease, self._request, self._stop = jobs, lease, request, stop
        self._clock, self._sleep = clock, sleep
        self._listener = listener
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
        while not await self._tried(self._lease.acquire):
            held = await self._tried(self._lease.held)
            seen = seen or held
            if held is not None:
                self._since = self._since or held.fence
                await self._tried(partial(self._look, held, held != seen))
            if self.job is not None and (at_rest(self.job) or self._stop.is_set()):
                return result_of(self.job)
            if self._stop.is_set():
                raise Conflict("Stopped before the job began.", code=STOPPED)
            await self._sleep(RETRY_S)
        result = await self._result_meanwhile()
        self._since = self._since or self._lease.fence
        if result is not None:
            await self._lease.release()
        return result

    async def _look(self, held: Lease, renewed: bool) -> None:
        """At the job that this request came to; at first, at what the holder works on."""
        if self.job is None:
            driven = await self._driven_under(held.fence)
            if driven is None:
                return
            if not self._request.means(driven):
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
            self.job = await self._tried(partial(self._present, self.job))
        elif self._since is not None:
            latest = await self._tried(self._latest_alike)
            if latest is not None and latest.fence >= self._since:
                await self._give_up_own(latest)
                self.job = latest
        # What failed while it was followed has its result; it is not tried again at once.
        return None if self.job is None or not at_rest(self.job) else result_of(self.job)

    async def _present(self, job: Job) -> Job:
        """`job` as it is now. One of equal parameters that was driven after it takes its place: of
        several such jobs only the last one counts, and one of our own is given up."""
        found = await self._jobs.get(job.job_id)
        if found is None:
            raise NotFound(f"No job {job.job_id} any more: start a new one.")
        latest = await self._latest_alike()
        chosen = found if latest is None or latest.fence <= found.fence else latest
        await self._give_up_own(chosen)
        return chosen

    async def _give_up_own(self, chosen: Job) -> None:
        """Cancel the job that this request made, when another one is done in its place."""
        if chosen.job_id == self._request.new_id:
            return
        own = await self._jobs.get(self._request.new_id)
        if own is None or own.final:
            return
        try:
            await self._jobs.end(own.job_id, own.fence, JobState.CANCELLED)
        except Conflict as error:
            if error.code != LEASE_LOST:
                raise

    async def _latest_alike(self) -> Job | None:
        """Of the jobs of equal parameters, the one that was driven last."""
        if not self._request.resume or self._request.job_id is not None:
            return None
        jobs = await self._jobs.recent(self._request.kind, RECENT_JOBS)
        alike = [job for job in jobs if job.params == self._request.params]
        return max(alike, key=lambda job: job.fence, default=None)

    async def _driven_under(self, fence: int) -> Job | None:
        jobs = await self._jobs.unfinished(self._request.kind)
        return next((job for job in jobs if job.fence == fence), None)

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        """With patience for the store once there is a job to see through to its end."""
        return await call() if self.job is None else await tried(call, self._clock, self._sleep)

    async def _tell(self, job: Job) -> None:
        if self._told != job.job_id:
            self._told = job.job_id
            await self._listener.on_follow(job)
        self._listener.on_progress(job)


async def the_named(jobs: JobStore, request: RunRequest, job_id: str) -> Job:
    """The stored job of this id. NotFound; InvalidInput when it is of another kind."""
    job = await jobs.get(job_id)
    if job is None:
        raise NotFound(f"No job {job_id}: check the id.", details={"job_id": job_id})
    if job.kind != request.kind:
        raise InvalidInput(f"Job {job_id} is a {job.kind}, not a {request.kind}.")
    return job


def busy(running: Job) -> Conflict:
    return Conflict(
        f"Job {running.job_id} is running: wait for it, pause it or cancel it.",
        code="busy",
        details={"job_id": running.job_id, "kind": running.kind},
    )
