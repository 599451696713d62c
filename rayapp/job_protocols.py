"""The seams of bulk jobs. Each protocol has an in-memory fake and a contract suite both pass.

Errors: an implementation raises only classes of `rayapp.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from rayapp.domain.datagov.records import Catalogue
from rayapp.domain.graphs.records import ContentEdge, ContentNode
from rayapp.domain.index import StoredPoint
from rayapp.domain.jobs import Finish, Job, JobState, JobWish, Partition, PartitionRow, Plan, Step
from rayapp.domain.memory import IndexOp, MemoryItem, Status, SyncState
from rayapp.errors import RayappError


class JobStore(Protocol):
    """`jobs` and `job_partitions`. All times are the server's."""

    async def create(self, job: Job) -> bool:
        """Store a new job; False when its id is there already."""
        ...

    async def get(self, job_id: str) -> Job | None: ...
    async def recent(self, kind: str | None, limit: int) -> list[Job]:
        """Newest first."""
        ...

    async def unfinished(self, kind: str) -> list[Job]:
        """Jobs of a kind in no final state, newest first."""
        ...

    async def take(self, job_id: str, fence: int, *, submission_id: str | None) -> Job:
        """Make the holder of `fence` the driver: the job and its partitions get the fence, the job
        runs, `attempts` follows `job_rules.attempts_after_take`, `error`, `exit_code` and
        `finished_at` are cleared. A wish to cancel stays, a wish to pause ends. A failed job may be
        taken again: it goes on from its checkpoints.

        Raises NotFound; Conflict, code `lease_lost`, when a driver of a higher fence has it;
        Conflict, code `job_final`, when it was completed or cancelled, or failed without a plan.
        """
        ...

    async def refence(self, job_id: str, old: int, new: int) -> None:
        """The driver of the fence `old` got its lease back with the fence `new`: the job and its
        partitions get it, too, and nothing else changes. Repeating it is harmless.

        Raises NotFound; Conflict, code `lease_lost`, when the job has neither fence: another
        driver has it, or had it.
        """
        ...

    async def planned(self, job_id: str, fence: int, plan: Plan) -> None:
        """Store plan and partitions in one transaction; planning again changes nothing.

        Raises Conflict, code `lease_lost`, like every write below.
        """
        ...

    async def partitions(self, job_id: str) -> list[PartitionRow]:
        """By index."""
        ...

    async def checkpoint(self, job_id: str, index: int, fence: int, step: Step) -> JobWish:
        """Move a partition to the cursor of `step` and add its counts, in one update.

        The job's own `done`, `failed` and `counts` are the sums over its partitions: `progress`.
        At most 20 samples of a partition are kept. Returns the job's present wish.
        """
        ...

    async def progress(self, job_id: str, fence: int) -> Job:
        """Add up the partitions into the job and return it."""
        ...

    async def stage(self, job_id: str, fence: int, name: str) -> None:
        """What the driver does now, for people: `plan`, `partitions`, `verify`."""
        ...

    async def end(
        self,
        job_id: str,
        fence: int,
        state: JobState,
        *,
        report: Mapping[str, Any] | None = None,
        error: str | None = None,
        exit_code: int | None = None,
    ) -> Job:
        """Completed, failed, cancelled; or, not final: paused, and submitted, for a driver that
        hands the job to the next one. Jobs that ended are kept for 90 days."""
        ...

    async def wish(self, job_id: str, wish: JobWish) -> Job:
        """Ask something of a job. NotFound; Conflict, code `job_final`, when it has ended.

        A job that nobody drives (`submitted`, `paused`) is cancelled at once. A failed job that
        has a plan is submitted again when it is to run.
        """
        ...

    async def submitted(self, job_id: str, submission_id: str) -> None:
        """A driver is on its way: a paused job waits for it. NotFound."""
        ...

    async def add_to_report(self, job_id: str, facts: Mapping[str, Any]) -> None:
        """What became known after a job ended; the last value of a name counts. NotFound."""
        ...


class JobWork(Protocol):
    """One kind of job, without its machinery. Made anew in the driver and in every worker.

    Everything may be killed between any two awaits and is then called again: `plan` runs until it
    was stored once, a `step` until its checkpoint was stored, `finish` until the job has ended.
    So each of them must give the same result when it is repeated.
    """

    async def plan(self) -> Plan:
        """Reads only: a dry run stops after it."""
        ...

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Called once in every process, the driver too, before its first step or `finish`, with
        the facts of the plan. What the job needs to exist is made here, harmless to repeat."""
        ...

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        """One bounded batch (at most a second or two of work) from `cursor` on; None = start."""
        ...

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        """After all partitions, in the driver: verify, switch, report. `begin` was called."""
        ...

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
        ...

    def stop(self) -> None:
        """Every worker stops after its present step, for good."""
        ...

    async def close(self) -> None:
        """End the workers at once, whatever they do."""
        ...


class JobLauncher(Protocol):
    """Starts the driver of a stored job somewhere in the cluster."""

    async def launch(self, job: Job) -> str:
        """The submission id. JobsDown when the cluster takes no jobs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Ask for an index write of an item that is still at `rev`."""

    point_id: str
    rev: int
    op: IndexOp


@dataclass(frozen=True, slots=True)
class RowState:
    """What decides whether the point of a row is right: an eighth of the row to read."""

    point_id: str
    status: Status
    sync_state: SyncState
    rev: int
    content_hash: str
    context_prefix: str = ""


class ItemScan(Protocol):
    """Reads and repairs over the items of all users, in the order of point ids.

    For jobs and maintenance only: no scope, so nothing of this may reach an answer to a user.
    Rows that cannot be read are skipped, and a page is only short when the range has ended.
    """

    async def page(
        self, *, after: str | None, until: str | None, limit: int
    ) -> tuple[list[MemoryItem], str | None]:
        """Items of every status with after < point_id <= until; the second value is the last point
        id looked at, None when the range has ended."""
        ...

    async def by_points(self, point_ids: Sequence[str]) -> list[MemoryItem]:
        """Of every user and status, tombstones included."""
        ...

    async def states(self, point_ids: Sequence[str]) -> list[RowState]:
        """As `by_points`, without what the items say."""
        ...

    async def existing(self, point_ids: Sequence[str]) -> set[str]:
        """Which of them have a row, one that cannot be read too: it may be of a newer version."""
        ...

    async def indexed_since(
        self, since: datetime, after: tuple[datetime, str] | None, limit: int
    ) -> list[MemoryItem]:
        """Active items whose index write ended at `since` or later, in (indexed_at, point_id)
        order, those that come after `after`."""
        ...

    async def total(self) -> int:
        """Active items that did not give up on the index, from counters or an index alone."""
        ...

    async def in_flight(self) -> int:
        """Items claimed by an indexer that is still within its claim."""
        ...

    async def requeue(self, wanted: Sequence[Requeue]) -> int:
        """Make synced items pending with that op and a higher rev; how many were still at their
        rev. Pending and failed items are left as they are."""
        ...

    async def requeue_indexed_since(self, since: datetime) -> int:
        """Make every active item whose index write ended at `since` or later pending (vector)."""
        ...

    async def now(self) -> datetime:
        """The server's clock, the one that `indexed_at` comes from."""
        ...


class QuarantineStore(Protocol):
    """`quarantine`: points that were taken out of the index, with the reason, for 30 days."""

    async def keep(self, points: Sequence[StoredPoint], reason: str) -> None:
        """Store whole points, vectors included when they have them. Repeating is harmless."""
        ...

    async def purge(self, point_ids: Sequence[str]) -> None:
        """Forget the memories of these points: what was kept under these ids, and what was kept
        under another id but names one of these memories in its payload."""
        ...

    async def kept(self, limit: int) -> list[tuple[StoredPoint, str, datetime]]:
        """Newest first."""
        ...


class CatalogueSource(Protocol):
    """A catalogue as it was read, kept under a key so that every worker sees the same one."""

    @property
    def name(self) -> str:
        """What it was opened with: `ckan` or a folder."""
        ...

    async def read(self) -> tuple[str, Catalogue]:
        """Read it now. ConfigError: it is not there; DependencyDown: the site does not answer."""
        ...

    async def load(self, key: str) -> Catalogue:
        """What `read` gave with this key, also in another process. ConfigError when it is gone."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PutCounts:
    """What a put wrote; items that were there already are in neither."""

    inserted: int = 0
    updated: int = 0


class SharedItems(Protocol):
    """The items and the graph of the shared tenant (`domain.tiers.SYSTEM_USER`).

    The only way to write them. Items of another user are refused with Forbidden, before anything
    is written.
    """

    async def record_hashes(
        self, memory_ids: Sequence[str] | None = None
    ) -> dict[str, tuple[str, Status]]:
        """Hash and status by memory id, of these or of all items in the shared tiers."""
        ...

    async def put(self, items: Sequence[MemoryItem]) -> PutCounts:
        """Store what is new or has another record hash, and restore what was archived.

        A changed item keeps its stats and the times it was made and stored at, gets the next
        version, leaves a version row and is indexed again. Repeating it writes nothing.
        """
        ...

    async def retire(self, memory_ids: Sequence[str], reason: str, at: datetime) -> int:
        """Archive those that are active; how many were."""
        ...

    async def put_graph(self, nodes: Sequence[ContentNode], edges: Sequence[ContentEdge]) -> int:
        """Make the graph exactly this; how many rows were written or removed."""
        ...
