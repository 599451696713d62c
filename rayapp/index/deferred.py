"""Items that the index does not hold yet: how many, make them due, follow them to their turn."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any, Literal

from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.index.ports import ItemScan, Requeue, VectorIndex
from rayapp.memory.item import IndexOp, MemoryItem, SyncState
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope

# The work of the job `deferred`: make waiting items due, and follow them until all had a turn.

Sleep = Callable[[float], Awaitable[None]]
# Between two looks at the queue, seconds; an indexer writes a batch in about that time.
POLL_S = 0.5
# Looks without any progress after which what is left counts as failed: two minutes, far above the
# time of one batch on a busy machine. Nobody is working then, or every item is refused.
QUIET_LOOKS = 240
# Failed items named in the report.
FAILURES_SHOWN = 20


@dataclass(eq=False)
class DeferredWork:
    """Implements `JobWork` in one partition: the service's own indexer does the writing.

    Only what waited at its start counts. A busy service always has a few items waiting, and
    following those as well would never end.
    """

    store: MemoryStore
    scan: ItemScan
    _: KW_ONLY
    user_id: str | None
    sleep: Sleep = asyncio.sleep

    async def plan(self) -> Plan:
        total = await self.store.waiting(self.user_id)
        return Plan(partitions=[Partition(index=0, payload={"user_id": self.user_id})], total=total)

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Nothing needs to exist."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        """The first one makes everything due; each later one looks once how many are left."""
        if cursor is None:
            asked = await self.store.requeue(self.user_id)
            # The store's clock, after what was made due: those wait since a moment before it.
            since = await self.scan.now()
            left = await self._left(since)
            return Step(
                cursor={"since": since.isoformat(), "left": left, "quiet": 0},
                counts={"hastened": asked},
            )
        before, quiet = int(cursor["left"]), int(cursor["quiet"]) + 1
        if before:
            await self.sleep(POLL_S)
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
        left = await self.store.waiting(self.user_id)
        failed = [
            {"memory_id": item.memory_id, "user_id": item.user_id, "error": item.index.last_error}
            for item in await self.store.failures(FAILURES_SHOWN, self.user_id)
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
        return await self.store.waiting_since(self.user_id, since)


# Items that the index does not hold yet: how many, make them due now, and find lost points.
#
# A search that finds nothing is the first sign that points are gone: `check_missing` then looks,
# beside the requests, and asks for what is missing.

log = logging.getLogger("rayapp.deferred")
# Least time between two looks at the same user, seconds: an empty answer is mostly just that, and
# the indexer needs a few seconds to show what a look has changed.
COOLDOWN_S = 30.0
# Users whose last look is remembered; the one looked at longest ago is forgotten first.
MAX_USERS = 1_000
# Looks at the same time; a search that finds nothing while all are taken asks for none.
MAX_LOOKS = 4
# Missing points asked for by one look (client contract: 500 items are marked at once).
MAX_MISSING = 500
# Items compared in one round trip, and by one look: beyond that a sweep is the right tool.
PAGE = 500
MAX_COMPARED = 10_000

Found = Literal["waiting", "missing", "nothing", "failed"]


@dataclass(eq=False)
class DeferredService:
    """Items that the index does not hold yet, of one user or of all (None).

    `check_missing` is for the search.
    """

    store: MemoryStore
    index: VectorIndex
    scan: ItemScan
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._looked: OrderedDict[str, float] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def waiting(self, user_id: str | None) -> int:
        return await self.store.waiting(user_id)

    async def requeue(self, user_id: str | None) -> int:
        """Make waiting and failed items due now; how many there were."""
        return await self.store.requeue(user_id)

    def check_missing(self, scope: ReadScope) -> None:
        """A search of this user found nothing: look for the reason, without being waited for."""
        user_id, now = scope.user_id, self.runtime.clock.monotonic()
        last = self._looked.get(user_id)
        if (last is not None and now - last < COOLDOWN_S) or len(self._tasks) >= MAX_LOOKS:
            return
        self._looked[user_id] = now
        self._looked.move_to_end(user_id)
        if len(self._looked) > MAX_USERS:
            self._looked.popitem(last=False)
        task = asyncio.get_running_loop().create_task(self._look(user_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until no look goes on."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _look(self, user_id: str) -> None:
        """Nobody waits for it, so an error ends here."""
        found: Found = "failed"
        try:
            found = await self._ask_for_missing(user_id)
        except RayappError as error:
            log.warning("the look after an empty search waits: %s", error.message)
        except Exception:  # a defect here must not end the loop of the requests
            log.exception("the look after an empty search failed")
        self.runtime.metrics.count("empty_search_looks", found=found)

    async def _ask_for_missing(self, user_id: str) -> Found:
        if await self.store.waiting(user_id):
            await self.store.requeue(user_id)
            return "waiting"
        own = ReadScope(user_id, include_shared=False)
        active = ItemFilter(include_attached=True)
        if await self.store.count(own, active) == await self.index.count(own, active):
            return "nothing"
        missing = await self._missing(own, active)
        asked = await self.scan.requeue(
            [
                Requeue(point_id=item.point_id, rev=item.index.rev, op=IndexOp.VECTOR)
                for item in missing
            ]
        )
        if asked:
            log.warning("%d points were missing in the index: asked for again", asked)
        return "missing" if asked else "nothing"

    async def _missing(self, own: ReadScope, active: ItemFilter) -> list[MemoryItem]:
        """Synced items of the user without a point, newest first, at most `MAX_MISSING`."""
        missing: list[MemoryItem] = []
        cursor: str | None = None
        for _ in range(MAX_COMPARED // PAGE):
            page = await self.store.page(own, active, ItemQuery(limit=PAGE, cursor=cursor))
            synced = [one for one in page.items if one.index.sync_state is SyncState.SYNCED]
            points = await self.index.retrieve([one.point_id for one in synced])
            there = {point.point_id for point in points}
            missing += [one for one in synced if one.point_id not in there]
            cursor = page.next_cursor
            if cursor is None or len(missing) >= MAX_MISSING:
                break
        return missing[:MAX_MISSING]
