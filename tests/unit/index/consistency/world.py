"""A service on fakes whose index can be broken, and sweeps of it whose pauses cost no time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rayapp.bulk.model import Finish
from rayapp.container import bootstrap
from rayapp.container.understanding import orphans_of
from rayapp.core.runtime import Runtime
from rayapp.index.consistency.comparison import Comparison, Repairs
from rayapp.index.consistency.rules import Drift
from rayapp.index.consistency.service import ConsistencyService, SweepLog, SweepStores, SweepWork
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import WriteScope
from tests.support.drift import inject
from tests.support.harness import Harness
from tests.support.work_by_hand import run_by_hand

TEXTS = ("The budget was approved", "התקציב אושר", "Dana moved to Haifa", "דנה עברה לחיפה")


class SweepWorld:
    """`await SweepWorld.open(n)`: n items in truth and index, and some archived ones.

    `slept` holds the pauses that were asked for; `meanwhile` runs in each of them.
    """

    harness: Harness
    runtime: Runtime

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.meanwhile: Callable[[], Awaitable[Any]] | None = None

    @classmethod
    async def open(cls, count: int = 24, *, archived: int = 3, **consistency: Any) -> SweepWorld:
        self = cls()
        self.harness = await Harness.open(
            consistency={"partitions": 4, "batch_size": 5, **consistency}
        )
        h = self.harness
        self.runtime = bootstrap.runtime_of(h.settings, h.metrics, h.clock)
        for number in range(count + archived):
            memory_id = await h.store(
                f"{TEXTS[number % 4]} {number}", user=f"user-{number % 3}", memory_id=f"m-{number}"
            )
            if number >= count:
                scope = WriteScope(f"user-{number % 3}")
                await h.services.memories.archive(scope, memory_id)
        await h.drain()
        return self

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.harness.clock.advance(seconds)
        if self.meanwhile is not None:
            await self.meanwhile()

    async def items(self) -> list[MemoryItem]:
        """All rows in the order of their points."""
        found, _ = await self.harness.scan.page(after=None, until=None, limit=10_000)
        return list(found)

    async def break_(self, kind: Drift, *items: MemoryItem) -> list[str]:
        return await inject(self.harness.index, kind, items, self.harness.schema)

    def comparison(self) -> Comparison:
        h = self.harness
        return Comparison(h.scan, h.index, h.quarantine)

    def log(self) -> SweepLog:
        return SweepLog(self.harness.events, "a test", self.runtime)

    def service(self) -> ConsistencyService:
        return ConsistencyService(
            self.comparison(), self.log(), runtime=self.runtime, sleep=self.sleep
        )

    def work(
        self, *, sample: int | None = None, repair: bool = False, quarantine: bool = False
    ) -> SweepWork:
        return SweepWork(
            self.comparison(),
            SweepStores(
                items=self.harness.items,
                graphs=self.harness.graphs,
                derived=orphans_of(self.harness.container.stores, self.runtime),
            ),
            self.log(),
            sample=sample,
            repairs=Repairs(repair=repair, quarantine=quarantine),
            runtime=self.runtime,
            sleep=self.sleep,
        )

    async def swept(self, **options: Any) -> Finish:
        """A whole job with a new work, as in a process of its own, for each single step."""
        return await run_by_hand(lambda: self.work(**options))
