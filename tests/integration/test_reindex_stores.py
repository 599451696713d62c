"""A reindex and its rollback on a real MongoDB and the real embedded engine, under live writes."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rayapp.bulk.model import Finish, Job, JobState, Partition, PartitionState
from rayapp.bulk.params import REINDEX
from rayapp.bulk.ports import JobWork
from rayapp.container.services import Container
from rayapp.core.errors import RayappError
from rayapp.index.reindex.parts import ReindexParts
from rayapp.index.reindex.service import ReindexWork
from rayapp.index.reindex.switch import ReindexCleanup, RollbackWork
from rayapp.index.rules.points import vector_hash_of
from rayapp.memory.item import Status
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import Tier
from tests.support.engine_container import engine_container
from tests.support.reindex_parts import reindex_parts

pytestmark = pytest.mark.engine
ITEMS = 300
USERS = [WriteScope("dana"), WriteScope("noa")]


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Container]:
    reindex = {"partitions": 4, "batch_size": 40, "sample": 60}
    async with engine_container(tmp_path, reindex=reindex) as container:
        yield container


def job_parts(parts: Container) -> ReindexParts:
    return reindex_parts(
        parts.stores,
        index=parts.index,
        embedder=parts.embedder,
        analyser=parts.texts.analyser,
        schema=parts.schema,
        runtime=parts.runtime,
    )


async def ran(parts: Container, work: JobWork, params: Mapping[str, Any]) -> Finish:
    """The frame in a few lines, on the real job store."""
    jobs, job_id = parts.stores.jobs, parts.runtime.new_id()
    now = parts.runtime.clock.now()
    await jobs.create(Job(job_id=job_id, kind=REINDEX, params=params, created_at=now))
    await jobs.take(job_id, 1, submission_id=None)
    await jobs.planned(job_id, 1, await work.plan())
    job = await jobs.progress(job_id, 1)
    await work.begin(job.facts)
    for row in await jobs.partitions(job_id):
        cursor, state = row.cursor, row.state
        while state is PartitionState.WAITING:
            partition = Partition(index=row.index, payload=row.payload)
            step = await work.step(partition, cursor)
            await jobs.checkpoint(job_id, row.index, 1, step)
            cursor = step.cursor
            state = PartitionState.DONE if cursor is None else PartitionState.WAITING
    finish = await work.finish(await jobs.partitions(job_id))
    await jobs.end(job_id, 1, JobState.COMPLETED, report=finish.report)
    return finish


async def drained(parts: Container) -> None:
    indexing = parts.indexing
    while (await parts.stores.items.backlog()).pending:
        await indexing.run_once()


async def differences(parts: Container) -> list[str]:
    """Between the truth and the collection behind the alias."""
    page, _ = await parts.index.scroll(after=None, limit=10_000)
    points = {point.point_id: point.payload for point in page}
    rows, _ = await parts.stores.scan.page(after=None, until=None, limit=10_000)
    items = {row.point_id: row for row in rows if row.status is Status.ACTIVE}
    found = sorted(points.keys() ^ items.keys())
    for point_id in points.keys() & items.keys():
        item, payload = items[point_id], points[point_id]
        wanted = vector_hash_of(item.content_hash, parts.schema, "")
        if (payload["rev"], payload["vector_hash"]) != (item.index.rev, wanted):
            found.append(point_id)
    return found


async def live(parts: Container, ids: list[tuple[WriteScope, str]], over: asyncio.Event) -> int:
    """Stores, edits, archives and deletes until `over`; how many."""
    memories, rng, done = parts.memories, random.Random(3), 0
    while not over.is_set():
        scope, memory_id = rng.choice(ids)
        kind = rng.choice(["store", "store", "edit", "tags", "archive", "delete"])
        with suppress(RayappError):
            if kind == "store":
                text = f"זיכרון חדש מספר {done}" if done % 2 else f"a new memory, number {done}"
                new = NewMemory(text=text, tier=Tier.HISTORY)
                ids.append((scope, str((await memories.store(scope, new)).memory_id)))
            elif kind == "edit":
                await memories.edit(scope, memory_id, MemoryEdit(text=f"edited {rng.random()}"))
            elif kind == "tags":
                await memories.edit(scope, memory_id, MemoryEdit(tags=(f"t{done}",)))
            elif kind == "archive":
                await memories.archive(scope, memory_id)
            else:
                await memories.delete(scope, memory_id)
        done += 1
        await asyncio.sleep(0.005)
    return done


async def indexed(parts: Container, over: asyncio.Event) -> None:
    indexing = parts.indexing
    while not over.is_set():
        if not await indexing.run_once():
            await asyncio.sleep(0.01)


async def test_a_reindex_and_its_rollback_lose_nothing_on_real_stores(parts: Container) -> None:
    memories, ids = parts.memories, []
    for n in range(ITEMS):
        scope = USERS[n % 2]
        text = f"עובדה מספר {n} על המגדלור" if n % 2 else f"fact number {n} about the lighthouse"
        new = NewMemory(text=text, tier=Tier.HISTORY)
        ids.append((scope, str((await memories.store(scope, new)).memory_id)))
    await drained(parts)
    old = (await parts.index.health()).collection
    over = asyncio.Event()
    tasks = [asyncio.create_task(live(parts, ids, over)), asyncio.create_task(indexed(parts, over))]
    try:
        finish = await ran(parts, ReindexWork(job_parts(parts), {}), {})
        assert finish.complete, finish.report
        new_one = (await parts.index.health()).collection
        assert new_one == finish.report["collection"] != old
        assert finish.report["copied"] > finish.report["embedded"]
        back = await ran(parts, RollbackWork(job_parts(parts)), {"rollback": True})
        assert back.report["switched"]
    finally:
        over.set()
        written, _ = await asyncio.gather(*tasks)
    assert written > 10
    await drained(parts)
    assert (await parts.index.health()).collection == old
    assert await differences(parts) == []
    again = await ran(parts, ReindexWork(job_parts(parts), {}), {"drop_old": True})
    assert again.complete, again.report
    assert await differences(parts) == []
    cleanup = ReindexCleanup(parts.index, parts.stores.jobs, runtime=parts.runtime)
    assert len(await cleanup.drop_old()) == 2
