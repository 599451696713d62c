"""How a worker of a reindex goes through its range: reading ahead, resting while people search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from rayapp.core.ports import Clock
from rayapp.index.ports import ItemScan
from rayapp.memory.item import MemoryItem
from rayapp.search.ports import ReceiptStore

Page = tuple[list[MemoryItem], str | None]
Range = tuple[str | None, str | None]

# After a search people may search again for so long, seconds: as the engine takes it.
LIVE_S = 1.0
# A rest is so many times the work before it, up to `MAX_REST_S`: with two workers on two cores
# searches then have three quarters of each, beside an embedder that takes milliseconds.
RESTS = 3.0
# A worker that is asked to stop does so after its rest, so a rest ends soon, seconds.
MAX_REST_S = 2.0


class PagesAhead:
    """Reads the next page of a range while the last one is written.

    A page may be old when it is written: what changed since the plan is followed, and what was
    deleted is looked for, at the end of the job.
    """

    def __init__(self, scan: ItemScan, limit: int) -> None:
        self._scan, self._limit = scan, limit
        self._next: tuple[Range, asyncio.Task[Page]] | None = None

    async def page(self, after: str | None, until: str | None) -> Page:
        """Raises what the reading raised; asked again, it reads again."""
        ahead, self._next = self._next, None
        if ahead is not None and ahead[0] == (after, until):
            items, last = await ahead[1]
        else:
            _drop(ahead)
            items, last = await self._read(after, until)
        if last is not None:
            self._next = (last, until), asyncio.create_task(self._read(last, until))
        return items, last

    def close(self) -> None:
        _drop(self._next)
        self._next = None

    async def _read(self, after: str | None, until: str | None) -> Page:
        return await self._scan.page(after=after, until=until, limit=self._limit)


def _drop(ahead: tuple[Range, asyncio.Task[Page]] | None) -> None:
    """Nobody asks for it any more, nor for why it failed."""
    if ahead is not None:
        ahead[1].add_done_callback(lambda task: task.cancelled() or task.exception())
        ahead[1].cancel()


class Courtesy:
    """Lets the searches of people go first: while there are any, each step is followed by a rest.

    A search leaves a receipt, so another newest one says that people searched. The times in it are
    those of another machine and are not looked at.
    """

    def __init__(
        self, receipts: ReceiptStore, clock: Clock, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._receipts, self._clock, self._sleep = receipts, clock, sleep
        self._known: str | None = None
        self._looked = False
        self._searched_s: float | None = None
        self._worked_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Around one step; the rest comes before the next one, when the step is checkpointed."""
        if await self._live():
            await self._sleep(min(MAX_REST_S, RESTS * self._worked_s))
        began_s = self._clock.monotonic()
        try:
            yield
        finally:
            self._worked_s = self._clock.monotonic() - began_s

    async def _live(self) -> bool:
        newest = await self._receipts.recent(1)
        known, self._known = self._known, newest[0].receipt_id if newest else None
        now_s = self._clock.monotonic()
        # What came before the first look is no sign of people who are there now.
        if self._looked and self._known is not None and self._known != known:
            self._searched_s = now_s
        self._looked = True
        return self._searched_s is not None and now_s - self._searched_s < LIVE_S
