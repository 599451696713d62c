"""Moves the alias to the filled collection without losing a write, and back; drops old ones."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rayapp.bulk.model import Finish, Job, JobState, Partition, PartitionRow, Plan, Step
from rayapp.bulk.params import REINDEX
from rayapp.bulk.ports import JobStore, LeaseStore
from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema
from rayapp.index.point_builder import PointFailure
from rayapp.index.ports import ItemScan, Requeue, VectorIndex
from rayapp.index.reindex.copy import Copied, Copier, Follower
from rayapp.index.reindex.parts import (
    ADOPTED_AT,
    JOBS_READ,
    ReindexFacts,
    ReindexParts,
    belongs,
    ready_for,
    schema_or_none,
    waiting,
)
from rayapp.index.reindex.verify import count_problem
from rayapp.index.rules.points import collection_made_at, collections_of
from rayapp.index.service import is_served, served_now
from rayapp.index.write_barrier import Sleep, WriteBarrier, uncut
from rayapp.memory.item import IndexOp

# Drops the collections that no reindex and no rollback needs any more.

log = logging.getLogger("rayapp.reindex")
# Jobs looked through for the ones that name a collection; older ones are past any rollback.
CLEANED_JOBS_READ = 200


class ReindexCleanup:
    """Maintenance calls `run` now and then; the job itself calls `drop_old` when it was asked."""

    def __init__(self, index: VectorIndex, jobs: JobStore, *, runtime: Runtime) -> None:
        self._index, self._jobs = index, jobs
        self._clock = runtime.clock
        self._alias = runtime.settings.qdrant.alias
        self._rollback = timedelta(hours=runtime.settings.reindex.rollback_h)

    async def run(self) -> list[str]:
        """Drop what is past its time; the names."""
        return await self.drop_expired(self._clock.now())

    async def drop_expired(self, now: datetime) -> list[str]:
        """Never the collection behind the alias, never one of an unfinished job."""
        # Names before jobs: a job is stored before it makes its collection.
        names = collections_of(self._alias, await self._index.collections())
        if len(names) < 2:
            return []
        jobs = await self._jobs.recent(REINDEX, CLEANED_JOBS_READ)
        return await self._drop([n for n in names if is_expired(n, jobs, now, self._rollback)])

    async def drop_old(self) -> list[str]:
        """Everything but the collection behind the alias, those that are being filled, and those
        that wait for a service to be restarted."""
        names = collections_of(self._alias, await self._index.collections())
        jobs = await self._jobs.unfinished(REINDEX)
        jobs += waiting(await self._jobs.recent(REINDEX, CLEANED_JOBS_READ))
        needed = {job.facts.get("collection") for job in jobs}
        return await self._drop([name for name in names if name not in needed])

    async def _drop(self, names: Sequence[str]) -> list[str]:
        dropped = []
        target = (await self._index.health()).collection
        for name in names:
            if name == target or target is None:
                continue
            with suppress(Conflict):  # a rollback moved the alias to it a moment ago
                await self._index.drop_collection(name)
                dropped.append(name)
                log.info("collection %s was dropped", name)
        return dropped


def is_expired(name: str, jobs: Sequence[Job], now: datetime, rollback: timedelta) -> bool:
    """Nothing needs the collection any more, as far as the jobs tell."""
    naming = [j for j in jobs if name in (j.facts.get("collection"), j.facts.get("previous"))]
    if any(not job.final for job in naming):
        return False
    if not naming:
        made_at = collection_made_at(name)
        return made_at is not None and made_at + rollback <= now
    return all(_let_go(name, job, now, rollback) for job in naming)


def _let_go(name: str, job: Job, now: datetime, rollback: timedelta) -> bool:
    """A cancelled build is never gone on with; a failed one may be, and a completed one may be
    put behind the alias, or taken back. The way back is open as long after the alias moved."""
    if job.state is JobState.CANCELLED and name == job.facts.get("collection"):
        return True
    ended = job.finished_at or job.updated_at
    adopted = (job.report or {}).get(ADOPTED_AT)
    if ended is not None and adopted is not None:
        ended = max(ended, datetime.fromisoformat(adopted))
    return ended is not None and ended + rollback <= now


# Passes before the hold: each brings over what came in during the last one, so few are needed.
# A service that indexes faster than a pass copies is caught up with while its indexers are held.
MAX_PASSES = 20
# Items that could not be embedded and do not keep the alias from moving: as many, or this share.
FAILED_ALLOWED = 10
FAILED_SHARE = 0.01


@dataclass(slots=True)
class MissingItems:
    """Items of the truth that the new collection cannot have."""

    failures: dict[str, PointFailure] = field(default_factory=dict)
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one look under the hold.

    Attributes:
        reason: why the alias was left alone for a fault; None: there is none.
        again: another look may find otherwise.
        served: a service with the old model came up, so the alias waits for its restart.
    """

    reason: str | None = None
    again: bool = False
    served: bool = False


async def catch_up(follower: Follower, small: int) -> None:
    """Passes until one had little to do."""
    for _ in range(MAX_PASSES):
        if await follower.one_pass() < small:
            return


async def copy_missing(parts: ReindexParts, facts: ReindexFacts, copier: Copier) -> MissingItems:
    """One walk through the truth for items that the collection lacks; they are brought over."""
    total, seen, after, missing = await parts.scan.total(), 0, None, MissingItems()
    limit = parts.runtime.settings.reindex.batch_size
    while True:
        items, after = await parts.scan.page(after=after, until=None, limit=limit)
        seen += sum(map(belongs, items))
        wanted = [item for item in items if belongs(item)]
        done: Copied = await copier.bring(wanted)
        missing.failures |= {failure.item.point_id: failure for failure in done.failures}
        if after is None:
            break
    missing.unreadable = max(0, total - seen)
    return missing


def too_many(missing: MissingItems, total: int) -> str | None:
    """Why the failures keep the alias where it is."""
    failed = len(missing.failures)
    if failed <= max(FAILED_ALLOWED, int(total * FAILED_SHARE)):
        return None
    return f"{failed} of {total} items could not be embedded: see the samples of the report."


async def serving_elsewhere(parts: ReindexParts, facts: ReindexFacts) -> bool:
    """True when a service still runs with the schema behind the alias, and it is another one."""
    other = await _other_schema(parts, facts)
    return other is not None and await is_served(parts.leases, other, parts.sleep)


async def compared_and_switched(
    parts: ReindexParts,
    facts: ReindexFacts,
    follower: Follower,
    missing: MissingItems,
    *,
    move: bool,
) -> Outcome:
    """Count, and move the alias if the counts agree and `move` is set. While the indexers are held
    nothing changes but the queue, so the counts are exact."""
    async with parts.hold() as hold:
        await hold.until_idle()
        await follower.one_pass()
        problem = await count_problem(parts, facts, len(missing.failures), missing.unreadable)
        if problem is not None:
            return Outcome(problem, again=True)
        if not move:
            return Outcome()
        target = (await parts.index.health()).collection
        if target not in (facts.previous, facts.collection):
            return Outcome(_moved_to(target))
        other = await _other_schema(parts, facts)
        await hold.renew()
        # A service that was started since `serving_elsewhere` looked.
        if other is not None and await served_now(parts.leases, other):
            return Outcome(served=True)
        failures = list(missing.failures.values())
        return await uncut(_switch(parts, facts, follower, hold, target, failures))


async def _switch(
    parts: ReindexParts,
    facts: ReindexFacts,
    follower: Follower,
    hold: WriteBarrier,
    target: str | None,
    failures: Sequence[PointFailure],
) -> Outcome:
    if not await move_alias(parts.index, facts.collection, target):
        return Outcome(_moved_to((await parts.index.health()).collection))
    await hold.until_idle()
    await follower.one_pass()
    await ask_again(parts, failures)
    return Outcome()


async def move_alias(index: VectorIndex, name: str, expected: str | None) -> bool:
    """False when somebody else moved the alias, just before or just after."""
    try:
        await index.switch_alias(name, expected)
    except Conflict:
        return False
    return (await index.health()).collection == name


async def settle(parts: ReindexParts, follower: Follower, failures: Sequence[PointFailure]) -> None:
    """After the switch: the last look, and the failures of a driver that died at the switch."""
    idle = 0
    for _ in range(MAX_PASSES):
        idle = idle + 1 if await follower.one_pass() == 0 else 0
        if idle == 2:
            break
    await ask_again(parts, failures)


async def ask_again(parts: ReindexParts, failures: Sequence[PointFailure]) -> None:
    """The indexer's own try at what could not be embedded, so that such an item is pending or
    failed for everybody to see, never quietly missing."""
    wanted = [
        Requeue(point_id=failure.item.point_id, rev=failure.item.index.rev, op=IndexOp.VECTOR)
        for failure in failures
    ]
    if wanted:
        await parts.scan.requeue(wanted)


async def _other_schema(parts: ReindexParts, facts: ReindexFacts) -> IndexSchema | None:
    """Of the collection that was behind the alias, when it is not the new one's."""
    stored = await schema_or_none(parts.index, facts.previous)
    # One that has the encoder's vectors besides serves a service without the encoder.
    return None if stored is None or facts.schema.holds(stored) else stored


def _moved_to(target: str | None) -> str:
    return f"The alias was moved to {target or 'nothing'} meanwhile: start a new reindex."


# Back to the collection before the last reindex, and on to one that waits for a restart.


class RollbackWork:
    """Implements `JobWork`: no partitions, the alias moves in `finish`.

    What was indexed since the reindex went to the new collection alone, so it is asked for again.
    """

    def __init__(self, parts: ReindexParts) -> None:
        self._parts = parts
        self._facts: Mapping[str, Any] = {}

    async def plan(self) -> Plan:
        parts = self._parts
        target = (await parts.index.health()).collection
        job = await self._job_of(target)
        previous = str(job.facts["previous"])
        await self._check(str(target), previous)
        since = (job.report or {}).get("held_at") or job.facts["watermark"]
        return Plan(
            partitions=[],
            total=0,
            facts={"collection": target, "previous": previous, "since": since},
        )

    async def begin(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        return Step(cursor=None)

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        parts, facts = self._parts, self._facts
        since = datetime.fromisoformat(facts["since"])
        async with parts.hold() as hold:
            await hold.until_idle()
            target = (await parts.index.health()).collection
            if target not in (facts["collection"], facts["previous"]):
                reason = f"The alias was moved to {target} meanwhile: start again."
                return Finish(report={**facts, "switched": False, "reason": reason}, complete=False)
            # Before the switch as well: a driver that dies between the two must lose nothing.
            asked = await parts.scan.requeue_indexed_since(since)
            await hold.renew()
            again, problem = None, await self._served(str(target))
            if problem is None:
                again = await uncut(self._back(hold, str(target), since))
        report = {**facts, "rollback": True, "switched": again is not None, "requeued": asked}
        if again is None:
            problem = problem or "The alias was moved meanwhile: start again."
            return Finish(report=report | {"reason": problem}, complete=False)
        return Finish(report=report | {"requeued": asked + again})

    async def _back(self, hold: WriteBarrier, target: str, since: datetime) -> int | None:
        """Move the alias; how many items were asked for again, None when it was moved elsewhere."""
        if not await move_alias(self._parts.index, self._facts["previous"], target):
            return None
        await hold.until_idle()
        return await self._parts.scan.requeue_indexed_since(since)

    async def _served(self, target: str) -> str | None:
        """Why a service that was started since the plan keeps the alias where it is."""
        parts = self._parts
        present = await parts.index.schema_of(target)
        stored = await parts.index.schema_of(self._facts["previous"])
        if present == stored or not await served_now(parts.leases, present):
            return None
        return _restart_first(present, stored)

    async def close(self) -> None:
        await self._parts.close()

    async def _job_of(self, target: str | None) -> Job:
        """The reindex that put the collection behind the alias."""
        for job in await self._parts.jobs.recent(REINDEX, JOBS_READ):
            facts = job.facts
            if "schema" in facts and facts["collection"] == target and facts["previous"]:
                return job
        raise NotFound(
            "There is nothing to roll back: no reindex put the present collection in place."
        )

    async def _check(self, target: str, previous: str) -> None:
        """Only a collection that the configured model made may be served."""
        index, wanted = self._parts.index, self._parts.schema
        try:
            stored = await index.schema_of(previous)
        except NotFound:
            raise NotFound(
                f"The collection before the last reindex, {previous}, was dropped: "
                "run `rayapp job reindex` to fill a new one."
            ) from None
        if stored != wanted:
            raise Conflict(
                f"{previous} was built for {stored.model} ({stored.dims} dimensions, analyser "
                f"{stored.analyser}): set the embedding model back to it, then roll back."
            )
        present = await index.schema_of(target)
        if present != stored and await is_served(self._parts.leases, present, self._parts.sleep):
            raise Conflict(_restart_first(present, stored))


def _restart_first(present: IndexSchema, stored: IndexSchema) -> str:
    return f"The service runs with {present.model}: restart it with {stored.model}, then roll back."


async def adopt_ready(
    index: VectorIndex,
    jobs: JobStore,
    scan: ItemScan,
    leases: LeaseStore,
    *,
    schema: IndexSchema,
    sleep: Sleep,
) -> bool:
    """Called by a process that was started with another model than the index has: move the alias
    to a collection that a reindex filled for it. False when there is none, or while a service
    still runs with the model of the index."""
    ready = await ready_for(index, jobs, schema)
    if ready is None:
        return False
    target = (await index.health()).collection
    if target is not None:
        present = await index.schema_of(target)
        if present == schema:
            return True
        if await is_served(leases, present, sleep):
            log.warning("the index of %s is still served: this process waits", present.model)
            return False
    name = str(ready.facts["collection"])
    # Before the switch: a process that dies between the two must lose nothing.
    count = await scan.requeue_indexed_since(datetime.fromisoformat(ready.facts["watermark"]))
    if target is not None and await served_now(leases, present):
        log.warning("a service with %s was started: this process waits", present.model)
        return False
    await jobs.add_to_report(ready.job_id, {ADOPTED_AT: (await scan.now()).isoformat()})
    if not await move_alias(index, name, target):
        log.warning("the alias of the index was moved elsewhere: this process looks again")
        return False
    log.info("the index is %s now; %d items written meanwhile are indexed again", name, count)
    return True
