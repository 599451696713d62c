"""What a worker of a bulk job does: step by step through a partition, each step checkpointed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rayapp.bulk.model import JobWish, Partition, PartitionRow, Step
from rayapp.bulk.ports import JobStore, JobWork
from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, DependencyDown, NotFound, Overloaded, RateLimited
from rayapp.core.ports import Clock
from rayapp.core.retry import RetryPolicy, retry
from rayapp.core.token_bucket import TokenBucket

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

PASSING = (DependencyDown, Overloaded, RateLimited, DeadlineExceeded)
# About 8 s in the mean, 15 s at most: a restarted mongod or vector engine answers within 5 s.
STEP_RETRY = RetryPolicy(attempts=6, base_s=0.5, max_s=8.0)
# Beside the pauses stand the calls themselves, each with its own timeout.
STEP_RETRY_S = 120.0
# A worker that waits for its rate looks this often whether it should stop, seconds.
PACE_SLICE_S = 0.5


async def tried(call: Callable[[], Awaitable[T]], clock: Clock, sleep: Sleep) -> T:
    """Repeat a harmless-to-repeat `call` while a dependency is away, for some seconds."""
    return await retry(
        call,
        policy=STEP_RETRY,
        deadline=Deadline(STEP_RETRY_S, clock.monotonic),
        retryable=PASSING,
        sleep=sleep,
        random=random.random,
    )


class Pace:
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


class PartitionSteps:
    """The loop of one worker, over one partition at a time."""

    def __init__(
        self,
        store: JobStore,
        work: JobWork,
        pace: Pace,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store, self._work, self._pace = store, work, pace
        self._clock, self._sleep = clock, sleep
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
            step = await tried(
                lambda at=cursor: self._work.step(partition, at),  # type: ignore[misc]
                self._clock,
                self._sleep,
            )
            wish = await self._checkpoint(row, fence, step, steps)
            if wish is not JobWish.RUN:
                return False
            if step.cursor is None:
                return True
            cursor, steps = step.cursor, steps + 1
            await self._pace.spend(step.done, lambda: self._given_up(row.job_id))
        return False

    async def _checkpoint(self, row: PartitionRow, fence: int, step: Step, steps: int) -> JobWish:
        """Store `step` exactly once: a lost answer is looked up before it is written again."""
        unsure = False

        async def save() -> JobWish:
            nonlocal unsure
            if unsure and await self._steps_of(row) > steps:
                return await self._wish(row.job_id)
            unsure = True
            return await self._store.checkpoint(row.job_id, row.index, fence, step)

        return await tried(save, self._clock, self._sleep)

    async def _steps_of(self, row: PartitionRow) -> int:
        rows = await self._store.partitions(row.job_id)
        return next(one.steps for one in rows if one.index == row.index)

    async def _wish(self, job_id: str) -> JobWish:
        job = await self._store.get(job_id)
        if job is None:
            raise NotFound(f"Job {job_id} is gone: start a new one.")
        return job.wish

    async def _given_up(self, job_id: str) -> bool:
        return self._stopping or await self._wish(job_id) is not JobWish.RUN
