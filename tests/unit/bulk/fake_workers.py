"""A counting job, and workers in this process that die when a test says so."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayapp.bulk.lease import JobRate, PartitionSteps
from rayapp.bulk.model import Finish, Job, Partition, PartitionRow, Plan, Step
from rayapp.bulk.ports import JobStore, WorkerLost
from rayapp.core.runtime import SystemClock

CLOCK = SystemClock()


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


class DriverKilled(BaseException):
    """kill -9 of the process that runs the driver."""


@dataclass
class World:
    """What the job did, and what is to happen to it. Kept over every restart.

    Attributes:
        sizes: of the partitions.
        kill_driver_at, kill_worker_at: numbers of awaits (of steps and checkpoints) at which the
            process dies, each once.
        worked: what every step worked on, by partition.
    """

    sizes: Sequence[int] = (5, 0, 3)
    batch: int = 2
    kill_driver_at: set[int] = field(default_factory=set)
    kill_worker_at: set[int] = field(default_factory=set)
    moments: int = 0
    plans: int = 0
    begun: int = 0
    finished: int = 0
    closed: int = 0
    worked: list[tuple[int, int]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    complete: bool = True
    failed_each: int = 0

    def moment(self) -> None:
        """Between two awaits anything may die."""
        self.moments += 1
        if self.moments in self.kill_driver_at:
            raise DriverKilled
        if self.moments in self.kill_worker_at:
            raise WorkerLost("The worker died.")

    def driver_moment(self) -> None:
        """The same, where no worker is."""
        self.moments += 1
        if self.moments in self.kill_driver_at:
            raise DriverKilled


class CountingWork:
    """Partition n has the records 0..sizes[n]-1, each step takes `batch` of them."""

    def __init__(self, world: World) -> None:
        self._world, self._facts = world, None

    async def plan(self) -> Plan:
        self._world.plans += 1
        self._world.driver_moment()
        partitions = [
            Partition(index=n, payload={"size": size}) for n, size in enumerate(self._world.sizes)
        ]
        return Plan(partitions=partitions, total=sum(self._world.sizes), facts={"plan": 1})

    async def begin(self, facts: Mapping[str, Any]) -> None:
        assert facts == {"plan": 1}
        self._world.begun += 1

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        at = cursor["at"] if cursor else 0
        end = min(at + self._world.batch, partition.payload["size"])
        self._world.moment()
        await asyncio.sleep(0)
        if self._world.errors:
            raise self._world.errors.pop(0)
        self._world.worked += [(partition.index, n) for n in range(at, end)]
        return Step(
            cursor={"at": end} if end < partition.payload["size"] else None,
            done=end - at,
            failed=self._world.failed_each,
            counts={"seen": end - at},
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        self._world.driver_moment()
        await asyncio.sleep(0)
        self._world.finished += 1
        total = sum(row.done for row in partitions)
        return Finish(report={"total": total}, complete=self._world.complete)

    async def close(self) -> None:
        self._world.closed += 1


class LocalWorkers:
    """`Workers` without processes; `World.moment` decides who dies."""

    def __init__(self, store: JobStore, world: World) -> None:
        self._store, self._world = store, world
        self._running: set[PartitionSteps] = set()
        self._stopping = False
        self.calls: list[int] = []
        self.closed = False
        self.when_closed: Callable[[], None] = lambda: None

    async def work_on(self, job: Job, row: PartitionRow) -> bool:
        if self._stopping:
            return False
        self.calls.append(row.index)
        steps = PartitionSteps(
            self._store, CountingWork(self._world), JobRate(None, CLOCK), CLOCK, no_sleep
        )
        self._running.add(steps)
        try:
            done = await steps.run(row, job.fence)
            self._world.moment()
            return done
        finally:
            self._running.discard(steps)

    def stop(self) -> None:
        self._stopping = True
        for steps in self._running:
            steps.stop()

    async def close(self) -> None:
        self.closed = True
        self.when_closed()
