"""What a sweep must not touch, what it keeps no longer than it may, and what it tells the owner."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rayapp.bulk.params import CONSISTENCY
from rayapp.container.leader_tasks import REPORT_FRESH_S, drift_task
from rayapp.container.understanding import orphans_of
from rayapp.core.errors import StoreDown
from rayapp.index.consistency.comparison import Comparison, Repairs
from rayapp.index.consistency.rules import Drift
from rayapp.index.consistency.service import REPAIRED, SweepLog, SweepStores, SweepWork
from rayapp.memory.item import MemoryItem, Status, SyncState
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.work_by_hand import partition_by_hand
from tests.unit.index.consistency.world import SweepWorld

EVERY = 1_000


async def an_active(world: SweepWorld, number: int = 0) -> MemoryItem:
    return [item for item in await world.items() if item.status is Status.ACTIVE][number]


def cannot_read(world: SweepWorld, item: MemoryItem) -> None:
    """The row of `item` is there, but only another version can read it."""
    scan = world.harness.scan.inner
    page, by_points = scan.page, scan.by_points

    def readable(items: Sequence[MemoryItem]) -> list[MemoryItem]:
        return [one for one in items if one.point_id != item.point_id]

    async def readable_page(**bounds: Any) -> Any:
        items, last = await page(**bounds)
        return readable(items), last

    async def readable_by_points(point_ids: Sequence[str]) -> list[MemoryItem]:
        return readable(await by_points(point_ids))

    scan.page, scan.by_points = readable_page, readable_by_points


# --- rows that cannot be read


async def test_the_point_of_a_row_that_cannot_be_read_is_left_alone() -> None:
    world = await SweepWorld.open()
    item, orphan = await an_active(world), await an_active(world, 1)
    await world.break_(Drift.ORPHAN, orphan)
    cannot_read(world, item)
    report = await world.service().check(sample=EVERY, repair=True)
    assert report.found == report.repaired == {Drift.ORPHAN: 1}
    assert report.unreadable == 1
    assert [p.point_id for p in await world.harness.index.retrieve([item.point_id])]
    body = await world.harness.services.health.diagnostics()
    assert body["consistency"]["unreadable"] == 1


async def test_a_broken_point_of_such_a_row_is_left_alone_too() -> None:
    world = await SweepWorld.open()
    item = await an_active(world)
    await world.break_(Drift.NOT_ACTIVE, item)  # it names another user: else a duplicate
    cannot_read(world, item)
    finish = await world.swept(repair=True, quarantine=True)
    assert (finish.report["found"], finish.report["unreadable"]) == ({}, 1)
    assert finish.complete
    assert await world.harness.index.retrieve([item.point_id])
    assert await world.harness.quarantine.kept(9) == []


# --- quarantine


async def quarantined(world: SweepWorld) -> MemoryItem:
    """An active item whose foreign point is in quarantine, with its own point again."""
    item = await an_active(world)
    await world.break_(Drift.NOT_ACTIVE, item)
    world.meanwhile = world.harness.drain
    finish = await world.swept(repair=True, quarantine=True)
    assert finish.complete
    [named] = finish.report["in_quarantine"]
    assert (named["point_id"], named["reason"]) == (item.point_id, "inactive_in_index")
    return item


async def test_a_deleted_memory_leaves_the_quarantine() -> None:
    world = await SweepWorld.open()
    h, item = world.harness, await quarantined(world)
    scope = WriteScope(item.user_id)
    await h.services.memories.archive(scope, item.memory_id)
    await h.drain()
    assert len(await h.quarantine.kept(9)) == 1
    await h.services.memories.delete(scope, item.memory_id)
    await h.drain()
    assert await h.quarantine.kept(9) == []


async def test_a_delete_is_not_done_before_the_quarantine_is_purged() -> None:
    world = await SweepWorld.open()
    h, item = world.harness, await quarantined(world)
    h.quarantine.error = StoreDown("MongoDB is away: wait for it.")
    await h.services.memories.delete(WriteScope(item.user_id), item.memory_id)
    await h.drain()
    [row] = await h.scan.by_points([item.point_id])
    assert (row.status, row.index.sync_state) == (Status.DELETED, SyncState.PENDING)
    h.quarantine.error = None
    h.clock.advance(60)
    await h.drain()
    assert await h.scan.by_points([item.point_id]) == []
    assert await h.quarantine.kept(9) == []


async def test_what_is_deleted_while_it_is_kept_is_not_kept() -> None:
    world = await SweepWorld.open()
    h, item = world.harness, await an_active(world)
    await world.break_(Drift.NOT_ACTIVE, item)
    keep = h.quarantine.inner.keep

    async def deleted_first(points: Any, reason: str) -> None:
        await h.services.memories.delete(WriteScope(item.user_id), item.memory_id)
        await h.drain()
        await keep(points, reason)

    h.quarantine.inner.keep = deleted_first
    finish = await world.swept(repair=True, quarantine=True)
    assert finish.report["quarantined"] == 1
    assert await h.quarantine.kept(9) == []


# --- the proof of a job


class Looks(Comparison):
    """Counts the pages of the first look."""

    pages = 0

    async def page(self, walk: Any, batch: int) -> Any:
        self.pages += 1
        return await super().page(walk, batch)


def counted(world: SweepWorld) -> tuple[SweepWork, Looks]:
    h = world.harness
    looks = Looks(h.scan, h.index, h.quarantine)
    derived = orphans_of(h.container.stores, world.runtime)
    stores = SweepStores(items=h.items, graphs=h.graphs, derived=derived)
    repairs = Repairs(repair=True)
    work = SweepWork(
        looks,
        stores,
        world.log(),
        sample=None,
        repairs=repairs,
        runtime=world.runtime,
        sleep=world.sleep,
    )
    return work, looks


@pytest.mark.parametrize(("kept", "walks"), [(20, False), (1, True)])
async def test_few_repairs_are_proved_by_their_ids(
    kept: int, walks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition that repaired more than it names is walked again."""
    world = await SweepWorld.open(partitions=1)
    active = [item for item in await world.items() if item.status is Status.ACTIVE]
    await world.break_(Drift.MISSING, *active[:3])
    world.meanwhile = world.harness.drain
    work, looks = counted(world)
    plan = await work.plan()
    rows = [await partition_by_hand(lambda: work, part, plan.facts) for part in plan.partitions]
    rows = [replace(row, samples=row.samples[:kept]) for row in rows]
    before = looks.pages
    await world.harness.drain()
    lost = active[0]
    await world.harness.index.delete([lost.point_id])
    finish = await work.finish(rows)
    assert finish.report["left"] == {"missing_in_index": 1}
    assert finish.report["healed"] == 2
    assert (looks.pages > before) is walks


# --- what the owner counts


async def test_the_owner_counts_what_jobs_found_once() -> None:
    world = await SweepWorld.open()
    h = world.harness
    log = SweepLog(h.events, CONSISTENCY, world.runtime)
    await log.report({"found": {"orphan_in_index": 7}})
    duty = drift_task(h.events, world.runtime)
    counters = h.metrics.counters
    key = ("drift", (("kind", "orphan_in_index"),))
    assert await duty.run()
    assert key not in counters  # of the time before this owner
    h.clock.advance(1)
    await log.report({"found": {"orphan_in_index": 2}})
    await world.log().report({"found": {"orphan_in_index": 100}})  # counted by who swept
    assert key not in counters  # a job's own process counts nothing
    await duty.run()
    await duty.run()
    assert counters[key] == 2
    h.clock.advance(1)
    await log.report({"found": {"orphan_in_index": 5}})
    h.clock.advance(REPORT_FRESH_S)  # another process was the owner meanwhile
    await duty.run()
    assert counters[key] == 2


# --- counts


async def test_a_count_that_fails_keeps_no_sweep_at_the_same_ids() -> None:
    """All are seen and repaired in three sweeps, of which none could count."""
    world = await SweepWorld.open()
    service, scan = world.service(), world.harness.scan.inner
    broken = [await an_active(world, number) for number in range(24)]
    for item in broken:
        await world.break_(Drift.MISSING, item)

    async def late() -> int:
        raise StoreDown("The count took too long.")

    scan.total = late
    for _ in range(3):
        with pytest.raises(StoreDown):
            await service.check(sample=9, repair=True)
    assert all(item.index.sync_state is SyncState.PENDING for item in await all_of(world, broken))
    told = await world.harness.events.recent(ReadScope(broken[0].user_id), REPAIRED, EVERY)
    assert told


async def all_of(world: SweepWorld, items: Sequence[MemoryItem]) -> list[MemoryItem]:
    return await world.harness.scan.by_points([item.point_id for item in items])
