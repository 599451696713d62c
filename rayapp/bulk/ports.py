"""The seams of bulk jobs: their store, their leases, their workers.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypedDict, Unpack

from rayapp.bulk.model import (
    DesiredState,
    Finish,
    Job,
    JobState,
    Partition,
    PartitionRow,
    Plan,
    Step,
)
from rayapp.core.errors import RayappError


@dataclass(frozen=True, slots=True)
class Lease:
    """Held until `expires_at`; `fence` grows with every new holder."""

    name: str
    holder: str
    fence: int
    expires_at: datetime


class LeaseStore(Protocol):
    async def acquire(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """Take or renew; None while another holder's lease is alive."""

    async def release(self, lease: Lease) -> None: ...
    async def current(self, name: str) -> Lease | None: ...
    async def last_released(self, name: str) -> datetime | None:
        """When a holder last gave it back by itself; None when none ever did."""


class Ending(TypedDict, total=False):
    """Of a job that was completed its report; of one that failed why, and the exit code."""

    report: Mapping[str, Any]
    error: str
    exit_code: int


class JobStore(Protocol):
    """`jobs` and `job_partitions`. All times are the server's."""

    async def create(self, job: Job) -> bool:
        """Store a new job; False when its id is there already."""

    async def get(self, job_id: str) -> Job | None: ...
    async def count(self, kind: str | None) -> int: ...

    async def recent(self, kind: str | None, limit: int) -> list[Job]:
        """Newest first."""

    async def unfinished(self, kind: str) -> list[Job]:
        """Jobs of a kind in no final state, newest first."""

    async def take(self, job_id: str, fence: int, *, submission_id: str | None) -> Job:
        """Make the holder of `fence` the driver: the job and its partitions get the fence, the job
        runs, `error`, `exit_code` and `finished_at` are cleared. `attempts` counts drivers that
        died, and the new one: whoever takes a running job takes it from a dead one, one that was
        left in order goes on counting, and a failed one begins anew. A wish to cancel stays, a
        wish to pause ends. A failed job may be taken again: it goes on from its checkpoints.

        Raises NotFound; Conflict, code `lease_lost`, when a driver of a higher fence has it;
        Conflict, code `job_final`, when it was completed or cancelled, or failed without a plan.
        """

    async def refence(self, job_id: str, old: int, new: int) -> None:
        """The driver of the fence `old` got its lease back with the fence `new`: the job and its
        partitions get it, too, and nothing else changes. Repeating it is harmless.

        Raises NotFound; Conflict, code `lease_lost`, when the job has neither fence: another
        driver has it, or had it.
        """

    async def planned(self, job_id: str, fence: int, plan: Plan) -> None:
        """Store plan and partitions in one transaction; planning again changes nothing.

        Raises Conflict, code `lease_lost`, like every write below.
        """

    async def partitions(self, job_id: str) -> list[PartitionRow]:
        """By index."""

    async def checkpoint(self, job_id: str, index: int, fence: int, step: Step) -> DesiredState:
        """Move a partition to the cursor of `step` and add its counts, in one update.

        The job's own `done`, `failed` and `counts` are the sums over its partitions: `progress`.
        At most 20 samples of a partition are kept. Returns the job's present wish.
        """

    async def progress(self, job_id: str, fence: int) -> Job:
        """Add up the partitions into the job and return it."""

    async def stage(self, job_id: str, fence: int, name: str) -> None:
        """What the driver does now, for people: `plan`, `partitions`, `verify`."""

    async def end(self, job_id: str, fence: int, state: JobState, **how: Unpack[Ending]) -> Job:
        """Completed, failed, cancelled; or, not final: paused, and submitted, for a driver that
        hands the job to the next one. Jobs that ended are kept for 90 days."""

    async def set_desired_state(self, job_id: str, wish: DesiredState) -> Job:
        """Ask something of a job. NotFound; Conflict, code `job_final`, when it has ended.

        A job that nobody drives (`submitted`, `paused`) is cancelled at once. A failed job that
        has a plan is submitted again when it is to run.
        """

    async def submitted(self, job_id: str, submission_id: str) -> None:
        """A driver is on its way: a paused job waits for it. NotFound."""

    async def add_to_report(self, job_id: str, facts: Mapping[str, Any]) -> None:
        """What became known after a job ended; the last value of a name counts. NotFound."""


class JobWork(Protocol):
    """One kind of job, without its machinery. Made anew in the driver and in every worker.

    Everything may be killed between any two awaits and is then called again: `plan` runs until it
    was stored once, a `step` until its checkpoint was stored, `finish` until the job has ended.
    So each of them must give the same result when it is repeated.
    """

    async def plan(self) -> Plan:
        """Reads only: a dry run stops after it."""

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Called once in every process, the driver too, before its first step or `finish`, with
        the facts of the plan. What the job needs to exist is made here, harmless to repeat."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        """One bounded batch (at most a second or two of work) from `cursor` on; None = start."""

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        """After all partitions, in the driver: verify, switch, report. `begin` was called."""

    async def close(self) -> None: ...


class WorkerLost(RayappError):
    """A worker died within a partition, which another one goes on with from its checkpoint."""

    default_code = "worker_lost"
    retryable = True


class Workers(Protocol):
    """The processes that work on partitions. Each opens its own work once and keeps it."""

    async def work_on(self, job: Job, row: PartitionRow) -> bool:
        """Step a partition from its cursor on, in some free worker; waits while none is free.

        True when the partition is done, False when its worker stopped before that, because of a
        wish or of `stop`. Raises WorkerLost, and what the work itself raised.
        """

    def stop(self) -> None:
        """Every worker stops after its present step, for good."""

    async def close(self) -> None:
        """End the workers at once, whatever they do."""


class JobLauncher(Protocol):
    """Starts the driver of a stored job somewhere in the cluster."""

    async def launch(self, job: Job) -> str:
        """The submission id. JobsDown when the cluster takes no jobs."""
