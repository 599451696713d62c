"""Sampled sweeps inside the service, the job that sweeps everything, and what both leave behind."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any, Protocol

from rayapp.bulk.model import (
    UUID_SPACE,
    Finish,
    Partition,
    PartitionRow,
    Plan,
    Step,
    point_ranges,
    shares_of,
    uuid_text,
)
from rayapp.core.ids import OWNER_ID_PATTERN, SYSTEM_USER
from rayapp.core.runtime import Metrics, Runtime
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.service import forget_dead
from rayapp.index.consistency.comparison import AT_ONCE, LOOK_ONLY, Comparison, Recheck, Repairs
from rayapp.index.consistency.keyspace_cursor import KeyspaceCursor, round_from
from rayapp.index.consistency.rules import Drift, Issue, SweepReport
from rayapp.memory.ports import Event, EventStore, MemoryStore
from rayapp.memory.scope import ReadScope

# What a sweep leaves behind: an event per repaired item, its report, and the drift counters.
#
# A process of a job is scraped by nobody, so nothing is counted there: the owner of maintenance
# reads the reports of jobs and counts for them (`container.leader_tasks.drift_task`).

# Kind of the event of one repair, and of the one that holds a sweep's report.
REPAIRED = "repaired"
REPORT = "consistency"
# Events of one sweep: more says no more than their number in the report does.
MAX_EVENTS = 1_000
# Issues that a report names.
MAX_ISSUES = 50


@dataclass(frozen=True, slots=True)
class SweepLog:
    """`owner` is written into every event: who repaired."""

    events: EventStore
    owner: str
    runtime: Runtime

    async def repaired(self, issues: Sequence[Issue], room: int) -> int:
        """Write an event for the first `room` repairs; how many were written."""
        told = [issue for issue in issues if issue.repaired][: max(0, room)]
        for issue in told:
            data = {"what": issue.kind.value, "why": issue.details, "owner": self.owner}
            # A point of nobody, or of an id that no user can have, is the system's to tell.
            known = OWNER_ID_PATTERN.fullmatch(issue.user_id) is not None
            await self._add(
                REPAIRED,
                {**data, "point_id": issue.point_id},
                user_id=issue.user_id if known else SYSTEM_USER,
                memory_id=issue.memory_id or None,
            )
        return len(told)

    async def report(self, row: Mapping[str, Any]) -> None:
        """Keep the report, for diagnostics in any replica."""
        await self._add(REPORT, {**row, "owner": self.owner}, user_id=SYSTEM_USER)

    async def _add(
        self, kind: str, data: dict[str, Any], *, user_id: str, memory_id: str | None = None
    ) -> None:
        event = Event(
            event_id=self.runtime.new_id(),
            user_id=user_id,
            kind=kind,
            at=self.runtime.clock.now(),
            memory_id=memory_id,
            data=data,
        )
        await self.events.add(event)


def count_drift(metrics: Metrics, found: Mapping[str, int]) -> None:
    """Count what a report found, in a process whose metrics are scraped."""
    for kind, number in found.items():
        if number:
            metrics.count("drift", number, kind=kind)


async def last_report(events: EventStore) -> dict[str, Any] | None:
    """The report of the newest sweep, by whichever process, with its time."""
    found = await events.recent(ReadScope(SYSTEM_USER), REPORT, 1)
    return {"at": found[0].at.isoformat(), **found[0].data} if found else None


def report_row(report: SweepReport) -> dict[str, Any]:
    """A sampled sweep's report as plain JSON."""
    return {
        "mode": "sample",
        "checked": report.checked,
        "found": {kind.value: number for kind, number in report.found.items()},
        "repaired": {kind.value: number for kind, number in report.repaired.items()},
        "quarantined": report.quarantined,
        "unreadable": report.unreadable,
        "truth_count": report.truth_count,
        "index_count": report.index_count,
        "duration_s": report.duration_s,
    }


Sleep = Callable[[float], Awaitable[None]]
# How long the end of a job waits for the indexer to write what was asked for, seconds, and the
# pause between two looks at the queue. An indexer writes thousands of points a minute.
SYNC_WAIT_S = 60.0
SYNC_POLL_S = 0.5
# Graph rows looked at in one read.
GRAPH_ROWS = 10_000


@dataclass(eq=False)
class ConsistencyService:
    """Compares index and truth in both directions.

    Sweeps go round the whole space over time.
    """

    comparison: Comparison
    log: SweepLog
    _: KW_ONLY
    runtime: Runtime
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self._next: tuple[str | None] | None = None

    async def check(self, *, sample: int, repair: bool) -> SweepReport:
        """A look at `sample` ids, in both directions, from where the last sweep stopped.

        Raises IndexDown while the index is being filled, and StoreDown.
        """
        began, checked_at = self.runtime.clock.monotonic(), self.runtime.clock.now()
        await self.comparison.schema()
        walk = KeyspaceCursor(ranges=round_from(await self._start()), limit=sample)
        while not walk.over:
            walk = await self.comparison.page(walk, self.runtime.settings.consistency.batch_size)
        look = Recheck([])
        if walk.suspects:
            await self.sleep(self.runtime.settings.consistency.grace_s)
            look = await self.comparison.look_again(walk.suspects, Repairs(repair=repair))
        issues = look.issues
        # A count of millions may fail: what was seen was seen, and the next sweep looks further.
        self._next = (walk.after,)
        await self.log.repaired(issues, MAX_EVENTS)
        truth_count, index_count = await self.comparison.counts()
        report = SweepReport(
            checked_at=checked_at,
            duration_s=round(self.runtime.clock.monotonic() - began, 3),
            checked=walk.seen,
            found=dict(Counter(issue.kind for issue in issues)),
            repaired=dict(Counter(issue.kind for issue in issues if issue.repaired)),
            issues=issues[:MAX_ISSUES],
            truth_count=truth_count,
            index_count=index_count,
            unreadable=look.unreadable,
        )
        count_drift(self.runtime.metrics, report_row(report)["found"])
        await self.log.report({**report_row(report), "after": walk.after})
        return report

    async def _start(self) -> str | None:
        """Where this process stopped; a new one goes on where any did, else anywhere."""
        if self._next is not None:
            return self._next[0]
        last = await last_report(self.log.events)
        if last is not None and "after" in last:
            after: str | None = last["after"]
            return after
        return random_id(self.runtime.random)


class LooksForOrphans(Protocol):
    """What is derived from memories, which a capability above this one knows."""

    async def look(self, *, repair: bool) -> Mapping[str, int]:
        """How many memories are not there of which something is derived, and are taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStores:
    """What the end of a job needs besides the comparison itself."""

    items: MemoryStore
    graphs: GraphStore
    derived: LooksForOrphans


@dataclass(eq=False)
class SweepWork:
    """Implements `JobWork`: the whole space in ranges, or a sample of it.

    A step that is killed after its repair is not counted again, as what it repaired waits for the
    index by then: the counts of a report may be lower than what was done, never higher.
    `sample`: ids to look at, from a random one on; None = all of them.
    """

    comparison: Comparison
    stores: SweepStores
    log: SweepLog
    _: KW_ONLY
    sample: int | None
    repairs: Repairs
    runtime: Runtime
    sleep: Sleep = asyncio.sleep

    async def plan(self) -> Plan:
        await self.comparison.schema()
        total = max(await self.comparison.counts())
        if self.sample is not None:
            ranges = round_from(random_id(self.runtime.random))
            shares: list[dict[str, Any]] = [{"ranges": ranges, "limit": self.sample}]
            total = min(total, self.sample)
        else:
            shares = [
                {"ranges": (one,)}
                for one in point_ranges(self.runtime.settings.consistency.partitions)
            ]
        room = max(1, MAX_EVENTS // len(shares))
        partitions = shares_of({**share, "events": room} for share in shares)
        return Plan(partitions=partitions, total=total)

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Nothing to make: what the index was built for is asked while comparing."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        """A page of the first look; or the second look at what was collected, and its repair."""
        walk = KeyspaceCursor.of(partition.payload, cursor)
        if walk.suspects and (walk.over or len(walk.suspects) >= AT_ONCE):
            return await self._second_look(walk, partition)
        after = await self.comparison.page(walk, self.runtime.settings.consistency.batch_size)
        return Step(cursor=_cursor_of(after), done=after.seen - walk.seen)

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        counts: Counter[str] = Counter()
        for row in partitions:
            counts.update(row.counts)
        found, repaired = by_kind(counts, "found"), by_kind(counts, "repaired")
        waiting, left = 0, found
        if self.repairs.repair:
            waiting = await self._still_waiting() if repaired else 0
            left = await self._left([row for row in partitions if by_kind(row.counts, "repaired")])
        truth_count, index_count = await self.comparison.counts()
        complete = not left and not waiting
        report = {
            "mode": "full" if self.sample is None else "sample",
            "checked": sum(row.done for row in partitions),
            "found": found,
            "repaired": repaired,
            "quarantined": counts["quarantined"],
            "unreadable": counts["unreadable"],
            "healed": max(0, sum(repaired.values()) - sum(left.values())) if repaired else 0,
            "left": left,
            "still_waiting": waiting,
            "truth_count": truth_count,
            "index_count": index_count,
            "unencoded": await self.comparison.unencoded(),
            "graph_references": await self._graph_references(),
            "derived": {} if self.sample is not None else await self._orphans(),
            "issues": [one for row in partitions for one in row.samples][:MAX_ISSUES],
            "in_quarantine": await self.comparison.kept(MAX_ISSUES),
        }
        aside = ("issues", "in_quarantine")
        await self.log.report({name: part for name, part in report.items() if name not in aside})
        return Finish(report=report, complete=complete)

    async def close(self) -> None:
        """Nothing is held open."""

    async def _second_look(self, walk: KeyspaceCursor, partition: Partition) -> Step:
        await self.sleep(self.runtime.settings.consistency.grace_s)
        look = await self.comparison.look_again(walk.suspects, self.repairs)
        room = int(partition.payload["events"]) - walk.events
        written = await self.log.repaired(look.issues, room)
        counts = Counter(f"found_{issue.kind.value}" for issue in look.issues)
        counts.update(f"repaired_{issue.kind.value}" for issue in look.issues if issue.repaired)
        counts["quarantined"] += look.quarantined
        counts["unreadable"] += look.unreadable
        after = replace(walk, suspects=(), events=walk.events + written)
        return Step(
            cursor=_cursor_of(after),
            counts={name: number for name, number in counts.items() if number},
            samples=[asdict(one) | {"kind": one.kind.value} for one in look.issues[:MAX_ISSUES]],
        )

    async def _still_waiting(self) -> int:
        """Wait until the indexer has written what this job asked for; how many still wait."""
        clock = self.runtime.clock
        began = clock.monotonic()
        while True:
            backlog = await self.stores.items.backlog()
            waited = clock.monotonic() - began
            # Younger than this wait: whatever was asked for before it has been written.
            if backlog.oldest_untried_s is None or backlog.oldest_untried_s < waited:
                return 0
            if waited >= SYNC_WAIT_S:
                return backlog.pending
            await self.sleep(SYNC_POLL_S)

    async def _left(self, partitions: Sequence[PartitionRow]) -> dict[str, int]:
        """What is left of what was repaired. The ids of few repairs are known; a partition that
        had more than the samples it keeps is looked at as a whole."""
        left: Counter[str] = Counter()

        async def look(point_ids: Sequence[str]) -> None:
            await self.sleep(self.runtime.settings.consistency.grace_s)
            found = await self.comparison.look_again(point_ids, LOOK_ONLY)
            left.update(issue.kind.value for issue in found.issues)

        named = {row.index: _repaired_ids(row) for row in partitions}
        known = [point_id for ids in named.values() for point_id in ids or ()]
        if known:
            await look(known)
        for row in partitions:
            if named[row.index] is not None:
                continue
            walk = KeyspaceCursor.of(row.payload, None)
            while not walk.over:
                walk = await self.comparison.page(
                    walk, self.runtime.settings.consistency.batch_size
                )
                if walk.suspects and (walk.over or len(walk.suspects) >= AT_ONCE):
                    await look(walk.suspects)
                    walk = replace(walk, suspects=())
        return dict(left)

    async def _orphans(self) -> dict[str, int]:
        """What is derived from memories that are not there."""
        return dict(await self.stores.derived.look(repair=self.repairs.repair))

    async def _graph_references(self) -> dict[str, int]:
        """Dead references of all graphs; removed when this job repairs everything."""
        graphs, after = self.stores.graphs, None
        found = cleaned = 0
        while self.sample is None:
            if self.repairs.repair:
                dead, rows, after = await forget_dead(graphs, GRAPH_ROWS, after)
                found, cleaned = found + dead, cleaned + rows
            else:
                named, after = await graphs.dead_references(GRAPH_ROWS, after)
                found += len(named)
            if after is None:
                break
        return {"dead": found, "rows_cleaned": cleaned}


def by_kind(counts: Mapping[str, int], what: str) -> dict[str, int]:
    """The counts `<what>_<kind>` that are not 0, by kind."""
    named = {kind.value: counts.get(f"{what}_{kind.value}", 0) for kind in Drift}
    return {kind: number for kind, number in named.items() if number}


def random_id(random: Callable[[], float]) -> str:
    """A place in the space of point ids."""
    return uuid_text(int(random() * UUID_SPACE))


def _cursor_of(walk: KeyspaceCursor) -> dict[str, Any] | None:
    return None if walk.over and not walk.suspects else walk.cursor()


def _repaired_ids(row: PartitionRow) -> list[str] | None:
    """The points that a partition repaired; None when its samples do not name all of them."""
    ids = [sample["point_id"] for sample in row.samples if sample["repaired"]]
    return ids if len(ids) == sum(by_kind(row.counts, "repaired").values()) else None
