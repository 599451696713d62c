"""Items that the index does not hold: counted, hastened, and found again after an empty search."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rayapp.bulk.model import Partition, PartitionRow
from rayapp.core.errors import BadVector, EmbedderDown, IndexDown
from rayapp.index import deferred as module
from rayapp.index.deferred import (
    COOLDOWN_S,
    FAILURES_SHOWN,
    MAX_LOOKS,
    MAX_USERS,
    QUIET_LOOKS,
    DeferredService,
    DeferredWork,
)
from rayapp.memory.scope import ReadScope
from tests.support.harness import Harness

DANA, NOAM = ReadScope("dana"), ReadScope("noam")
TEXTS = ("Dana moved to Haifa in May.", "דנה עברה לחיפה במאי.")


async def opened() -> Harness:
    return await Harness.open(search={"pending_limit": 0, "resident_bytes": 0})


def service_of(world: Harness) -> DeferredService:
    found = world.services.deferred
    assert isinstance(found, DeferredService)
    return found


async def lose_points(world: Harness, *memory_ids: str, user: str = "dana") -> list[str]:
    """Delete points behind the back of the service."""
    items = [await world.items.get(ReadScope(user), one) for one in memory_ids]
    points = [item.point_id for item in items]
    await world.index.delete(points)
    return points


def hold_looks(world: Harness) -> asyncio.Event:
    """Every look waits until it is set, and finds nothing."""
    held = asyncio.Event()

    async def slow(user_id: str | None) -> int:
        await held.wait()
        return 0

    world.items.inner.waiting = slow
    return held


def looks(world: Harness) -> dict[str, float]:
    return {
        dict(labels)["found"]: value
        for (name, labels), value in world.metrics.counters.items()
        if name == "empty_search_looks"
    }


async def nudged(world: Harness, scope: ReadScope = DANA) -> None:
    service_of(world).check_missing(scope)
    await service_of(world).settled()


@pytest.mark.parametrize("text", TEXTS)
async def test_a_search_after_an_empty_one_finds_what_the_index_had_lost(text: str) -> None:
    world = await opened()
    memory_id = await world.store(text)
    await world.drain()
    assert await world.found(text) == [memory_id]
    await lose_points(world, memory_id)
    assert await world.found(text) == []
    await service_of(world).settled()
    assert await world.drain() == 1
    assert await world.found(text) == [memory_id]
    assert looks(world) == {"missing": 1.0}


async def test_a_search_that_finds_something_looks_for_nothing() -> None:
    world = await opened()
    await world.store(TEXTS[0])
    await world.drain()
    assert await world.found(TEXTS[0])
    await service_of(world).settled()
    assert looks(world) == {}


async def test_a_search_does_not_wait_for_the_look() -> None:
    world = await opened()
    held = hold_looks(world)
    assert await world.found("nothing at all") == []
    assert looks(world) == {}
    held.set()
    await service_of(world).settled()
    assert looks(world) == {"nothing": 1.0}


async def test_waiting_items_of_this_user_are_made_due() -> None:
    world = await opened()
    await world.store(TEXTS[0])
    await world.store(TEXTS[1], user="noam")
    world.embedder.error = EmbedderDown("The embedder is away.")
    await world.drain()
    world.embedder.error = None
    assert await world.drain() == 0  # both back off
    await nudged(world)
    assert await world.drain() == 1
    assert looks(world) == {"waiting": 1.0}


async def test_only_this_users_missing_points_are_asked_for() -> None:
    world = await opened()
    mine = await world.store(TEXTS[0])
    kept = await world.store(TEXTS[1])
    theirs = await world.store(TEXTS[0], user="noam")
    await world.drain()
    await lose_points(world, mine)
    await lose_points(world, theirs, user="noam")
    await nudged(world)
    assert await world.drain() == 1
    assert len(await world.index.retrieve(await points_of(world, mine, kept))) == 2


async def points_of(world: Harness, *memory_ids: str) -> list[str]:
    return [(await world.items.get(DANA, one)).point_id for one in memory_ids]


async def test_equal_counts_end_the_look() -> None:
    world = await opened()
    await world.store(TEXTS[0])
    await world.drain()
    world.index.calls.clear()
    await nudged(world)
    assert looks(world) == {"nothing": 1.0}
    assert "retrieve" not in world.index.calls


async def test_points_that_should_not_be_there_are_left_to_the_sweep() -> None:
    world = await opened()
    memory_id = await world.store(TEXTS[0])
    await world.drain()
    item = await world.items.get(DANA, memory_id)
    del world.items.inner._rows[item.point_id]
    await nudged(world)
    assert looks(world) == {"nothing": 1.0}


async def test_one_look_asks_for_so_many_points_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MISSING", 3)
    monkeypatch.setattr(module, "PAGE", 2)
    world = await opened()
    ids = [await world.store(f"note number {n} about the garden") for n in range(8)]
    await world.drain()
    await lose_points(world, *ids)
    await nudged(world)
    assert await world.drain() == 3


async def test_one_look_compares_so_many_items_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COMPARED", 4)
    monkeypatch.setattr(module, "PAGE", 2)
    world = await opened()
    ids = []
    for n in range(6):
        world.clock.advance(1)
        ids.append(await world.store(f"note number {n} about the garden"))
    await world.drain()
    await lose_points(world, ids[0], ids[5])  # the oldest and the newest
    await nudged(world)
    assert await world.drain() == 1
    assert len(await world.index.retrieve(await points_of(world, ids[5]))) == 1


async def test_a_user_is_looked_at_once_per_cooldown() -> None:
    world = await opened()
    for _ in range(3):
        await nudged(world)
    await nudged(world, NOAM)
    assert looks(world) == {"nothing": 2.0}
    world.clock.advance(COOLDOWN_S - 0.1)
    await nudged(world)
    assert looks(world) == {"nothing": 2.0}
    world.clock.advance(0.2)
    await nudged(world)
    assert looks(world) == {"nothing": 3.0}


async def test_so_many_users_are_remembered_at_most() -> None:
    world = await opened()
    for n in range(MAX_USERS + 5):
        await nudged(world, ReadScope(f"user-{n}"))
    service = service_of(world)
    assert len(service._looked) == MAX_USERS
    await nudged(world, ReadScope(f"user-{MAX_USERS + 4}"))  # remembered
    assert looks(world) == {"nothing": MAX_USERS + 5}
    await nudged(world, ReadScope("user-0"))  # forgotten
    assert looks(world) == {"nothing": MAX_USERS + 6}


async def test_so_many_looks_go_on_at_a_time() -> None:
    world = await opened()
    held = hold_looks(world)
    for n in range(MAX_LOOKS + 3):
        service_of(world).check_missing(ReadScope(f"user-{n}"))
    held.set()
    await service_of(world).settled()
    assert looks(world) == {"nothing": MAX_LOOKS}
    await nudged(world, ReadScope(f"user-{MAX_LOOKS + 1}"))  # its look was not counted as done
    assert looks(world) == {"nothing": MAX_LOOKS + 1}


@pytest.mark.parametrize("error", [IndexDown("The index is away."), KeyError("a defect")])
async def test_a_failing_look_is_logged_and_never_raised(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    world = await opened()

    async def fails(*args: Any, **kwargs: Any) -> int:
        raise error

    world.index.inner.count = fails
    answer = await world.search("anything")
    assert answer.hits == ()
    await service_of(world).settled()
    assert looks(world) == {"failed": 1.0}
    assert "empty search" in caplog.text


async def test_waiting_and_hasten_speak_of_one_user_or_of_all() -> None:
    world = await opened()
    await world.store(TEXTS[0])
    await world.store(TEXTS[1], user="noam")
    service = service_of(world)
    assert [await service.waiting(who) for who in ("dana", "noam", "nobody", None)] == [1, 1, 0, 2]
    world.embedder.error = EmbedderDown("The embedder is away.")
    await world.drain()
    assert await service.requeue("dana") == 1
    assert await service.requeue(None) == 1  # the other one is due already


# --- the job


async def driven(work: DeferredWork, world: Harness, between: Sequence[Any] = ()) -> PartitionRow:
    """Every step of the one partition; `between` is awaited between steps, one each."""
    (partition,) = (await work.plan()).partitions
    await work.begin({})
    row = PartitionRow(job_id="j", index=0, payload=partition.payload)
    actions, cursor = list(between), None
    while True:
        step = await work.step(Partition(index=0, payload=partition.payload), cursor)
        counts = {
            name: row.counts.get(name, 0) + step.counts.get(name, 0)
            for name in {*row.counts, *step.counts}
        }
        row = PartitionRow(
            job_id="j",
            index=0,
            payload=partition.payload,
            done=row.done + step.done,
            failed=row.failed + step.failed,
            counts=counts,
            steps=row.steps + 1,
        )
        if step.cursor is None:
            return row
        cursor = step.cursor
        if actions:
            await actions.pop(0)()


def job_of(world: Harness, user_id: str | None = None) -> DeferredWork:
    async def no_pause(seconds: float) -> None:
        await asyncio.sleep(0)

    return DeferredWork(world.items, world.scan, user_id=user_id, sleep=no_pause)


@pytest.mark.parametrize("user_id", [None, "dana"])
async def test_the_job_follows_the_items_until_none_waits(user_id: str | None) -> None:
    world = await opened()
    for text in TEXTS:
        await world.store(text)
    work = job_of(world, user_id)
    assert (await work.plan()).total == 2
    row = await driven(work, world, [world.drain])
    finish = await work.finish([row])
    assert (row.done, row.failed, finish.complete) == (2, 0, True)
    assert finish.report["indexed"] == 2


async def test_the_job_tries_failed_items_again_and_names_those_that_fail_again() -> None:
    world = await Harness.open(indexer={"max_attempts": 1})

    async def refuses(*args: Any, **kwargs: Any) -> None:
        raise BadVector("The vector has no length.")

    memory_id = await world.store(TEXTS[0])
    kept, world.index.inner.upsert = world.index.inner.upsert, refuses
    await world.drain()
    assert (await world.items.backlog()).failed == 1
    work = job_of(world)
    row = await driven(work, world, [world.drain])
    finish = await work.finish([row])
    assert not finish.complete
    assert [one["memory_id"] for one in finish.report["failures"]] == [memory_id]
    world.index.inner.upsert = kept
    row = await driven(work, world, [world.drain])
    assert (await work.finish([row])).complete
    assert row.counts["hastened"] == 1


async def test_the_job_gives_up_when_nobody_works() -> None:
    world = await opened()
    await world.store(TEXTS[0])
    work = job_of(world)
    row = await driven(work, world)
    assert (row.steps, row.done, row.failed) == (QUIET_LOOKS + 1, 1, 1)
    finish = await work.finish([row])
    assert (finish.complete, finish.report["stuck"], finish.report["indexed"]) == (False, 1, 0)


@pytest.mark.parametrize("user_id", [None, "dana"])
async def test_items_that_come_in_meanwhile_keep_the_job_from_nothing(user_id: str | None) -> None:
    """Two new ones for every look: the queue is never empty."""
    world = await opened()
    await world.store(TEXTS[0])
    work = job_of(world, user_id)
    numbers = iter(range(1_000))

    async def two_more() -> None:
        world.clock.advance(1)
        for _ in range(2):
            await world.store(f"{TEXTS[1]} {next(numbers)}")

    async def drained_and_two_more() -> None:
        await world.drain()
        await two_more()

    row = await driven(work, world, [two_more, two_more, drained_and_two_more])
    finish = await work.finish([row])
    assert (row.done, row.failed, row.steps) == (1, 0, 4)
    assert (finish.complete, finish.report["waiting"]) == (True, 2)


async def test_the_job_of_a_user_names_the_failures_of_that_user() -> None:
    world = await Harness.open(indexer={"max_attempts": 1})

    async def refuses(*args: Any, **kwargs: Any) -> None:
        raise BadVector("The vector has no length.")

    for n in range(FAILURES_SHOWN + 1):
        await world.store(f"{TEXTS[0]} {n}", user="noam")
    memory_id = await world.store(TEXTS[1])
    world.index.inner.upsert = refuses
    await world.drain()
    finish = await job_of(world, "dana").finish([])
    assert [one["memory_id"] for one in finish.report["failures"]] == [memory_id]
    assert not finish.complete


async def test_with_nothing_to_do_the_job_is_done() -> None:
    world = await opened()
    work = job_of(world)
    row = await driven(work, world)
    assert (row.done, row.steps, (await work.finish([row])).complete) == (0, 2, True)
