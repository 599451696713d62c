"""The job of the open-data catalogue, and the request for it after a start."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

from rayapp.bulk.model import (
    DesiredState,
    Finish,
    Job,
    JobState,
    Partition,
    PartitionRow,
    Plan,
    Step,
    shares_of,
)
from rayapp.bulk.params import CKAN, DATAGOV
from rayapp.bulk.service import JobsService
from rayapp.core.errors import ConfigError, Conflict
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.runtime import Runtime
from rayapp.core.settings.model import DatagovSettings
from rayapp.datagov.ports import KINDS, Catalogue, CatalogueSource, SharedItems
from rayapp.datagov.rules.changes import INCOMPLETE, graph_of, retiring
from rayapp.datagov.rules.items import items_of, kind_of, partial_ids, record_hash_of
from rayapp.datagov.rules.prepare import prepared
from rayapp.memory.item import MemoryItem, Status, SyncState
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import DATAGOV_TIERS
from rayapp.text.expansions import Expansions

log = logging.getLogger("rayapp.preload")
REQUESTED_BY = "maintenance"


class DatagovPreload:
    """Asks for an ingest after every start: one that finds nothing new writes nothing."""

    def __init__(self, jobs: JobsService, settings: DatagovSettings) -> None:
        self._jobs = jobs
        self._settings = settings

    async def run(self) -> bool:
        """True when nothing is left to do. Raises JobsDown."""
        if not self._settings.preload:
            return True
        # A folder is named by the settings alone: a job that is asked for names no path.
        params = {} if self._settings.source is not None else {"source": CKAN}
        while True:
            try:
                job = await self._jobs.submit(DATAGOV, params, requested_by=REQUESTED_BY)
            except Conflict as busy:
                other = await self._jobs.get(str(busy.details["job_id"]))
                if await self._was_stopped(other):
                    # Begun anew, not resumed: its source, its settings and the texts that it
                    # wrote may be others by now, and what it wrote is not written again.
                    await self._jobs.set_desired_state(other.job_id, DesiredState.CANCEL)
                    continue
                log.info("the open-data catalogue is not asked for: %s", busy.message)
                return other.state in (JobState.SUBMITTED, JobState.RUNNING)
            log.info("the open-data catalogue is being loaded: job %s", job.job_id)
            return True

    async def _was_stopped(self, job: Job) -> bool:
        """Ours, begun, and without a driver although nobody asked for a pause or an end."""
        if job.requested_by != REQUESTED_BY or job.wish is not DesiredState.RUN:
            return False
        handed_back = job.planned and job.state is JobState.SUBMITTED
        if handed_back or job.state is JobState.PAUSED:
            return True
        return any(lost.job_id == job.job_id for lost in await self._jobs.orphaned())


# Records of a partition: one step of about 0.2 s, so that nothing is lost when it is killed.
SLICE = 200
GONE = "it left the catalogue"
# Looking whether the indexer is done costs one indexed read.
POLL_S = 0.5
# What the report counts of items that still wait, or gave up.
MAX_COUNTED = 1_000
_SHARED = ReadScope(SYSTEM_USER)
_ALL = ItemFilter(tiers=DATAGOV_TIERS, statuses=None, include_superseded=True)


class _Prepared:
    def __init__(self, key: str, read: Catalogue, texts: Expansions, now: datetime) -> None:
        self.key = key
        self.catalogue, self.anomalies = prepared(read)
        self.items = {
            item.memory_id: item for item in items_of(self.catalogue, texts.entries(), now)
        }
        self._partial = partial_ids(self.catalogue)

    def changed(
        self, items: Iterable[MemoryItem], stored: Mapping[str, tuple[str, Status]]
    ) -> list[MemoryItem]:
        """Those to write. An item whose table did not answer is written when there is none yet:
        it is found by its title, and never takes the place of one that knows its columns."""
        return [
            item
            for item in items
            if stored.get(item.memory_id) != (record_hash_of(item), Status.ACTIVE)
            and not (item.memory_id in self._partial and item.memory_id in stored)
        ]


@dataclass(eq=False)
class DatagovIngest:
    """Implements `JobWork`.

    `index_wait_s`: how long `finish` waits for the indexer; the job is done without it too.
    """

    source: CatalogueSource
    shared: SharedItems
    items: MemoryStore
    expansions: Expansions
    _: KW_ONLY
    runtime: Runtime
    index_wait_s: float

    def __post_init__(self) -> None:
        self._made: _Prepared | None = None
        self._facts: Mapping[str, Any] = {}

    async def plan(self) -> Plan:
        """Reads the source. What it read is kept beside the data for the workers."""
        began = self.runtime.clock.monotonic()
        key, catalogue = await self.source.read()
        if not catalogue.datasets:
            raise ConfigError("The catalogue has no datasets: check --source.")
        read_s = self.runtime.clock.monotonic() - began
        made = self._made = await self._prepare(key, catalogue)
        stored = await self.shared.record_hashes()
        gone = retiring(stored, made.items, made.anomalies.counts)
        partitions = _partitions(made.items)
        facts = {
            "source": self.source.name,
            "snapshot": key,
            "origin": catalogue.origin,
            "planned_at": self.runtime.clock.now().isoformat(),
            "read_s": round(read_s, 3),
            "prepare_s": round(self.runtime.clock.monotonic() - began - read_s, 3),
            "records": _by_kind(made.items),
            "would": {**_differences(made, stored), "retire": len(gone.memory_ids)},
            "anomalies": sum(made.anomalies.counts.values()),
        }
        return Plan(partitions=partitions, total=len(made.items), facts=facts)

    async def begin(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        key = str(facts["snapshot"])
        if self._made is None or self._made.key != key:
            self._made = await self._prepare(key, await self.source.load(key))

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        """The whole slice at once; repeated, it finds nothing to write."""
        kind, ids = str(partition.payload["kind"]), list(partition.payload["ids"])
        made = self._ready()
        items = [made.items[memory_id] for memory_id in ids if memory_id in made.items]
        stored = await self.shared.record_hashes(ids)
        counts = await self.shared.put(made.changed(items, stored))
        written = counts.inserted + counts.updated
        return Step(
            cursor=None,
            done=len(ids),
            failed=len(ids) - len(items),
            counts={
                f"{kind}_inserted": counts.inserted,
                f"{kind}_updated": counts.updated,
                f"{kind}_unchanged": len(items) - written,
            },
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        """Archive what left the catalogue, draw the graph, wait for the indexer, report."""
        made, clock = self._ready(), self.runtime.clock
        settings = self.runtime.settings.datagov
        now = clock.now()
        stored = await self.shared.record_hashes()
        gone = retiring(stored, made.items, made.anomalies.counts)
        retired = await self.shared.retire(gone.memory_ids, GONE, now)
        nodes, edges = graph_of(
            made.catalogue, now, datasets=settings.graph_datasets, nodes=settings.graph_nodes
        )
        # What a refused run would archive, its graph would lose.
        rows = 0 if gone.refused else await self.shared.put_graph(nodes, edges)
        index = await self._indexed()
        failed = sum(row.failed for row in partitions)
        cut_short = any(made.anomalies.counts[kind] for kind in INCOMPLETE)
        seconds = clock.now() - datetime.fromisoformat(str(self._facts["planned_at"]))
        report = {
            "source": {"name": self.source.name, "snapshot": made.key},
            "kinds": _kinds(partitions, Counter(kind_of(one) for one in gone.memory_ids)),
            "retired": retired,
            "retire_refused": gone.refused or None,
            "kept_although_gone": gone.kept,
            "failed": failed,
            "graph": {"nodes": len(nodes), "edges": len(edges), "written": rows},
            "index": index,
            "anomalies": made.anomalies.rows(),
            "seconds": {
                "read": self._facts.get("read_s"),
                "prepare": self._facts.get("prepare_s"),
                "since_plan": round(seconds.total_seconds(), 3),
            },
        }
        complete = not (gone.refused or cut_short or failed or index["failed"])
        return Finish(report=report, complete=complete)

    async def close(self) -> None:
        await self.source.close()

    async def _prepare(self, key: str, catalogue: Catalogue) -> _Prepared:
        """Off the loop: the lease of the job must be renewed meanwhile."""
        now = self.runtime.clock.now()
        return await asyncio.to_thread(_Prepared, key, catalogue, self.expansions, now)

    def _ready(self) -> _Prepared:
        if self._made is None:
            raise ConfigError("The job was not begun: start it through its command.")
        return self._made

    async def _indexed(self) -> dict[str, Any]:
        """What the indexer still owes, after waiting for it within the limit."""
        clock = self.runtime.clock
        began = clock.monotonic()
        while waiting := bool(await self.items.pending(_SHARED, _ALL, 1)):
            if clock.monotonic() - began >= self.index_wait_s:
                break
            await asyncio.sleep(POLL_S)
        left = await self.items.pending(_SHARED, _ALL, MAX_COUNTED, with_failed=True)
        states = Counter(item.index.sync_state for item in left)
        return {
            "done": not waiting,
            "waited_s": round(clock.monotonic() - began, 3),
            "pending": states[SyncState.PENDING],
            "failed": states[SyncState.FAILED],
        }


def _partitions(items: Mapping[str, MemoryItem]) -> list[Partition]:
    """Slices of one kind each, in the order in which the items were made."""
    shares: list[Mapping[str, Any]] = []
    for kind in KINDS:
        ids = [memory_id for memory_id in items if kind_of(memory_id) == kind]
        for at in range(0, len(ids), SLICE):
            shares.append({"kind": kind, "ids": ids[at : at + SLICE]})
    return shares_of(shares)


def _by_kind(memory_ids: Mapping[str, Any]) -> dict[str, int]:
    counted = Counter(kind_of(memory_id) for memory_id in memory_ids)
    return {kind: counted[kind] for kind in KINDS}


def _differences(made: _Prepared, stored: Mapping[str, tuple[str, Status]]) -> dict[str, int]:
    """What a run would do now, for a dry run."""
    new = sum(memory_id not in stored for memory_id in made.items)
    written = len(made.changed(made.items.values(), stored))
    return {"insert": new, "update": written - new, "unchanged": len(made.items) - written}


def _kinds(
    partitions: Sequence[PartitionRow], retired: Mapping[Any, int]
) -> dict[str, dict[str, int]]:
    totals: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for row in partitions:
        totals.update(row.counts)
        failed[str(row.payload["kind"])] += row.failed
    return {
        kind: {
            **{name: totals[f"{kind}_{name}"] for name in ("inserted", "updated", "unchanged")},
            "retired": retired.get(kind, 0),
            "failed": failed[kind],
        }
        for kind in KINDS
    }
