"""Workers of a bulk job as Ray actors. They belong to their driver: Ray ends them with it."""

import asyncio
import contextlib
import importlib
import logging
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from jobs.spec import JobSpec
from rayapp.bulk.lease import JobRate, PartitionSteps
from rayapp.bulk.model import Job, PartitionRow
from rayapp.bulk.ports import JobWork, WorkerLost
from rayapp.container import bootstrap
from rayapp.core.errors import JobsDown, RayappError
from rayapp.core.logging import configure_logging
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.model import Settings

log = logging.getLogger("rayapp.jobs")
# A cluster that adds a node needs minutes; one that is full for longer needs a person.
START_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """How the workers of one run are made.

    Attributes:
        module: its `SPEC` is the kind of job.
        count: workers at most.
        rate: records per second over all of them.
    """

    module: str
    kind: str
    settings: Settings
    count: int
    rate: float | None = None
    gpus: float = 0.0


# The workers yield the CPU to the service beside them: a tenth of the weight of a replica (Linux),
# and all of a core that nobody else wants. Their driver does not: it renews a lease and may hold
# the indexers, so whoever waits for it would wait for everything that goes before it. Beside three
# busy processes of the same terminal a driver that yielded got 0.7 % of a core, and a reindex did
# not end within 15 minutes.
NICENESS = 10
THREADS = Path("/proc/self/task")


def yield_cpu() -> None:
    """Lower the priority of every thread of this process; what it starts inherits that.

    Linux keeps a niceness per thread and gives it to threads made later; elsewhere it belongs to
    the process.
    """
    threads = [int(entry.name) for entry in THREADS.iterdir()] if THREADS.is_dir() else [0]
    for thread in threads:
        try:
            if os.getpriority(os.PRIO_PROCESS, thread) < NICENESS:
                os.setpriority(os.PRIO_PROCESS, thread, NICENESS)
        except ProcessLookupError:  # it ended meanwhile
            continue


class PartitionWorker:
    """One worker. Calls come one after the other, but `stop` may come at any time."""

    def __init__(self, plan: WorkerPlan) -> None:
        configure_logging(plan.settings.logging)
        yield_cpu()
        self._plan = plan
        self._making = asyncio.Lock()
        self._work: JobWork | None = None
        self._params: Mapping[str, Any] | None = None
        self._steps: PartitionSteps | None = None

    async def warm(self, params: Mapping[str, Any]) -> None:
        """Make the work before there is a plan. What fails is tried again by `open`, which tells
        of it."""
        with contextlib.suppress(RayappError):
            await self._made(params)

    async def open(self, job: Job) -> None:
        """Make the work, if it is not yet made, and let it begin; once."""
        work = await self._made(job.params)
        await work.begin(job.facts)
        rate = self._plan.rate and self._plan.rate / self._plan.count
        clock = SystemClock()
        store = bootstrap.Stores(self._plan.settings).jobs
        self._steps = PartitionSteps(store, work, JobRate(rate, clock), clock)

    async def _made(self, params: Mapping[str, Any]) -> JobWork:
        async with self._making:
            if self._work is None or params != self._params:
                if self._work is not None:
                    await self._work.close()
                spec: JobSpec = importlib.import_module(self._plan.module).SPEC
                self._work = await spec.open_work(self._plan.settings, params)
                self._params = params
            return self._work

    async def run(self, row: PartitionRow, fence: int) -> bool:
        assert self._steps is not None
        return await self._steps.run(row, fence)

    async def stop(self) -> None:
        if self._steps is not None:
            self._steps.stop()


class RayWorkers:
    """Implements `Workers`. As many actors as are needed, each for one partition at a time."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._plan = plan
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        # In the order in which Ray gives them room.
        self._warm: deque[Any] = deque()
        self._actors: set[Any] = set()
        self._ready: set[Any] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._made = 0
        self._stopping = False

    def warm(self, params: Mapping[str, Any]) -> None:
        """Start the workers beside the plan: a new one takes seconds to load its model and its
        libraries (5 of the 24 s of a reindex of 30,000 items, our benchmark)."""
        for _ in range(self._plan.count):
            actor = self._new()
            # Its answer is not awaited: `open` finds out whether it works.
            actor.warm.remote(params)
            self._warm.append(actor)

    async def work_on(self, job: Job, row: PartitionRow) -> bool:
        actor = None if self._stopping else await self._worker(job)
        if actor is None:
            return False
        name = f"{self._plan.kind}:{row.index}"
        try:
            done: bool = await actor.run.options(name=name).remote(row, job.fence)
        except RayTaskError as error:
            self._free.put_nowait(actor)
            raise _cause(error) from error
        except RayError as error:
            self._end(actor)
            raise WorkerLost(str(error).splitlines()[0]) from error
        self._free.put_nowait(actor)
        return done

    def stop(self) -> None:
        self._stopping = True
        for actor in self._ready:
            # Its answer is not awaited: who has died has stopped, too.
            actor.stop.remote()
        for _ in range(self._plan.count):
            self._free.put_nowait(None)

    async def close(self) -> None:
        for task in self._starting:
            task.cancel()
        for actor in [*self._actors, *self._warm]:
            self._end(actor)
        self._warm.clear()
        # A driver that follows another one, and then takes over, begins with new workers.
        self._free, self._stopping = asyncio.Queue(), False

    async def _worker(self, job: Job) -> Any:
        """A free worker; a further one is started while there are fewer than wanted. None after
        `stop`."""
        if self._free.empty() and len(self._actors) < self._plan.count:
            self._start(job)
        while True:
            try:
                async with asyncio.timeout(START_TIMEOUT_S):
                    found = await self._free.get()
            except TimeoutError:
                if self._ready:
                    continue  # the cluster has room for fewer workers, and those have work
                raise JobsDown(
                    "The cluster has no room for a worker: lower jobs.worker_cpus, or add nodes."
                ) from None
            if isinstance(found, RayappError):
                raise found
            return found

    def _start(self, job: Job) -> None:
        actor = self._warm.popleft() if self._warm else self._new()
        self._actors.add(actor)
        task = asyncio.create_task(self._open(actor, job))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _new(self) -> Any:
        settings = self._plan.settings.jobs
        self._made += 1
        return (
            ray.remote(PartitionWorker)
            .options(
                name=f"{self._plan.kind}-worker-{self._made}",
                num_cpus=settings.worker_cpus,
                num_gpus=self._plan.gpus,
                max_restarts=0,
            )
            .remote(self._plan)
        )

    async def _open(self, actor: Any, job: Job) -> None:
        """Put the opened worker, or the reason why there is none, before who waits for it."""
        try:
            await actor.open.remote(job)
        except RayTaskError as error:
            self._end(actor)
            self._free.put_nowait(_cause(error))
        except RayError as error:
            self._end(actor)
            self._free.put_nowait(WorkerLost(str(error).splitlines()[0]))
        else:
            self._ready.add(actor)
            if self._stopping:
                actor.stop.remote()
            self._free.put_nowait(actor)

    def _end(self, actor: Any) -> None:
        """For certain: one that only seems dead must not go on beside its successor."""
        self._actors.discard(actor)
        self._ready.discard(actor)
        with contextlib.suppress(RayError, ValueError):
            ray.kill(actor, no_restart=True)


def _cause(error: RayTaskError) -> RayappError:
    """What the work raised, as one sentence."""
    cause = error.cause
    if isinstance(cause, RayappError):
        return cause
    log.error("a worker failed", exc_info=error)
    first = (str(cause).splitlines() or [""])[0][:300]
    return RayappError(
        f"A worker broke with {type(cause).__name__}: {first or 'no message'}; see its log."
    )
