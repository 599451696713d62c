"""The work of the job `deferred`: make waiting items due, and follow them until all had a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step
from rayapp.index.ports import ItemScan
from rayapp.memory.ports import MemoryStore

Sleep = Callable[[float], Awaitable[None]]
# Between two looks at the queue, seconds; an indexer writes a batch in about that time.
POLL_S = 0.5
# Looks without any progress after which what is left counts as failed: two minutes, far above the
# time of one batch on a busy machine. Nobody is working then, or every item is refused.
QUIET_LOOKS = 240
# Failed items named in the report.
FAILURES_SHOWN = 20


class DeferredWork:
    """Implements `JobWork` in one partition: the service's own indexer does the writing.

    Only what waited at its start counts. A busy service always has a few items waiting, and
    following those as well would never end.
    """

    def __init__(
        self,
        store: MemoryStore,
        scan: ItemScan,
        *,
        user_id: str | None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store, self._scan = store, scan
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
            # The store's clock, after what was made due: those wait since a moment before it.
            since = await self._scan.now()
            left = await self._left(since)
            return Step(
                cursor={"since": since.isoformat(), "left": left, "quiet": 0},
                counts={"hastened": asked},
            )
        before, quiet = int(cursor["left"]), int(cursor["quiet"]) + 1
        if before:
            await self._sleep(POLL_S)
        left = await self._left(datetime.fromisoformat(cursor["since"]))
        done = max(0, before - left)
        if left == 0:
            return Step(cursor=None, done=done)
        if done:
            quiet = 0
        if quiet >= QUIET_LOOKS:
            return Step(cursor=None, done=left, failed=left, counts={"stuck": left})
        return Step(cursor={**cursor, "left": left, "quiet": quiet}, done=done)

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        left = await self._store.waiting(self._user_id)
        failed = [
            {
                "memory_id": item.memory_id,
                "user_id": item.user_id,
                "error": item.index.last_error,
            }
            for item in await self._store.failures(FAILURES_SHOWN, self._user_id)
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

    async def _left(self, since: datetime) -> int:
        """Items that the indexer will still try; those that gave up again are not among them."""
        return await self._store.waiting_since(self._user_id, since)
