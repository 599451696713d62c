"""The work of the job `deferred`: make waiting items due, and follow them until none waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rayapp.domain.jobs import Finish, Partition, PartitionRow, Plan, Step
from rayapp.domain.scope import ItemFilter, ReadScope
from rayapp.protocols import MemoryStore

Sleep = Callable[[float], Awaitable[None]]
# Between two looks at the queue, seconds; an indexer writes a batch in about that time.
POLL_S = 0.5
# Looks without any progress after which what is left counts as failed: two minutes, far above the
# time of one batch on a busy machine. Nobody is working then, or every item is refused.
QUIET_LOOKS = 240
# Failed items named in the report.
FAILURES_SHOWN = 20


class DeferredWork:
    """Implements `JobWork` in one partition: the service's own indexer does the writing."""

    def __init__(
        self, store: MemoryStore, *, user_id: str | None, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._store = store
        self._user_id = user_id
        self._sleep = sleep

    async def plan(self) -> Plan:
        total = await self._store.waiting(self._user_id)
        return Plan(
            partitions=[Partition(index=0, payload={"user_id": self._user_id})], total=total
        )

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Nothing needs to exist."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        """The first one makes everything due; each later one looks once how many are left."""
        if cursor is None:
            asked = await self._store.hasten(self._user_id)
            left = await self._left()
            return Step(cursor={"left": left, "quiet": 0}, counts={"hastened": asked})
        before, quiet = int(cursor["left"]), int(cursor["quiet"]) + 1
        if before:
            await self._sleep(POLL_S)
        left = await self._left()
        done = max(0, before - left)
        if left == 0:
            return Step(cursor=None, done=done)
        if done:
            quiet = 0
        if quiet >= QUIET_LOOKS:
            return Step(cursor=None, done=left, failed=left, counts={"stuck": left})
        # New memories may have come in meanwhile: what is left may also have grown.
        return Step(cursor={"left": left, "quiet": quiet}, done=done)

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        left = await self._store.waiting(self._user_id)
        failed = [
            {
                "memory_id": item.memory_id,
                "user_id": item.user_id,
                "error": item.index.last_error,
            }
            for item in await self._store.failures(FAILURES_SHOWN)
            if self._user_id in (None, item.user_id)
        ]
        stuck = sum(row.counts.get("stuck", 0) for row in partitions)
        report = {
            "hastened": sum(row.counts.get("hastened", 0) for row in partitions),
            "indexed": sum(row.done - row.failed for row in partitions),
            "stuck": stuck,
            "waiting": left,
            "failures": failed,
        }
        return Finish(report=report, complete=not failed and not stuck)

    async def close(self) -> None:
        """Holds nothing."""

    async def _left(self) -> int:
        """Items that the indexer will still try; those that gave up again are not among them."""
        if self._user_id is None:
            return (await self._store.backlog()).pending
        own = ReadScope(self._user_id, include_shared=False)
        if not await self._store.pending(own, ItemFilter(statuses=None), 1):
            return 0
        return await self._store.waiting(self._user_id)
