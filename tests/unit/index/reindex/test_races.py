"""Property: whatever people and indexers do, and wherever the job is killed, the collection behind
the alias is what the truth says, and no collection holds a deleted memory."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rayapp.container import bootstrap
from rayapp.core.errors import RayappError
from rayapp.core.vectors import IndexSchema
from rayapp.index.point_builder import PointBuilder
from rayapp.index.service import IndexingService
from rayapp.memory.item import Status
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import Tier
from tests.support.examples import examples
from tests.unit.index.reindex.world import Driver, OtherModel, World

USERS = [WriteScope("dana"), WriteScope("user1")]
# Ids that are deleted and stored again, as a catalogue's are.
FIXED = ["fixed-1", "fixed-2", "קבוע".encode().hex()]
WORDS = ["lighthouse", "מגדלור", "harbour", "נמל", "paint", "צבע"]


class Killed(BaseException):
    """kill -9: nothing of the process runs any more, cleanup included."""


class Life:
    """One process of the job: after so many calls, none of its calls gets through."""

    def __init__(self, calls: int | None, slow: Callable[[], Awaitable[None]]) -> None:
        self._left, self._slow = calls, slow

    async def step(self) -> None:
        await self._slow()
        if self._left is not None:
            if self._left <= 0:
                raise Killed
            self._left -= 1


class Living:
    """A part of a process: time passes before and after each of its calls."""

    def __init__(self, inner: Any, life: Life) -> None:
        self._inner, self._life = inner, life

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._life.step()
            answer = await getattr(self._inner, name)(*args, **kwargs)
            await self._life.step()
            return answer

        return call

    def at(self, collection: str) -> "Living":
        return Living(self._inner.at(collection), self._life)


class People:
    """Stores, edits, deletes, archives and restores, at random."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng, self._ids = world, rng, list[tuple[WriteScope, str]]()
        self._count = 0

    async def act(self) -> None:
        with suppress(RayappError):
            await self._one()

    async def _one(self) -> None:
        rng, memories = self._rng, self._world.service.services.memories
        if not self._ids or rng.random() < 0.4:
            self._count += 1
            text = f"{' '.join(rng.choices(WORDS, k=3))} {self._count}"
            scope = rng.choice(USERS)
            new = NewMemory(
                text=text,
                memory_id=rng.choice([f"m-{self._count}", *FIXED]),
                tier=rng.choice([Tier.WORKING, Tier.BOOKS]),
            )
            result = await memories.store(scope, new)
            if result.memory_id is not None:
                self._ids.append((scope, result.memory_id))
            return
        scope, memory_id = rng.choice(self._ids)
        kind = rng.choice(["text", "tags", "delete", "archive", "restore"])
        if kind == "text":
            text = f"{' '.join(rng.choices(WORDS, k=4))} edit {rng.random()}"
            await memories.edit(scope, memory_id, MemoryEdit(text=text))
        elif kind == "tags":
            await memories.edit(scope, memory_id, MemoryEdit(tags=(rng.choice(WORDS),)))
        elif kind == "delete":
            await memories.delete(scope, memory_id)
        elif kind == "archive":
            await memories.archive(scope, memory_id)
        else:
            await memories.restore(scope, memory_id)


def maker_of(embedder: Any, schema: IndexSchema) -> PointBuilder:
    analyser = bootstrap.load_texts().analyser
    return PointBuilder(embedder, analyser, schema=schema, timeout_s=10.0)


def indexer(world: World, name: str, slow: Callable[[], Awaitable[None]]) -> IndexingService:
    """One that takes its time between claim, embedding, write and result."""
    service, life = world.service, Life(None, slow)
    runtime = bootstrap.runtime_of(service.settings, service.metrics, service.clock)
    return IndexingService(
        Living(service.items, life),  # type: ignore[arg-type]
        Living(service.index, life),  # type: ignore[arg-type]
        maker_of(Living(service.embedder, life), service.schema),
        Living(service.leases, life),  # type: ignore[arg-type]
        runtime=replace(runtime, process=name),
    )


async def living_through(seed: int, kills: list[int], *, other_model: bool) -> None:
    rng = random.Random(seed)
    # Small claims: a batch that takes longer than its claim is taken over.
    world = await World.open(indexer={"batch_size": 3, "claim_s": 30})
    people, done = People(world, rng), asyncio.Event()

    async def slow() -> None:
        for _ in range(rng.choice([0, 0, 1, 1, 2, 6])):
            await asyncio.sleep(0)

    for _ in range(15):
        await people.act()
    if rng.random() < 0.7:
        await world.service.drain()
    # With another model the service is down, and only its database is written to.
    count = 0 if other_model else 2
    tasks = [
        asyncio.create_task(_living(people, world, rng, done)),
        *(
            asyncio.create_task(_working(indexer(world, f"ix-{n}", slow), done))
            for n in range(count)
        ),
    ]
    model = OtherModel() if other_model else None
    try:
        driver = await _driven(world, [*kills, None], model, slow)
    finally:
        done.set()
        await asyncio.gather(*tasks)
    assert await world.target() == driver.job.facts["collection"]
    if other_model:
        world.service.container.indexing = indexer_of(world, driver, model)
    for pause_s in (100, 1_000):
        world.service.clock.advance(pause_s)
        await world.service.drain()
    assert await world.unlike_the_truth() == []
    rows, _ = await world.service.scan.page(after=None, until=None, limit=10_000)
    living = {item.point_id for item in rows if item.status is Status.ACTIVE}
    for name in await world.service.index.collections():
        assert set(await world.points(name)) <= living


async def _living(people: People, world: World, rng: random.Random, done: asyncio.Event) -> None:
    while not done.is_set():
        await people.act()
        world.service.clock.advance(rng.choice([0.0, 0.001, 0.05]))
        for _ in range(rng.choice([1, 3, 8])):
            await asyncio.sleep(0)


async def _working(service: IndexingService, done: asyncio.Event) -> None:
    while not done.is_set():
        await service.run_once()
        await asyncio.sleep(0)


def indexer_of(world: World, driver: Driver, model: Any) -> IndexingService:
    """The indexer of the service that was restarted with the new model."""
    service = world.service
    runtime = bootstrap.runtime_of(service.settings, service.metrics, service.clock)
    return IndexingService(
        service.items,
        service.index,
        maker_of(model, driver.work._parts.schema),  # type: ignore[attr-defined]
        service.leases,
        runtime=runtime,
    )


async def _driven(
    world: World, lives: list[int | None], model: Any, slow: Callable[[], Awaitable[None]]
) -> Driver:
    """One driver after the other, each killed after so many calls; the last one lives."""

    async def sleep(seconds: float) -> None:
        world.service.clock.advance(seconds)
        await slow()

    job_id: str | None = None
    for calls in lives:
        life = Life(calls, slow)
        parts = await world.parts(model, sleep=sleep)
        parts = replace(parts, runtime=replace(parts.runtime, random=lambda: 0.3))
        names = ("index", "items", "scan", "receipts", "leases", "embedder")
        parts = replace(parts, **{name: Living(getattr(parts, name), life) for name in names})
        driver = Driver(world, {}, parts)
        try:
            await driver.prepare(job_id)
            await driver.partitions()
            finish = await driver.finish()
        except Killed:
            jobs = await world.service.jobs.recent("reindex", 1)
            job_id = jobs[0].job_id if jobs else None
            continue
        assert finish.complete, finish.report
        return driver
    raise AssertionError("the last driver was killed")


# One example takes about 0.3 s alone.
LIMITS = settings(
    max_examples=examples(12),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
CALLS = st.integers(0, 160)


@LIMITS
@given(seed=st.integers(0, 10_000), kills=st.lists(CALLS, max_size=3))
# Each fails without one part: the look after every write, the hold on the indexers.
@example(seed=381_085, kills=[124, 67])
@example(seed=954_912, kills=[36, 42])
@example(seed=795_026, kills=[])
async def test_the_new_collection_is_the_truth_under_live_writes_and_kills(
    seed: int, kills: list[int]
) -> None:
    await living_through(seed, kills, other_model=False)


@LIMITS
@given(seed=st.integers(0, 10_000), kills=st.lists(CALLS, max_size=2))
async def test_another_model_is_filled_while_people_go_on(seed: int, kills: list[int]) -> None:
    await living_through(seed, kills, other_model=True)
