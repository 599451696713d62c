"""Collections that a reindex filled and proved without putting them behind the alias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rayapp.bulk.kinds import REINDEX
from rayapp.bulk.model import Job, JobState
from rayapp.bulk.ports import JobStore
from rayapp.core.errors import NotFound
from rayapp.core.vectors import IndexSchema
from rayapp.index.ports import VectorIndex

# Jobs looked through; a ready collection is kept for the time of a rollback at most.
JOBS_READ = 100
# In the report of a job: when a service that was restarted moved the alias to its collection.
ADOPTED_AT = "adopted_at"
# Parameters that say what becomes of the collection, not what is in it.
_AFTERWARDS = ("switch", "drop_old")


def ready_jobs(jobs: Sequence[Job]) -> list[Job]:
    """`jobs` are newest first. The last one that completed with a collection decides about it: a
    later job may have put it behind the alias, or found it wanting."""
    found: dict[str, Job] = {}
    for job in jobs:
        if job.state is JobState.COMPLETED and "schema" in job.facts:
            found.setdefault(str(job.facts["collection"]), job)
    return [job for job in found.values() if (job.report or {}).get("ready")]


def waiting(jobs: Sequence[Job]) -> list[Job]:
    """Those of `ready_jobs` whose collection was never behind the alias."""
    return [job for job in ready_jobs(jobs) if ADOPTED_AT not in (job.report or {})]


async def ready_for(index: VectorIndex, jobs: JobStore, schema: IndexSchema) -> Job | None:
    """The newest that a process with `schema` may serve."""
    for job in ready_jobs(await jobs.recent(REINDEX, JOBS_READ)):
        if await _fits(index, job, schema):
            return job
    return None


async def prepared_for(
    index: VectorIndex, jobs: JobStore, schema: IndexSchema, params: Mapping[str, Any]
) -> Job | None:
    """A job that did already what one with `params` would do, except for the switch."""
    if params.get("switch") == "never":
        return None
    target = (await index.health()).collection
    for job in waiting(await jobs.recent(REINDEX, JOBS_READ)):
        if _what(job.params) != _what(params) or job.facts["collection"] == target:
            continue
        if await _fits(index, job, schema):
            return job
    return None


async def _fits(index: VectorIndex, job: Job, schema: IndexSchema) -> bool:
    with suppress(NotFound):
        return await index.schema_of(str(job.facts["collection"])) == schema
    return False


def _what(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in _AFTERWARDS}
