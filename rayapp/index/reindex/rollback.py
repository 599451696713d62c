"""Back to the collection before the last reindex, and on to one that waits for a restart."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rayapp.bulk.kinds import REINDEX
from rayapp.bulk.model import Finish, Job, Partition, PartitionRow, Plan, Step
from rayapp.bulk.ports import JobStore, LeaseStore
from rayapp.core.errors import Conflict, NotFound
from rayapp.core.vectors import IndexSchema
from rayapp.index.ports import ItemScan, VectorIndex
from rayapp.index.reindex.parts import ReindexParts
from rayapp.index.reindex.ready import ADOPTED_AT, JOBS_READ, ready_for
from rayapp.index.reindex.switch import moved
from rayapp.index.serving import is_served, served_now
from rayapp.index.write_barrier import IndexHold, Sleep, uncut

log = logging.getLogger("rayapp.reindex")


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
        job = await self._made(target)
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

    async def _back(self, hold: IndexHold, target: str, since: datetime) -> int | None:
        """Move the alias; how many items were asked for again, None when it was moved elsewhere."""
        if not await moved(self._parts.index, self._facts["previous"], target):
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
        return (
            f"The service runs with {present.model}: restart it with {stored.model}, "
            "then roll back."
        )

    async def close(self) -> None:
        await self._parts.close()

    async def _made(self, target: str | None) -> Job:
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
            raise Conflict(
                f"The service runs with {present.model}: restart it with {stored.model}, "
                "then roll back."
            )


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
    if not await moved(index, name, target):
        log.warning("the alias of the index was moved elsewhere: this process looks again")
        return False
    log.info("the index is %s now; %d items written meanwhile are indexed again", name, count)
    return True
