"""The way back, the collections that are dropped, and the restart with another model."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.bulk.model import Job, JobState
from rayapp.core.errors import Conflict, NotFound
from rayapp.index.reindex.switch import adopt_ready
from rayapp.index.service import SERVING_S, beat, is_served
from rayapp.memory.requests import MemoryEdit
from tests.unit.index.reindex.world import DANA, Driver, OtherModel, World

HOURS = timedelta(hours=24)


async def beaten(world: World, schema: Any) -> Any:
    """A sleep during which a service with `schema` goes on living."""
    await beat(world.service.leases, schema, "indexer")

    async def sleep(seconds: float) -> None:
        world.service.clock.advance(seconds)
        await beat(world.service.leases, schema, "indexer")

    return sleep


# --- rollback


async def test_a_rollback_brings_back_the_old_collection_with_what_came_since(world: World) -> None:
    ids = await world.fill(12, users=1)
    old = await world.target()
    job, _ = await world.run()
    world.service.clock.advance(60)
    memories = world.service.services.memories
    await world.service.store("stored after the switch")
    await memories.edit(DANA, ids[0], MemoryEdit(text="נערך אחרי המעבר"))
    await memories.delete(DANA, ids[1])
    await world.service.drain()
    finish = await world.rollback()
    assert finish.complete
    assert await world.target() == old
    assert finish.report["requeued"] >= 2
    await world.service.drain()
    assert await world.unlike_the_truth() == []
    assert job.facts["collection"] in await world.service.index.collections()


async def test_a_rollback_waits_for_a_batch_under_way(world: World) -> None:
    await world.fill(3)
    await world.run()
    await world.service.store("slow")
    await world.service.items.claim(token="slow", limit=5, claim_s=60)
    began = world.service.clock.monotonic()
    await world.rollback()
    assert world.service.clock.monotonic() - began >= 60


async def test_a_rollback_may_be_repeated_after_a_kill(world: World) -> None:
    await world.fill(4)
    old = await world.target()
    await world.run()
    driver = Driver(world, {"rollback": True}, await world.parts())
    await driver.prepare()
    await world.service.index.switch_alias(old)
    again = Driver(world, {"rollback": True}, await world.parts())
    await again.prepare(driver.job.job_id)
    assert (await again.finish()).report["switched"]
    assert await world.target() == old


async def test_without_a_reindex_there_is_nothing_to_roll_back(world: World) -> None:
    with pytest.raises(NotFound, match="nothing to roll back"):
        await world.rollback()


async def test_a_dropped_collection_cannot_come_back(world: World) -> None:
    await world.fill(2)
    await world.run({"drop_old": True})
    with pytest.raises(NotFound, match="was dropped"):
        await world.rollback()


async def test_only_the_configured_model_is_gone_back_to(world: World) -> None:
    await world.fill(4)
    old, other = await world.target(), await world.parts(OtherModel())
    await world.run(parts=other)
    with pytest.raises(Conflict, match="set the embedding model back"):
        await world.rollback(other)
    sleep = await beaten(world, other.schema)
    with pytest.raises(Conflict, match="restart it with"):
        await world.rollback(await world.parts(sleep=sleep))
    await world.rollback()
    assert await world.target() == old


# --- cleanup


async def test_the_old_collection_is_dropped_after_the_rollback_window(world: World) -> None:
    await world.fill(2)
    old = await world.target()
    await world.run()
    assert await world.cleanup().run() == []
    world.service.clock.advance(HOURS.total_seconds() - 60)
    assert await world.cleanup().run() == []
    world.service.clock.advance(61)
    assert await world.cleanup().run() == [old]
    assert await world.service.index.collections() == [await world.target()]


async def test_after_a_rollback_the_newer_collection_is_the_one_that_goes(world: World) -> None:
    await world.fill(2)
    old = await world.target()
    job, _ = await world.run()
    await world.rollback()
    world.service.clock.advance(HOURS.total_seconds() + 60)
    assert await world.cleanup().run() == [job.facts["collection"]]
    assert await world.target() == old


@pytest.mark.parametrize(
    ("state", "at_once"),
    [
        (JobState.RUNNING, False),
        (JobState.PAUSED, False),
        (JobState.FAILED, False),
        (JobState.CANCELLED, True),
    ],
)
async def test_what_a_cut_short_build_left_is_dropped_when_nobody_goes_on_with_it(
    world: World, state: JobState, at_once: bool
) -> None:
    await world.fill(2)
    driver = Driver(world, {}, await world.parts())
    await driver.prepare()
    if state is not JobState.RUNNING:
        jobs = world.service.jobs
        await jobs.end(driver.job.job_id, driver.job.fence, state)
    built = driver.job.facts["collection"]
    assert await world.cleanup().run() == ([built] if at_once else [])
    world.service.clock.advance(HOURS.total_seconds() + 60)
    ended = state in (JobState.FAILED, JobState.CANCELLED)
    assert (built in await world.service.index.collections()) is not at_once
    await world.cleanup().run()
    assert (built in await world.service.index.collections()) is not ended


async def test_collections_that_no_job_knows_go_by_their_age(world: World) -> None:
    schema, index = world.service.schema, world.service.index
    young = f"{world.service.clock.now():%Y%m%d%H%M%S%f}"
    names = [f"memories_m_8_{stamp}" for stamp in ("0", "20200101000000000000", young)]
    for name in [*names, "memories_x_m_8_20200101000000000000"]:
        await index.create_collection(name, schema)
    assert await world.cleanup().run() == [names[1]]


# --- a restart with another model


async def adopt(world: World, parts: Any, sleep: Any = None) -> bool:
    return await adopt_ready(
        world.service.index,
        world.service.jobs,
        world.service.scan,
        world.service.leases,
        schema=parts.schema,
        sleep=sleep or world.sleep,
    )


async def test_a_restart_moves_to_the_collection_that_was_filled_for_it(world: World) -> None:
    await world.fill(5)
    parts = await world.parts(OtherModel())
    job, finish = await world.run({"switch": "never"}, parts=parts)
    assert finish.report["ready"]
    await world.service.store("stored with the old model")
    await world.service.drain()
    assert await adopt(world, parts)
    assert await world.target() == job.facts["collection"]
    await world.service.index.open(parts.schema)
    # What was written after the fill is asked for again.
    assert (await world.service.items.backlog()).pending >= 1
    assert await adopt(world, parts)


async def test_nothing_is_adopted_while_the_old_model_is_served(world: World) -> None:
    await world.fill(3)
    old, parts = await world.target(), await world.parts(OtherModel())
    await world.run({"switch": "never"}, parts=parts)
    sleep = await beaten(world, world.service.schema)
    assert not await adopt(world, parts, sleep)
    assert await world.target() == old
    assert await adopt(world, parts)


async def test_only_a_proved_collection_of_the_same_schema_is_adopted(world: World) -> None:
    await world.fill(3)
    parts = await world.parts(OtherModel())
    assert not await adopt(world, parts)
    driver = Driver(world, {"switch": "never"}, parts)
    await driver.prepare()
    assert not await adopt(world, parts)
    await driver.partitions()
    await driver.finish()
    assert not await adopt(world, await world.parts(OtherModel("third/model")))
    await world.service.index.drop_collection(driver.job.facts["collection"])
    assert not await adopt(world, parts)


async def ready_for_a_restart(world: World) -> tuple[Any, Job]:
    parts = await world.parts(OtherModel())
    sleep = await beaten(world, world.service.schema)
    job, finish = await world.run(parts=replace(parts, sleep=sleep))
    assert finish.report["ready"]
    world.service.clock.advance(60)
    return parts, job


async def test_drop_old_spares_what_waits_for_a_restart(world: World) -> None:
    await world.fill(3)
    old = await world.target()
    parts, job = await ready_for_a_restart(world)
    _, finish = await world.run({"drop_old": True})
    assert finish.report["dropped"] == [old]
    assert await adopt(world, parts)
    assert await world.target() == job.facts["collection"]
    # Once it was served it is an old collection like any other.
    await world.run({"drop_old": True}, parts=parts)
    assert await world.service.index.collections() == [await world.target()]


async def adopted_late(world: World) -> str:
    """An hour before the old collection would have ended but for the restart; its name."""
    await world.fill(3)
    old = await world.target()
    parts, _ = await ready_for_a_restart(world)
    world.service.clock.advance(HOURS.total_seconds() - 3_600)
    assert await adopt(world, parts)
    return old


async def test_the_way_back_is_open_for_its_time_after_the_restart(world: World) -> None:
    old = await adopted_late(world)
    world.service.clock.advance(HOURS.total_seconds() - 60)
    assert await world.cleanup().run() == []
    await world.rollback()
    assert await world.target() == old


async def test_the_way_back_ends_its_time_after_the_restart(world: World) -> None:
    old = await adopted_late(world)
    world.service.clock.advance(HOURS.total_seconds() + 1)
    assert await world.cleanup().run() == [old]


class Moving:
    """An index whose alias somebody moves to `name` just before it is switched."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner, self._name = inner, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def switch_alias(self, name: str, expected: str | None = None) -> None:
        await self._inner.switch_alias(self._name)
        await self._inner.switch_alias(name, expected)


@pytest.mark.parametrize("kind", ["reindex", "rollback", "restart"])
async def test_who_comes_late_moves_nothing(world: World, kind: str) -> None:
    await world.fill(4)
    index, other = world.service.index, "memories_x_1_1"
    await index.create_collection(other, world.service.schema)
    moving: Any = Moving(index, other)
    if kind == "restart":
        ready, _ = await ready_for_a_restart(world)
        service = world.service
        stores = (service.jobs, service.scan, service.leases)
        assert not await adopt_ready(moving, *stores, schema=ready.schema, sleep=world.sleep)
    elif kind == "rollback":
        await world.run()
        finish = await world.rollback(await world.parts(index=moving))
        assert (finish.complete, finish.report["switched"]) == (False, False)
    else:
        _, finish = await world.run(parts=await world.parts(index=moving))
        assert (finish.complete, finish.report["switched"]) == (False, False)
        assert f"moved to {other}" in finish.report["reason"]
    assert await world.target() == other


async def test_a_service_that_comes_up_before_a_rollback_keeps_its_index(world: World) -> None:
    await world.fill(3)
    await world.run(parts=await world.parts(OtherModel()))
    new = await world.target()
    driver = Driver(world, {"rollback": True}, await world.parts())
    await driver.prepare()
    await beat(world.service.leases, await world.service.index.schema_of(new), "new")
    finish = await driver.finish()
    assert (finish.complete, finish.report["switched"]) == (False, False)
    assert "restart it with" in finish.report["reason"]
    assert await world.target() == new


async def test_a_service_that_comes_up_before_the_restart_moves_keeps_its_index(
    world: World,
) -> None:
    await world.fill(3)
    old, parts = await world.target(), await world.parts(OtherModel())
    await world.run({"switch": "never"}, parts=parts)

    class Scan:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.service.scan, name)

        async def requeue_indexed_since(self, since: Any) -> int:
            await beat(world.service.leases, world.service.schema, "old-model")
            return await world.service.scan.requeue_indexed_since(since)

    service, scan = world.service, Scan()
    asked = (service.index, service.jobs, scan, service.leases)
    assert not await adopt_ready(*asked, schema=parts.schema, sleep=world.sleep)  # type: ignore[arg-type]
    assert await world.target() == old


# --- who serves


async def test_a_service_is_alive_while_one_of_its_indexers_renews(world: World) -> None:
    leases, schema = world.service.leases, world.service.schema
    assert not await is_served(leases, schema, world.sleep)
    assert await is_served(leases, schema, await beaten(world, schema))
    # The last one is dead: its lease ends, and nobody renews it.
    began = world.service.clock.monotonic()
    assert not await is_served(leases, schema, world.sleep)
    assert world.service.clock.monotonic() - began >= SERVING_S


async def test_a_lease_that_changes_hands_counts_as_alive(world: World) -> None:
    leases, schema = world.service.leases, world.service.schema
    await beat(leases, schema, "first")

    async def taken_over(seconds: float) -> None:
        world.service.clock.advance(seconds)
        if world.service.clock.monotonic() > SERVING_S + 3:
            await beat(leases, schema, "second")

    assert await is_served(leases, schema, taken_over)


async def test_the_indexer_beats_for_its_model(world: World) -> None:
    await world.service.indexing.rebuild_if_lost()

    async def living(seconds: float) -> None:
        world.service.clock.advance(seconds)
        await world.service.indexing.rebuild_if_lost()

    assert await is_served(world.service.leases, world.service.schema, living)
    other = (await world.parts(OtherModel())).schema
    assert not await is_served(world.service.leases, other, living)
