"""Stores that outlive every driver of a job, and drivers on them: what the runner's tests share."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rayapp.bulk.lease import RunRequest
from rayapp.bulk.rules import JobResult
from rayapp.bulk.runner import JobRunner
from rayapp.core.settings.model import JobsSettings
from tests.support.clock import FakeClock
from tests.support.stores.jobs import InMemoryJobStore
from tests.support.stores.stores import InMemoryLeaseStore
from tests.unit.bulk.fake_workers import CountingWork, DriverKilled, LocalWorkers, World

KIND = "counting"


class Rig:
    """Stores that outlive every driver, and drivers on them."""

    def __init__(self, world: World | None = None, jobs: InMemoryJobStore | None = None) -> None:
        self.world = world or World()
        self.clock = FakeClock()
        self.jobs = jobs or InMemoryJobStore(self.clock)
        self.leases = InMemoryLeaseStore(self.clock)
        self.ids = iter(range(1, 1_000))
        self.workers: list[LocalWorkers] = []
        self.settings = JobsSettings()

    def driver(self, process: str = "one") -> JobRunner:
        self.workers.append(LocalWorkers(self.jobs, self.world))
        return JobRunner(
            self.jobs,
            self.leases,
            self.workers[-1],
            self.open_work,
            settings=self.settings,
            clock=self.clock,
            process=process,
            sleep=self.sleep,
        )

    async def open_work(self, _params: Mapping[str, Any]) -> CountingWork:
        return CountingWork(self.world)

    async def sleep(self, seconds: float) -> None:
        """Wall time passes only while nothing else can go on."""
        for _ in range(50):
            await asyncio.sleep(0)
        self.clock.advance(seconds)

    def request(self, **changes: Any) -> RunRequest:
        # The order of ids is that of their making, as with UUIDv7.
        request = RunRequest(kind=KIND, params={"a": 1}, new_id=f"job-{next(self.ids):04}")
        return replace(request, **changes)

    async def run(self, **changes: Any) -> JobResult:
        self.clock.advance(1)
        return await self.driver().run(self.request(**changes))

    async def run_until_killed(self, process: str) -> JobResult | None:
        """None when the driver died; its lease then runs out by itself."""
        runner = self.driver(process)
        release, self.leases.release = self.leases.release, _dead  # type: ignore[method-assign]
        try:
            result = await runner.run(self.request())
        except DriverKilled:
            return None
        finally:
            self.leases.release = release  # type: ignore[method-assign]
        return result


async def _dead(_lease: object) -> None:
    """A killed process releases nothing."""


def everything(world: World) -> list[tuple[int, int]]:
    return [(n, record) for n, size in enumerate(world.sizes) for record in range(size)]
