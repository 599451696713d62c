"""What the steps of a reindex share, and collections that are ready and wait for a restart."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rayapp.bulk.model import Job, JobState
from rayapp.bulk.params import REINDEX
from rayapp.bulk.ports import JobStore, LeaseStore
from rayapp.core.errors import NotFound
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema
from rayapp.index.encoding import PassageEncoder
from rayapp.index.point_builder import PointBuilder
from rayapp.index.ports import ItemScan, VectorIndex
from rayapp.index.write_barrier import WriteBarrier
from rayapp.inference.ports import Embedder, Encoder
from rayapp.memory.item import MemoryItem, Status, SyncState
from rayapp.memory.ports import MemoryStore
from rayapp.memory.tiers import Tier
from rayapp.search.ports import ReceiptStore
from rayapp.text.analyser import Analyser


async def nothing_to_close() -> None:
    """For parts that belong to somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexParts:
    """`embedder`, `encoder` (None: off), `analyser` and `schema` are the job's own: of the
    configured models."""

    index: VectorIndex
    items: MemoryStore
    scan: ItemScan
    receipts: ReceiptStore
    leases: LeaseStore
    jobs: JobStore
    embedder: Embedder
    encoder: Encoder | None = None
    analyser: Analyser
    schema: IndexSchema
    runtime: Runtime
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    # Between two renewals of the hold, which go on beside the work.
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    close: Callable[[], Awaitable[None]] = nothing_to_close

    def maker(self) -> PointBuilder:
        limit_s = self.runtime.settings.embedding.batch_timeout_s
        return PointBuilder(
            self.embedder,
            self.analyser,
            schema=self.schema,
            timeout_s=limit_s,
            encoder=None if self.encoder is None else PassageEncoder(self.encoder, limit_s),
        )

    def hold(self) -> WriteBarrier:
        return WriteBarrier(
            self.leases,
            self.scan,
            holder=self.runtime.process,
            claim_s=self.runtime.settings.indexer.claim_s,
            clock=self.runtime.clock,
            sleep=self.sleep,
            pause=self.pause,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexFacts:
    """What the plan fixed. `previous`: behind the alias then; None when nothing was."""

    collection: str
    previous: str | None
    schema: IndexSchema
    watermark: datetime

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"watermark": self.watermark.isoformat()}


def facts_of(stored: Mapping[str, Any]) -> ReindexFacts:
    return ReindexFacts(
        collection=stored["collection"],
        previous=stored["previous"],
        schema=IndexSchema(**stored["schema"]),
        watermark=datetime.fromisoformat(stored["watermark"]),
    )


def belongs(item: MemoryItem) -> bool:
    """The index is to hold it; items that gave up are told of elsewhere."""
    return is_wanted(item.status, item.index.sync_state)


def is_wanted(status: Status, sync_state: SyncState) -> bool:
    """`belongs` of a row of which no more is known."""
    return status is Status.ACTIVE and sync_state is not SyncState.FAILED


@dataclass(frozen=True, slots=True)
class Refresh:
    """Whose vectors are made anew although they could be copied. The collection is filled whole
    all the same: one with a part of the items could never go behind the alias."""

    user_id: str | None = None
    tier: Tier | None = None
    since: datetime | None = None

    def takes(self, item: MemoryItem) -> bool:
        if self == Refresh():
            return False
        return (
            self.user_id in (None, item.user_id)
            and self.tier in (None, item.tier)
            and (self.since is None or item.updated_at >= self.since)
        )


def refresh_of(params: Mapping[str, Any]) -> Refresh:
    tier, since = params.get("tier"), params.get("since")
    return Refresh(
        user_id=params.get("user_id"),
        tier=Tier(tier) if tier else None,
        since=datetime.fromisoformat(since) if since else None,
    )


# Collections that a reindex filled and proved without putting them behind the alias.

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
    return await schema_or_none(index, str(job.facts["collection"])) == schema


async def schema_or_none(index: VectorIndex, name: str | None) -> IndexSchema | None:
    """What a collection was built for; None: none is named, or it was dropped."""
    if name is not None:
        with suppress(NotFound):
            return await index.schema_of(name)
    return None


def _what(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in _AFTERWARDS}
