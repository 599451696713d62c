"""Sweeps on fakes: each kind is found and healed, what is in flight is left alone, and no more."""

from dataclasses import replace
from typing import Any

import pytest

from rayapp.core.errors import IndexDown
from rayapp.index.consistency.rules import Drift, drift_of
from rayapp.index.consistency.service import REPAIRED, REPORT, last_report
from rayapp.index.ports import Requeue
from rayapp.index.records import WHOLE, PayloadUpdate
from rayapp.memory.item import MemoryItem, Status, SyncState, point_id_of
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.drift import a_point, everything
from tests.unit.index.consistency.world import SweepWorld

EVERY = 1_000


async def one_of_each(world: SweepWorld) -> dict[Drift, list[str]]:
    """Break one item per kind, two for the kind that means two things; the broken points."""
    items = await world.items()
    active = [item for item in items if item.status is Status.ACTIVE]
    archived = [item for item in items if item.status is Status.ARCHIVED]
    broken = {kind: await world.break_(kind, active[n]) for n, kind in enumerate(Drift)}
    broken[Drift.NOT_ACTIVE] += await world.break_(Drift.NOT_ACTIVE, archived[0])
    return broken


async def assert_clean(world: SweepWorld) -> None:
    """No item waits and every point says what its row says."""
    h = world.harness
    rows = {item.point_id: item for item in await world.items()}
    points, _ = await h.index.scroll(after=None, limit=EVERY)
    found = {point.point_id: point for point in points}
    for point_id in rows.keys() | found.keys():
        item = rows.get(point_id)
        assert item is None or item.index.sync_state is SyncState.SYNCED
        assert drift_of(item, found.get(point_id), h.schema) is None


async def test_a_sweep_of_what_agrees_finds_nothing() -> None:
    world = await SweepWorld.open()
    report = await world.service().check(sample=EVERY, repair=True)
    assert (report.found, report.repaired, report.issues) == ({}, {}, [])
    assert (report.checked, report.truth_count, report.index_count) == (27, 24, 24)
    assert world.slept == []  # nothing to look at again
    finish = await world.swept()
    assert finish.complete
    assert finish.report["found"] == {}
    assert finish.report["checked"] == 27


async def test_every_kind_is_found_as_itself() -> None:
    world = await SweepWorld.open()
    broken = await one_of_each(world)
    report = await world.service().check(sample=EVERY, repair=False)
    assert {kind: sorted(ids) for kind, ids in broken.items()} == {
        kind: sorted(i.point_id for i in report.issues if i.kind is kind) for kind in Drift
    }
    assert report.found == {kind: len(ids) for kind, ids in broken.items()}
    assert report.repaired == {}
    assert not any(issue.repaired for issue in report.issues)
    assert (await world.service().check(sample=EVERY, repair=False)).found == report.found


@pytest.mark.parametrize("kind", Drift)
async def test_each_kind_is_healed_by_itself(kind: Drift) -> None:
    world = await SweepWorld.open()
    active = [item for item in await world.items() if item.status is Status.ACTIVE]
    await world.break_(kind, active[0])
    report = await world.service().check(sample=EVERY, repair=True)
    assert report.found == report.repaired == {kind: 1}
    await world.harness.drain()
    await assert_clean(world)
    assert (await world.service().check(sample=EVERY, repair=True)).found == {}


async def test_nothing_else_is_touched() -> None:
    world = await SweepWorld.open()
    before = await everything(world.harness.scan, world.harness.index)
    broken = {point for ids in (await one_of_each(world)).values() for point in ids}
    await world.service().check(sample=EVERY, repair=True)
    await world.harness.drain()
    after = await everything(world.harness.scan, world.harness.index)
    await assert_clean(world)
    for was, became in zip(before, after, strict=True):
        assert {i: v for i, v in was.items() if i not in broken} == {
            i: v for i, v in became.items() if i not in broken
        }
    # The row of a duplicate is not the duplicate: no item is deleted, archived or stored.
    rows_before, rows_after = before[0], after[0]
    assert rows_before.keys() == rows_after.keys()
    assert all(rows_before[i].status is rows_after[i].status for i in rows_before)


async def test_a_foreign_point_is_replaced_by_its_own() -> None:
    """It is deleted first: no write may leave the vectors of one user under another one's name."""
    world = await SweepWorld.open()
    h = world.harness
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    await world.break_(Drift.NOT_ACTIVE, item)
    await world.service().check(sample=EVERY, repair=True)
    assert await h.index.retrieve([item.point_id]) == []
    await h.drain()
    [point] = await h.index.retrieve([item.point_id])
    assert point.payload["user_id"] == item.user_id


# --- in flight


async def waiting(world: SweepWorld, state: SyncState) -> MemoryItem:
    """An item whose write the index does not have, with a point that says something else."""
    h = world.harness
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    await h.services.memories.edit(
        WriteScope(item.user_id), item.memory_id, MemoryEdit(text="טקסט אחר / another text")
    )
    row = h.items.inner._rows[item.point_id]
    row.item = replace(row.item, index=replace(row.item.index, sync_state=state))
    return item


@pytest.mark.parametrize("state", [SyncState.PENDING, SyncState.FAILED])
async def test_what_waits_for_the_index_is_left_alone(state: SyncState) -> None:
    world = await SweepWorld.open()
    item = await waiting(world, state)
    await world.harness.index.delete([item.point_id])
    report = await world.service().check(sample=EVERY, repair=True)
    assert report.found == {}
    assert (await world.swept(repair=True)).report["found"] == {}


async def test_a_difference_that_heals_within_the_pause_does_not_count() -> None:
    world = await SweepWorld.open()
    h = world.harness
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    [point] = await h.index.retrieve([item.point_id], WHOLE)
    await h.index.delete([item.point_id])

    async def written_late() -> None:
        await h.index.upsert([replace(a_point(item, h.schema), dense=point.dense)])

    world.meanwhile = written_late
    assert (await world.service().check(sample=EVERY, repair=True)).found == {}
    assert world.slept == [h.settings.consistency.grace_s]


async def test_a_row_that_changes_during_the_second_look_does_not_count() -> None:
    """The reads of the two stores are never of one moment: only a row that stayed is compared."""
    world = await SweepWorld.open()
    h = world.harness
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    await world.break_(Drift.MISSING, item)
    retrieve = h.index.inner.retrieve

    async def changed_in_between(ids: list[str], **options: Any) -> Any:
        found = await retrieve(ids, **options)
        h.index.inner.retrieve = retrieve
        await h.services.memories.edit(
            WriteScope(item.user_id), item.memory_id, MemoryEdit(text="another text")
        )
        await h.drain()
        return found

    h.index.inner.retrieve = changed_in_between
    assert (await world.service().check(sample=EVERY, repair=False)).found == {}
    assert (await world.service().check(sample=EVERY, repair=False)).found == {}


async def test_a_point_that_is_newer_than_its_row_for_good_is_replaced() -> None:
    """The truth came back from a copy, say: the guard would refuse every write of the row."""
    world = await SweepWorld.open()
    h = world.harness
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    ahead = PayloadUpdate(point_id=item.point_id, payload={"tags": ["later"]}, rev=99)
    await h.index.set_payload([ahead])
    report = await world.service().check(sample=EVERY, repair=True)
    assert report.found == {Drift.NOT_ACTIVE: 1}
    await h.drain()
    await assert_clean(world)


async def test_a_point_written_after_the_second_look_is_not_deleted() -> None:
    world = await SweepWorld.open()
    h = world.harness
    user, memory_id = "user-0", "stored-again"
    item = replace((await world.items())[0], user_id=user, memory_id=memory_id)
    item = replace(item, point_id=point_id_of(user, memory_id))
    await h.index.upsert([a_point(item, h.schema)])
    delete = h.index.inner.delete

    async def stored_first(ids: list[str], revs: Any) -> None:
        newer = replace(item, index=replace(item.index, rev=item.index.rev + 1))
        await h.index.upsert([a_point(newer, h.schema)])
        await delete(ids, revs)

    h.index.inner.delete = stored_first
    await world.service().check(sample=EVERY, repair=True)
    assert [p.point_id for p in await h.index.retrieve([item.point_id])] == [item.point_id]


async def test_an_index_that_is_being_filled_is_not_compared() -> None:
    world = await SweepWorld.open()
    h = world.harness
    schema, name = h.schema, "memories_empty_1_1"
    await h.index.create_collection(name, schema, needs_rebuild=True)
    await h.index.switch_alias(name)
    for call in (world.service().check(sample=9, repair=True), world.work(repair=True).plan()):
        with pytest.raises(IndexDown):
            await call
    assert await h.scan.by_points([i.point_id for i in await world.items()])
    assert (await h.items.backlog()).pending == 0


# --- what a sweep leaves behind


async def test_a_repair_leaves_an_event_with_its_owner() -> None:
    world = await SweepWorld.open()
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    await world.break_(Drift.PAYLOAD, item)
    await world.service().check(sample=EVERY, repair=False)
    events = world.harness.events
    assert await events.recent(ReadScope(item.user_id), REPAIRED, 9) == []
    await world.service().check(sample=EVERY, repair=True)
    [event] = await events.recent(ReadScope(item.user_id), REPAIRED, 9)
    assert event.memory_id == item.memory_id
    assert event.data == {
        "what": "payload_mismatch",
        "why": "differs in tags, score",
        "owner": "a test",
        "point_id": item.point_id,
    }


async def test_events_of_a_job_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayapp.index.consistency.service.MAX_EVENTS", 4)
    world = await SweepWorld.open(partitions=2)
    active = [item for item in await world.items() if item.status is Status.ACTIVE]
    await world.break_(Drift.PAYLOAD, *active)
    world.meanwhile = world.harness.drain
    finish = await world.swept(repair=True)
    assert finish.report["repaired"] == {"payload_mismatch": len(active)}
    users = {item.user_id for item in active}
    events = [
        event
        for user in users
        for event in await world.harness.events.recent(ReadScope(user), REPAIRED, EVERY)
    ]
    assert len(events) == 4


async def test_the_report_is_in_diagnostics_and_in_the_metrics() -> None:
    world = await SweepWorld.open()
    h = world.harness
    assert (await h.services.health.diagnostics())["consistency"] is None
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    await world.break_(Drift.MISSING, item)
    await world.service().check(sample=EVERY, repair=False)
    body = await h.services.health.diagnostics()
    assert body["consistency"]["found"] == {"missing_in_index": 1}
    assert body["consistency"]["at"] == h.clock.now().isoformat()
    assert any("consistency_sweep --repair" in one for one in body["recommendations"])
    assert h.metrics.counters["drift", (("kind", "missing_in_index"),)] == 1
    h.clock.advance(1)
    await world.service().check(sample=EVERY, repair=True)
    body = await h.services.health.diagnostics()
    assert body["consistency"]["repaired"] == {"missing_in_index": 1}
    assert not any("consistency_sweep" in one for one in body["recommendations"])


# --- samples


async def test_samples_walk_round_the_whole_space() -> None:
    world = await SweepWorld.open(count=21, archived=0)
    service, ids = world.service(), [item.point_id for item in await world.items()]
    scan, seen = world.harness.scan.inner, set()
    page = scan.page

    async def watched(**options: Any) -> Any:
        found = await page(**options)
        seen.update(item.point_id for item in found[0])
        return found

    scan.page = watched
    looked = [(await service.check(sample=7, repair=False)).checked for _ in range(2)]
    assert looked == [7, 7]
    assert len(seen) < len(ids)
    await service.check(sample=7, repair=False)
    await service.check(sample=7, repair=False)
    assert seen == set(ids)


async def test_a_new_process_goes_on_where_the_last_sweep_stopped() -> None:
    world = await SweepWorld.open(count=21, archived=0)
    await world.service().check(sample=7, repair=False)
    world.harness.clock.advance(1)
    first = await last_report(world.harness.events)
    assert first is not None
    later = [i for i in await world.items() if i.point_id > first["after"]]
    await world.break_(Drift.MISSING, later[0])
    assert (await world.service().check(sample=7, repair=False)).found == {Drift.MISSING: 1}


async def test_a_sample_looks_in_both_directions() -> None:
    world = await SweepWorld.open()
    broken = await one_of_each(world)
    finish = await world.swept(sample=EVERY)
    assert finish.report["found"] == {kind.value: len(ids) for kind, ids in broken.items()}
    assert finish.report["mode"] == "sample"
    few = await world.swept(sample=6)
    assert 6 <= few.report["checked"] <= 12
    plan = await world.work(sample=6).plan()
    assert (len(plan.partitions), plan.total) == (1, 6)


# --- the job


async def test_a_job_without_repair_reports_and_is_not_complete() -> None:
    world = await SweepWorld.open()
    broken = await one_of_each(world)
    finish = await world.swept()
    assert not finish.complete
    wanted = {kind.value: len(ids) for kind, ids in broken.items()}
    assert finish.report["found"] == finish.report["left"] == wanted
    assert (finish.report["repaired"], finish.report["healed"]) == ({}, 0)
    named = {issue["point_id"] for issue in finish.report["issues"]}
    assert named == {point for ids in broken.values() for point in ids}
    assert (await world.harness.items.backlog()).pending == 0


async def test_a_job_heals_and_proves_it() -> None:
    world = await SweepWorld.open()
    broken = await one_of_each(world)
    world.meanwhile = world.harness.drain  # the indexer works while the job waits
    finish = await world.swept(repair=True)
    assert finish.complete
    total = sum(len(ids) for ids in broken.values())
    assert (finish.report["healed"], finish.report["left"]) == (total, {})
    await assert_clean(world)
    [event] = await world.harness.events.recent(ReadScope("system"), REPORT, 9)
    assert event.data["repaired"] == finish.report["repaired"]


async def test_a_job_says_when_the_indexer_did_not_follow() -> None:
    world = await SweepWorld.open()
    active = [item for item in await world.items() if item.status is Status.ACTIVE]
    await world.break_(Drift.MISSING, *active[:3])
    finish = await world.swept(repair=True)
    assert not finish.complete
    assert finish.report["still_waiting"] == 3
    assert sum(world.slept) < 75


async def test_a_repair_that_did_not_last_is_left() -> None:
    world = await SweepWorld.open()
    h = world.harness
    active = [item for item in await world.items() if item.status is Status.ACTIVE]
    await world.break_(Drift.MISSING, *active[:2])

    async def drain_and_lose_one() -> None:
        if await h.drain():
            await h.index.delete([active[0].point_id])

    world.meanwhile = drain_and_lose_one
    finish = await world.swept(repair=True)
    assert not finish.complete
    assert finish.report["left"] == {"missing_in_index": 1}
    assert finish.report["healed"] == 1


async def test_quarantine_keeps_whole_points_before_they_go() -> None:
    world = await SweepWorld.open()
    broken = await one_of_each(world)
    h = world.harness
    world.meanwhile = h.drain
    finish = await world.swept(repair=True, quarantine=True)
    kept = await h.quarantine.kept(99)
    deleted = {Drift.ORPHAN, Drift.DUPLICATE, Drift.NOT_ACTIVE}
    wanted = {(point, kind.value) for kind in deleted for point in broken[kind]}
    assert {(point.point_id, reason) for point, reason, _ in kept} == wanted
    assert all(point.dense is not None and point.sparse is not None for point, _, _ in kept)
    assert finish.report["quarantined"] == len(wanted)


async def test_quarantine_comes_before_the_delete() -> None:
    world = await SweepWorld.open()
    item = (await world.items())[0]
    [ghost] = await world.break_(Drift.ORPHAN, item)
    world.harness.quarantine.error = IndexDown("away")
    with pytest.raises(IndexDown):
        await world.swept(repair=True, quarantine=True)
    assert await world.harness.index.retrieve([ghost])


async def test_without_repair_nothing_is_quarantined() -> None:
    world = await SweepWorld.open()
    await one_of_each(world)
    await world.swept(quarantine=True)
    assert await world.harness.quarantine.kept(9) == []


async def test_one_pause_for_many_suspects() -> None:
    world = await SweepWorld.open(partitions=1)
    active = [item for item in await world.items() if item.status is Status.ACTIVE]
    await world.break_(Drift.PAYLOAD, *active)
    await world.swept()
    assert world.slept == [world.harness.settings.consistency.grace_s]


async def test_a_step_that_is_repeated_repairs_nothing_twice() -> None:
    """A worker died after its repair and before its checkpoint."""
    world = await SweepWorld.open(partitions=1)
    h = world.harness
    active = [item for item in await world.items() if item.status is Status.ACTIVE]
    await world.break_(Drift.MISSING, active[0])
    [partition] = (await world.work(repair=True).plan()).partitions
    cursor, last = None, None
    while True:
        step = await world.work(repair=True).step(partition, cursor)
        if step.cursor is None:
            break
        cursor, last = step.cursor, step.cursor
    assert step.counts == {"found_missing_in_index": 1, "repaired_missing_in_index": 1}
    again = await world.work(repair=True).step(partition, last)
    assert (again.cursor, again.counts) == (None, {})
    [item] = await h.scan.by_points([active[0].point_id])
    assert item.index.rev == active[0].index.rev + 1


async def test_a_sweep_over_lopsided_stores_sees_everything_once() -> None:
    """Far more points than rows, all in one place: neither side is skipped or seen twice."""
    world = await SweepWorld.open(count=6, archived=0, partitions=1)
    items = await world.items()
    ghosts = [
        point
        for item in items
        for n in range(7)
        for point in await world.break_(
            Drift.ORPHAN, replace(item, memory_id=f"{item.memory_id}-{n}")
        )
    ]
    await world.harness.index.delete([items[0].point_id, items[-1].point_id])
    finish = await world.swept()
    assert finish.report["checked"] == len(items) + len(ghosts)
    assert finish.report["found"] == {"missing_in_index": 2, "orphan_in_index": len(ghosts)}


async def test_dead_graph_references_are_cleaned_by_a_full_repair() -> None:
    world = await SweepWorld.open()
    asked: list[str] = []
    graphs = world.harness.graphs.inner
    pages = [([("user-1", "p1"), ("user-1", "p2")], "next"), ([("user-2", "p3")], None)]

    async def dead_references(limit: int, after: str | None) -> Any:
        return pages[0 if after is None else 1]

    async def forget(scope: WriteScope, point_ids: list[str]) -> int:
        asked.extend(f"{scope.user_id}:{point}" for point in point_ids)
        return len(point_ids)

    graphs.dead_references, graphs.forget = dead_references, forget
    report = (await world.swept()).report
    assert report["graph_references"] == {"dead": 3, "rows_cleaned": 0}
    assert asked == []
    report = (await world.swept(repair=True)).report
    assert report["graph_references"] == {"dead": 3, "rows_cleaned": 3}
    assert asked == ["user-1:p1", "user-1:p2", "user-2:p3"]


async def test_requeue_is_asked_for_the_rev_that_was_compared() -> None:
    world = await SweepWorld.open()
    item = next(i for i in await world.items() if i.status is Status.ACTIVE)
    await world.break_(Drift.PAYLOAD, item)
    asked: list[Requeue] = []
    scan = world.harness.scan.inner
    requeue = scan.requeue

    async def watched(wanted: list[Requeue]) -> int:
        asked.extend(wanted)
        return int(await requeue(wanted))

    scan.requeue = watched
    await world.service().check(sample=EVERY, repair=True)
    assert [(one.point_id, one.rev) for one in asked] == [(item.point_id, item.index.rev)]
