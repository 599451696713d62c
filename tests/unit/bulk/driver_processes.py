"""Drivers of one job as processes that stall, die, and have writes under way when they do."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayapp.bulk.lease import JobRate, PartitionSteps, RunRequest
from rayapp.bulk.model import Job, Partition, PartitionRow, Plan, Step
from rayapp.bulk.rules import JobResult
from rayapp.bulk.runner import JobRunner
from rayapp.core.settings.model import JobsSettings
from tests.support.stores.jobs import InMemoryJobStore
from tests.support.stores.stores import InMemoryLeaseStore
from tests.unit.bulk.fake_workers import CountingWork, World
from tests.unit.bulk.virtual_time import LoopClock

KIND = "counting"
# What one step, the plan and the finish take, seconds.
WORK_S = 1.0


@dataclass(frozen=True)
class Trouble:
    """What happens at one call of a process to a store.

    Attributes:
        stall_s: the whole process stands still before the call.
        late_s: the call is that long under way, and arrives even when its sender has died.
        stall_after_s: the process stands still after the call.
        dies: the process is killed while the call is under way.
    """

    stall_s: float = 0.0
    late_s: float = 0.0
    stall_after_s: float = 0.0
    dies: bool = False


class Process:
    """One process: all its calls and pauses wait while it stalls, and end when it is dead."""

    def __init__(self, name: str, troubles: Mapping[int, Trouble] | None = None) -> None:
        self.name, self._troubles = name, troubles or {}
        self._calls = 0
        self._awake_at = 0.0
        self._late: set[asyncio.Future[Any]] = set()
        self.died = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._awake()

    async def call(self, send: Callable[[], Awaitable[Any]]) -> Any:
        self._calls += 1
        trouble = self._troubles.get(self._calls, Trouble())
        self._stall(trouble.stall_s)
        await self._awake()
        sent = asyncio.ensure_future(self._arrives(send, trouble.late_s))
        self._late.add(sent)
        sent.add_done_callback(self._gone)
        if trouble.dies:
            self.died.set()
            await self._awake()
        answer = await asyncio.shield(sent)
        self._stall(trouble.stall_after_s)
        await self._awake()
        return answer

    def _stall(self, seconds: float) -> None:
        self._awake_at = max(self._awake_at, asyncio.get_running_loop().time() + seconds)

    def _gone(self, sent: asyncio.Future[Any]) -> None:
        self._late.discard(sent)
        if not sent.cancelled():
            sent.exception()

    async def _arrives(self, send: Callable[[], Awaitable[Any]], late_s: float) -> Any:
        await asyncio.sleep(late_s)
        return await send()

    async def _awake(self) -> None:
        while True:
            if self.died.is_set():
                raise asyncio.CancelledError
            wait_s = self._awake_at - asyncio.get_running_loop().time()
            if wait_s <= 0:
                return
            await asyncio.sleep(wait_s)


class Through:
    """A store as one process reaches it."""

    def __init__(self, store: Any, process: Process) -> None:
        self._store, self._process = store, process

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self._store, name)

        async def through(*args: Any, **options: Any) -> Any:
            return await self._process.call(lambda: call(*args, **options))

        return through


class RecordedJobs(InMemoryJobStore):
    """Keeps the fence of every write that was accepted, in order."""

    def __init__(self) -> None:
        super().__init__(LoopClock())
        self.writes: list[tuple[str, int]] = []

    async def planned(self, job_id: str, fence: int, plan: Plan) -> None:
        await super().planned(job_id, fence, plan)
        self.writes.append((job_id, fence))

    async def checkpoint(self, job_id: str, index: int, fence: int, step: Step) -> Any:
        wish = await super().checkpoint(job_id, index, fence, step)
        self.writes.append((job_id, fence))
        return wish

    async def progress(self, job_id: str, fence: int) -> Job:
        job = await super().progress(job_id, fence)
        self.writes.append((job_id, fence))
        return job

    async def stage(self, job_id: str, fence: int, name: str) -> None:
        await super().stage(job_id, fence, name)
        self.writes.append((job_id, fence))

    async def end(self, job_id: str, fence: int, *args: Any, **options: Any) -> Job:
        job = await super().end(job_id, fence, *args, **options)
        self.writes.append((job_id, fence))
        return job


class SlowWork(CountingWork):
    """Every part of it takes time."""

    async def plan(self) -> Plan:
        await asyncio.sleep(WORK_S)
        return await super().plan()

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        await asyncio.sleep(WORK_S)
        return await super().step(partition, cursor)

    async def finish(self, partitions: Sequence[PartitionRow]) -> Any:
        await asyncio.sleep(WORK_S)
        return await super().finish(partitions)


class ProcessWorkers:
    """`Workers` as one process of their own, which outlives a killed driver for a while."""

    def __init__(self, jobs: InMemoryJobStore, world: World, process: Process) -> None:
        self._jobs, self._world = jobs, world
        self._first, self._process = process, process
        self._running: set[PartitionSteps] = set()
        self._tasks: set[asyncio.Task[bool]] = set()
        self._stopping = False

    async def work_on(self, job: Job, row: PartitionRow) -> bool:
        if self._stopping:
            return False
        clock = LoopClock()
        store: Any = Through(self._jobs, self._process)
        rate = JobRate(None, clock, self._process.sleep)
        steps = PartitionSteps(store, SlowWork(self._world), rate, clock, self._process.sleep)
        self._running.add(steps)
        task = asyncio.create_task(steps.run(row, job.fence))
        self._tasks.add(task)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    def stop(self) -> None:
        self._stopping = True
        for steps in self._running:
            steps.stop()

    async def close(self) -> None:
        """They are killed; a driver that goes on gets new ones."""
        self.kill()
        self._process, self._stopping = Process(f"{self._first.name} again"), False

    def kill(self) -> None:
        self._process.died.set()
        for task in self._tasks:
            task.cancel()
        self._running.clear()


@dataclass
class Cluster:
    """One store, and whoever drives on it."""

    world: World
    lease_s: float = 15.0
    jobs: RecordedJobs = field(default_factory=RecordedJobs)
    leases: InMemoryLeaseStore = field(default_factory=lambda: InMemoryLeaseStore(LoopClock()))
    drivers: int = 0
    seen: list[tuple[str, Job]] = field(default_factory=list)
    followed: list[tuple[str, str]] = field(default_factory=list)
    runners: dict[str, JobRunner] = field(default_factory=dict)

    async def run(
        self,
        process: Process,
        worker_troubles: Mapping[int, Trouble] | None = None,
        *,
        linger_s: float = 0.0,
        **request: Any,
    ) -> JobResult | None:
        """What a driver ends with; None when it was killed: its workers die `linger_s` later."""
        self.drivers += 1
        workers = ProcessWorkers(
            self.jobs, self.world, Process(f"{process.name}'s workers", worker_troubles)
        )
        jobs: Any = Through(self.jobs, process)
        leases: Any = Through(self.leases, process)
        runner = JobRunner(
            jobs,
            leases,
            workers,
            self.open_work,
            settings=JobsSettings(lease_s=self.lease_s),
            clock=LoopClock(),
            process=process.name,
            sleep=process.sleep,
        )
        self.runners[process.name] = runner
        made = {"params": {"a": 1}, "new_id": f"job-{self.drivers:04}"} | request
        running = asyncio.create_task(
            runner.run(
                RunRequest(kind=KIND, **made),
                lambda job: self.seen.append((process.name, job)),
                lambda job: self.followed.append((process.name, job.job_id)),
            )
        )
        death = asyncio.create_task(process.died.wait())
        await asyncio.wait({running, death}, return_when=asyncio.FIRST_COMPLETED)
        if not process.died.is_set():
            death.cancel()
            return running.result()
        # Nothing of it goes on, and what it would still do in its `finally` it cannot do.
        workers.close = _nothing  # type: ignore[method-assign]
        running.cancel()
        await asyncio.wait({running})
        asyncio.get_running_loop().call_later(linger_s, workers.kill)
        return None

    async def open_work(self, _params: Mapping[str, Any]) -> SlowWork:
        return SlowWork(self.world)

    def writers_took_turns(self) -> bool:
        """Per job, no write of a fence came after one of a higher fence."""
        for job_id in {job_id for job_id, _ in self.jobs.writes}:
            fences = [fence for one, fence in self.jobs.writes if one == job_id]
            if fences != sorted(fences):
                return False
        return True


async def _nothing() -> None:
    """A dead process closes nothing."""
