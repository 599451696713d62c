"""The moment of the switch: who stops it, what keeps it alive, and how it ends when cut short."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from rayapp.bulk.model import JobState
from rayapp.core.errors import Conflict, StoreDown
from rayapp.index import service as indexing
from rayapp.index.records import WHOLE
from rayapp.index.reindex.copy import Follower
from rayapp.index.service import beat
from rayapp.index.write_barrier import HOLD_S, SWITCH_LEASE, WriteBarrier
from tests.support.index_points import written_again
from tests.unit.index.reindex.world import DANA, Driver, OtherModel, World

Then = Callable[[], Awaitable[None]]


class Around:
    """A part of a job, with something else before each call of one of its methods."""

    def __init__(self, inner: Any, before: Callable[[str], Awaitable[None]]) -> None:
        self._inner, self._before = inner, before

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._before(name)
            return await getattr(self._inner, name)(*args, **kwargs)

        return call

    def at(self, collection: str) -> "Around":
        return Around(self._inner.at(collection), self._before)


def before(inner: Any, method: str, then: Then) -> Any:
    async def look(name: str) -> None:
        if name == method:
            await then()

    return Around(inner, look)


# --- a service with the old model


async def test_an_old_service_that_comes_up_while_it_verifies_keeps_its_index(world: World) -> None:
    await world.fill(10)
    old, model = await world.target(), OtherModel()
    driver = Driver(world, {}, await world.parts(model))
    await driver.prepare()
    await driver.partitions()
    embed: Any = model.embed

    async def embedding(*args: Any, **kwargs: Any) -> Any:
        await beat(world.service.leases, world.service.schema, "indexer")
        return await embed(*args, **kwargs)

    model.embed = embedding  # type: ignore[method-assign]
    finish = await driver.finish()
    assert (finish.complete, finish.report["switched"], finish.report["ready"]) == (
        True,
        False,
        True,
    )
    assert "restart the service with other/model" in finish.report["next"]
    assert await world.target() == old


# --- the hold


def on_the_clock(world: World) -> Callable[[float], Awaitable[None]]:
    """A pause that ends when the clock of the test has come so far."""

    async def pause(seconds: float) -> None:
        end = world.service.clock.monotonic() + seconds
        while world.service.clock.monotonic() < end:  # noqa: ASYNC110  # the clock is the test's
            await asyncio.sleep(0)

    return pause


async def passing(world: World, seconds: float) -> None:
    """Time in which other tasks run."""
    for _ in range(int(seconds)):
        world.service.clock.advance(1)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_a_rollback_after_a_busy_day_keeps_its_hold(world: World) -> None:
    await world.fill(6)
    old = await world.target()
    await world.run()
    parts = await world.parts(pause=on_the_clock(world))
    slow = before(parts.scan, "requeue_indexed_since", lambda: passing(world, 3 * HOLD_S))
    assert (await world.rollback(replace(parts, scan=slow))).complete
    assert await world.target() == old


async def test_counts_that_take_long_keep_the_hold(world: World) -> None:
    await world.fill(6)
    parts = await world.parts(pause=on_the_clock(world))
    slow = before(parts.index, "count", lambda: passing(world, 2 * HOLD_S))
    _, finish = await world.run(parts=replace(parts, index=slow))
    assert finish.report["switched"]


def hold_of(world: World, leases: Any) -> WriteBarrier:
    service = world.service
    return WriteBarrier(
        leases,
        service.scan,
        holder="one",
        claim_s=60,
        clock=service.clock,
        sleep=world.sleep,
        pause=on_the_clock(world),
    )


async def test_a_lost_hold_ends_what_is_done_within(world: World) -> None:
    leases, ended = world.service.leases, False

    async def hold_on() -> None:
        nonlocal ended
        async with hold_of(world, leases):
            world.service.clock.advance(HOLD_S + 1)  # the process was stopped for so long
            assert await leases.acquire(SWITCH_LEASE, "another", 1_000) is not None
            await passing(world, 60)
            ended = True

    with pytest.raises(Conflict, match="hold on the indexers was lost"):
        await hold_on()
    assert not ended
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    lease = await leases.current(SWITCH_LEASE)
    assert lease is not None
    assert lease.holder == "another"


@pytest.mark.parametrize(("away_s", "lost"), [(HOLD_S / 2, False), (4 * HOLD_S, True)])
async def test_a_store_that_is_away_ends_a_hold_after_its_time(
    world: World, away_s: float, lost: bool
) -> None:
    until, clock, seen = 0.0, world.service.clock, False

    async def away() -> None:
        if clock.monotonic() < until:
            raise StoreDown("The database is away.")

    hold = hold_of(world, before(world.service.leases, "acquire", away))

    async def hold_on() -> None:
        nonlocal until, seen
        async with hold:
            until = clock.monotonic() + away_s
            await passing(world, 2 * HOLD_S)
            seen = True

    if lost:
        with pytest.raises(StoreDown):
            await hold_on()
    else:
        await hold_on()
    assert seen is not lost


async def test_a_cancel_from_outside_stays_a_cancel_and_gives_the_hold_back(world: World) -> None:
    async def hold_on() -> None:
        async with hold_of(world, world.service.leases):
            await asyncio.Event().wait()

    task = asyncio.create_task(hold_on())
    await passing(world, 1)
    assert await world.service.leases.current(SWITCH_LEASE) is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await world.service.leases.current(SWITCH_LEASE) is None


# --- cut short


async def finish_cut_at(world: World, at: int) -> bool:
    """A whole reindex whose `finish` is cancelled at its call number `at`; True when it ended."""
    parts, calls = await world.parts(), 0
    driver = Driver(world, {}, parts)
    await driver.prepare()
    await driver.partitions()

    async def cut(name: str) -> None:
        nonlocal calls
        calls += 1
        if name == "switch_alias":  # a batch that was claimed before the hold
            await world.service.store(f"נכתב לאינדקס הישן {at}")
            await world.service.drain()
        if calls == at:
            finishing.cancel()
        await asyncio.sleep(0)

    names = ("index", "scan", "items", "leases", "receipts", "embedder")
    around: dict[str, Any] = {name: Around(getattr(parts, name), cut) for name in names}
    work: Any = driver.work
    work._parts = replace(parts, **around)
    finishing = asyncio.create_task(driver.finish())
    try:
        await finishing
    except asyncio.CancelledError:
        await world.service.jobs.end(driver.job.job_id, driver.job.fence, JobState.CANCELLED)
        return False
    return True


async def test_a_finish_may_be_cancelled_at_every_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the switch the alias stays; from then on the switch is seen through."""

    async def never(_: Any) -> bool:
        return False

    await world.fill(9)
    monkeypatch.setattr(indexing, "held", never)
    moved: list[bool] = []
    ended, at = False, 1
    while not ended:
        old = await world.target()
        ended = await finish_cut_at(world, at)
        assert await world.service.leases.current(SWITCH_LEASE) is None
        assert await world.unlike_the_truth() == []
        moved.append(await world.target() != old)
        at += 1
    assert moved == sorted(moved)
    assert moved.index(True) > 10
    assert len(moved) - moved.index(True) > 4


# --- catching up


async def test_a_pass_ends_although_the_indexers_are_as_fast(world: World) -> None:
    await world.fill(8)
    parts = await world.parts()
    driver = Driver(world, {}, parts)
    await driver.prepare()
    await driver.partitions()
    pages = 0

    async def traffic() -> None:
        nonlocal pages
        pages += 1
        assert pages < 50, "it never catches up"
        world.service.clock.advance(0.2)
        for n in range(4):
            await world.service.store(f"page {pages} item {n}")
        await world.service.drain()

    work: Any = driver.work
    copier, since = work._copier, work._facts.watermark
    busy = replace(parts, scan=before(parts.scan, "indexed_since", traffic))
    await Follower(busy, copier, since).one_pass()
    assert pages <= 4
    # The next pass begins where this one did, so that nothing is passed over.
    assert (await driver.finish()).complete
    assert await world.unlike_the_truth() == []


# --- what --switch never leaves


async def test_a_collection_that_was_left_ready_is_caught_up_with_and_switched_to(
    world: World,
) -> None:
    ids = await world.fill(8, users=1)
    old = await world.target()
    ready, _ = await world.run({"switch": "never"})
    await world.service.store("אחרי שהאינדקס היה מוכן")
    await world.service.services.memories.delete(DANA, ids[0])
    await world.service.drain()
    job, finish = await world.run()
    assert (finish.complete, finish.report["reused"]) == (True, True)
    assert finish.report["embedded"] + finish.report["copied"] == 0
    assert await world.target() == job.facts["collection"] == ready.facts["collection"]
    assert await world.unlike_the_truth() == []
    await world.rollback()
    assert await world.target() == old
    # What was gone back from is not gone to again.
    fresh, finish = await world.run()
    assert (finish.report["switched"], finish.report["reused"]) == (True, False)
    assert fresh.facts["collection"] != ready.facts["collection"]


async def test_another_model_that_was_left_ready_is_switched_to(world: World) -> None:
    await world.fill(6)
    model = OtherModel()
    ready, _ = await world.run({"switch": "never"}, parts=await world.parts(model))
    made = model.passages
    _, finish = await world.run(parts=await world.parts(model))
    assert finish.report["switched"]
    assert await world.target() == ready.facts["collection"]
    assert model.passages - made == 6  # the sample that proves it, and no fill
    assert not (await world.run())[1].report["reused"]


@pytest.mark.parametrize("params", [{"switch": "never"}, {"tier": "books"}])
async def test_what_was_asked_otherwise_is_filled_anew(
    world: World, params: dict[str, Any]
) -> None:
    await world.fill(4)
    await world.run({"switch": "never"})
    _, finish = await world.run(params)
    assert (finish.report["reused"], finish.report["items"]) == (False, 4)


async def test_a_ready_collection_that_proves_bad_is_filled_anew_next_time(world: World) -> None:
    await world.fill(6)
    ready, _ = await world.run({"switch": "never"})
    name = ready.facts["collection"]
    index = world.service.index.at(name)
    (point,) = await index.retrieve(list(await world.points(name))[:1], WHOLE)
    await index.upsert([written_again(point, dense=-point.dense)])
    _, finish = await world.run()
    assert (finish.complete, finish.report["reused"]) == (False, True)
    _, finish = await world.run()
    assert (finish.report["switched"], finish.report["reused"]) == (True, False)
