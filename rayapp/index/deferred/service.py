"""Items that the index does not hold yet: how many, make them due now, and find lost points.

A search that finds nothing is the first sign that a user's points are gone: `nudge` then looks,
beside the requests, and asks for what is missing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Literal

from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.index.ports import ItemScan, Requeue, VectorIndex
from rayapp.memory.item import IndexOp, MemoryItem, SyncState
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ItemFilter, ReadScope

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


class DeferredService:
    """Implements `index.ports.Deferred`; `nudge` is for the search."""

    def __init__(
        self, store: MemoryStore, index: VectorIndex, scan: ItemScan, *, runtime: Runtime
    ) -> None:
        self._store = store
        self._index = index
        self._scan = scan
        self._clock = runtime.clock
        self._metrics = runtime.metrics
        self._looked: OrderedDict[str, float] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def waiting(self, user_id: str | None) -> int:
        return await self._store.waiting(user_id)

    async def hasten(self, user_id: str | None) -> int:
        return await self._store.hasten(user_id)

    def nudge(self, scope: ReadScope) -> None:
        """A search of this user found nothing: look for the reason, without being waited for."""
        user_id, now = scope.user_id, self._clock.monotonic()
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
        self._metrics.count("empty_search_looks", found=found)

    async def _ask_for_missing(self, user_id: str) -> Found:
        if await self._store.waiting(user_id):
            await self._store.hasten(user_id)
            return "waiting"
        own, active = ReadScope(user_id, include_shared=False), ItemFilter()
        if await self._store.count(own, active) == await self._index.count(own, active):
            return "nothing"
        missing = await self._missing(own, active)
        asked = await self._scan.requeue(
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
            page = await self._store.page(own, active, sort="recent", limit=PAGE, cursor=cursor)
            synced = [one for one in page.items if one.index.sync_state is SyncState.SYNCED]
            points = await self._index.retrieve([one.point_id for one in synced])
            there = {point.point_id for point in points}
            missing += [one for one in synced if one.point_id not in there]
            cursor = page.next_cursor
            if cursor is None or len(missing) >= MAX_MISSING:
                break
        return missing[:MAX_MISSING]
