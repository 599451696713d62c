"""Drops the collections that no reindex and no rollback needs any more."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from rayapp.bulk.kinds import REINDEX
from rayapp.bulk.model import Job, JobState
from rayapp.bulk.ports import JobStore
from rayapp.core.errors import Conflict
from rayapp.core.runtime import Runtime
from rayapp.index.ports import VectorIndex
from rayapp.index.reindex.ready import ADOPTED_AT, waiting
from rayapp.index.rules.points import collection_made_at, collections_of

log = logging.getLogger("rayapp.reindex")
# Jobs looked through for the ones that name a collection; older ones are past any rollback.
JOBS_READ = 200


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
        jobs = await self._jobs.recent(REINDEX, JOBS_READ)
        return await self._drop([n for n in names if expired(n, jobs, now, self._rollback)])

    async def drop_old(self) -> list[str]:
        """Everything but the collection behind the alias, those that are being filled, and those
        that wait for a service to be restarted."""
        names = collections_of(self._alias, await self._index.collections())
        jobs = await self._jobs.unfinished(REINDEX)
        jobs += waiting(await self._jobs.recent(REINDEX, JOBS_READ))
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


def expired(name: str, jobs: Sequence[Job], now: datetime, rollback: timedelta) -> bool:
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
