"""A service on fakes with a reindex beside it, driven step by step as the frame drives it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rayapp.bulk.model import Finish, Job, JobState, Partition, PartitionState
from rayapp.bulk.params import REINDEX
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.errors import BadVector
from rayapp.core.vectors import Vector
from rayapp.index.records import StoredPoint
from rayapp.index.reindex.parts import ReindexParts
from rayapp.index.reindex.service import ReindexWork
from rayapp.index.reindex.switch import ReindexCleanup, RollbackWork
from rayapp.index.rules.points import payload_of, vector_hash_of
from rayapp.inference.ports import EmbedderInfo, TextKind
from rayapp.memory.item import Status
from rayapp.memory.scope import WriteScope
from tests.support.harness import Harness
from tests.support.reindex_parts import reindex_parts

DANA = WriteScope("dana")
SMALL = {"partitions": 3, "batch_size": 4, "sample": 40, "receipts": 5}


class OtherModel:
    """Another model: its own name, size and vectors; a text with "poison" has no vector."""

    def __init__(self, model: str = "other/model", dims: int = 24) -> None:
        self.model, self.dims = model, dims
        self.passages = 0

    async def info(self) -> EmbedderInfo:
        return EmbedderInfo(backend="test", model=self.model, dims=self.dims)

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        if any("poison" in text for text in texts):
            raise BadVector("The model gave NaN.")
        self.passages += len(texts) if kind == "passage" else 0
        return [self._vector(text) for text in texts]

    async def health(self) -> dict[str, Any]:
        return {"healthy": True}

    def _vector(self, text: str) -> Vector:
        seed = int.from_bytes(hashlib.sha256(f"{self.model}{text}".encode()).digest()[:8])
        raw = np.random.default_rng(seed).standard_normal(self.dims).astype(np.float32)
        vector: Vector = raw / np.linalg.norm(raw)
        return vector


class World:
    """`service` is the running service; `parts()` are those of a job process."""

    def __init__(self, service: Harness) -> None:
        self.service = service
        self.numbers = 0

    @classmethod
    async def open(cls, **overrides: Any) -> World:
        reindex = SMALL | overrides.pop("reindex", {})
        return cls(await Harness.open(reindex=reindex, **overrides))

    async def parts(self, embedder: Any = None, **changes: Any) -> ReindexParts:
        service = self.service
        texts = bootstrap.load_texts()
        model = embedder or service.embedder
        self.numbers += 1
        runtime = bootstrap.runtime_of(service.settings, service.metrics, service.clock)
        made = reindex_parts(
            service,
            index=service.index,
            embedder=model,
            analyser=texts.analyser,
            schema=bootstrap.schema_of(await model.info(), texts.analyser),
            runtime=replace(runtime, process=f"job-{self.numbers}"),
            sleep=self.sleep,
        )
        return replace(made, **changes)

    async def sleep(self, seconds: float) -> None:
        self.service.clock.advance(seconds)

    async def fill(self, count: int, *, users: int = 3) -> list[str]:
        """Store and index; half of the texts are Hebrew."""
        ids = []
        for n in range(count):
            text = f"מגדלור מספר {n} צריך צבע" if n % 2 else f"lighthouse {n} needs paint"
            user = f"user{n % users}" if n % users else "dana"
            ids.append(await self.service.store(text, user=user))
        await self.service.drain()
        return ids

    async def target(self) -> str:
        return str((await self.service.index.health()).collection)

    async def points(self, collection: str | None = None) -> dict[str, StoredPoint]:
        page, _ = await self.service.index.at(collection).scroll(after=None, limit=10_000)
        return {point.point_id: point for point in page}

    async def run(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        parts: ReindexParts | None = None,
        after_fill: Callable[[Job], Awaitable[None]] | None = None,
    ) -> tuple[Job, Finish]:
        """A whole job, stored as the frame stores it."""
        driver = Driver(self, params or {}, parts or await self.parts())
        await driver.prepare()
        await driver.partitions()
        if after_fill is not None:
            await after_fill(driver.job)
        finish = await driver.finish()
        return driver.job, finish

    async def rollback(self, parts: ReindexParts | None = None) -> Finish:
        _, finish = await self.run({"rollback": True}, parts=parts)
        return finish

    def cleanup(self) -> ReindexCleanup:
        service = self.service
        runtime = bootstrap.runtime_of(service.settings, service.metrics, service.clock)
        return ReindexCleanup(service.index, service.jobs, runtime=runtime)

    async def unlike_the_truth(self, collection: str | None = None) -> list[str]:
        """What the collection has, lacks, or has differently; everything was indexed before."""
        index = self.service.index
        schema = await index.schema_of(collection or await self.target())
        points = await self.points(collection)
        rows = await self.service.scan.page(after=None, until=None, limit=10_000)
        items = {item.point_id: item for item in rows[0] if item.status is Status.ACTIVE}
        found = [f"{i} is extra" for i in points.keys() - items.keys()]
        found += [f"{i} is missing" for i in items.keys() - points.keys()]
        for point_id in points.keys() & items.keys():
            item, stored = items[point_id], points[point_id].payload
            payload = {k: v for k, v in stored.items() if v is not None}
            wanted = {k: v for k, v in payload_of(item).items() if v is not None}
            wanted["analyser"] = schema.analyser
            wanted["vector_hash"] = vector_hash_of(item.content_hash, schema, item.context_prefix)
            if payload != wanted:
                found.append(f"{item.memory_id} differs: {payload} {wanted}")
        return found


class Driver:
    """The frame in a few lines; every method may be repeated by a new one after a kill."""

    job: Job

    def __init__(self, world: World, params: Mapping[str, Any], parts: ReindexParts) -> None:
        self._jobs, self._params = world.service.jobs.inner, params
        self.work: JobWork = (
            RollbackWork(parts) if params.get("rollback") else ReindexWork(parts, params)
        )
        self._world = world

    async def prepare(self, job_id: str | None = None) -> None:
        """Create or resume the job, plan, begin."""
        self._world.service.clock.advance(1)  # names of collections hold their time
        if job_id is None:
            job_id = bootstrap.new_id()
            now = self._world.service.clock.now()
            await self._jobs.create(
                Job(job_id=job_id, kind=REINDEX, params=self._params, created_at=now)
            )
        known = await self._jobs.get(job_id)
        assert known is not None
        self.job = await self._jobs.take(job_id, known.fence + 1, submission_id=None)
        if not self.job.planned:
            await self._jobs.planned(job_id, self.job.fence, await self.work.plan())
        self.job = await self._jobs.progress(job_id, self.job.fence)
        await self.work.begin(self.job.facts)

    async def partitions(self) -> None:
        for row in await self._jobs.partitions(self.job.job_id):
            cursor, state = row.cursor, row.state
            while state is PartitionState.WAITING:
                partition = Partition(index=row.index, payload=row.payload)
                step = await self.work.step(partition, cursor)
                await self._jobs.checkpoint(self.job.job_id, row.index, self.job.fence, step)
                cursor = step.cursor
                state = PartitionState.DONE if cursor is None else PartitionState.WAITING

    async def finish(self) -> Finish:
        rows = await self._jobs.partitions(self.job.job_id)
        finish = await self.work.finish(rows)
        self.job = await self._jobs.end(
            self.job.job_id, self.job.fence, JobState.COMPLETED, report=finish.report
        )
        return finish
