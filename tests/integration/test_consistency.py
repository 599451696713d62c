"""Sweeps of a real MongoDB and the real embedded engine, beside an indexer."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rayapp.bulk.model import Finish
from rayapp.index.consistency.rules import Drift, drift_of
from rayapp.index.ports import ItemScan
from rayapp.memory.item import IndexState, MemoryItem, SyncState
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.scope import WriteScope
from tests.support.drift import everything
from tests.support.sweep_rig import SweepRig, drained, kinds_of

pytestmark = pytest.mark.engine
ITEMS = 3_000
SHARE = 0.01
# What only a write by the indexer changes in a row.
HEALED_BY_WRITING = {Drift.MISSING, Drift.NOT_ACTIVE, Drift.PAYLOAD, Drift.VECTOR}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SweepRig]:
    # No pause before the second look: only what it compares may tell drift from traffic.
    consistency = {"grace_s": 0, "partitions": 8, "batch_size": 200}
    async with SweepRig.opened(tmp_path, consistency=consistency) as rig:
        yield rig


async def assert_agreed(rig: SweepRig) -> None:
    """Every point says what its row says, read without the sweep's own code paths."""
    rows, points = await everything(rig.container.stores.scan, rig.container.index)
    stored = await rig.container.index.retrieve(sorted(points))
    found = {point.point_id: point for point in stored}
    for point_id in rows.keys() | found.keys():
        assert drift_of(rows.get(point_id), found.get(point_id), rig.container.schema) is None
    waiting = [row for row in rows.values() if row.index.sync_state is SyncState.PENDING]
    assert waiting == []


async def test_one_percent_of_each_kind_is_found_and_healed_and_nothing_else_is_touched(
    rig: SweepRig,
) -> None:
    await rig.fill(ITEMS)
    scan, index = rig.container.stores.scan, rig.container.index
    assert (await rig.sweep(repair=False)).report["found"] == {}
    rows, points = await everything(scan, index)
    broken = await rig.break_share(SHARE)
    assert kinds_of(broken) == dict.fromkeys([kind.value for kind in Drift], 30)

    looked = await rig.sweep(repair=False)
    assert not looked.complete
    assert looked.report["found"] == kinds_of(broken)
    assert looked.report["checked"] == ITEMS + 60  # orphans and duplicates have no row

    healed = await rig.sweep(repair=True, quarantine=True)
    assert healed.complete
    assert healed.report["found"] == healed.report["repaired"] == kinds_of(broken)
    assert (healed.report["healed"], healed.report["left"]) == (180, {})
    assert healed.report["quarantined"] == 90
    assert len(await rig.container.stores.quarantine.kept(1_000)) == 90

    rows_after, points_after = await everything(scan, index)
    touched = {point for ids in broken.values() for point in ids}
    written = {point for kind in HEALED_BY_WRITING for point in broken[kind]}
    assert rows.keys() == rows_after.keys()
    assert {i: row for i, row in rows.items() if i not in written} == {
        i: row for i, row in rows_after.items() if i not in written
    }
    assert all(_only_indexed_again(rows[i], rows_after[i]) for i in written)
    assert {i: point for i, point in points.items() if i not in touched} == {
        i: point for i, point in points_after.items() if i not in touched
    }
    # What was broken is as it was: vectors and payloads, but for the rev of the write.
    assert points.keys() == points_after.keys()
    for point_id in written & points.keys():
        was, became = points[point_id], points_after[point_id]
        assert was[1] == became[1]
        assert {**was[0], "rev": 0} == {**became[0], "rev": 0}
    await assert_agreed(rig)
    assert (await rig.sweep(repair=True)).report["found"] == {}


def _only_indexed_again(was: MemoryItem, became: MemoryItem) -> bool:
    def content(item: MemoryItem) -> dict[str, object]:
        names = item.__dataclass_fields__
        return {name: getattr(item, name) for name in names if name != "index"}

    state: IndexState = became.index
    done = state.sync_state is SyncState.SYNCED
    return content(was) == content(became) and done and state.rev >= was.index.rev


class LateScan:
    """Answers after the index did, as from far away: what it says is of another moment."""

    def __init__(self, inner: ItemScan) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def page(self, **where: Any) -> tuple[list[MemoryItem], str | None]:
        await asyncio.sleep(0.03)
        return await self._inner.page(**where)

    async def by_points(self, point_ids: Sequence[str]) -> list[MemoryItem]:
        await asyncio.sleep(0.03)
        return await self._inner.by_points(point_ids)


async def test_live_traffic_is_not_drift(rig: SweepRig) -> None:
    """Stores, edits, archives, restores and deletes while a sweep repairs."""
    await rig.fill(40)
    late: Any = LateScan(rig.container.stores.scan)
    rig.container.stores.scan = late
    memories = rig.container.memories
    acts, stopping = 0, asyncio.Event()

    async def traffic(seed: int) -> None:
        nonlocal acts
        dice, user = random.Random(seed), WriteScope(f"visitor-{seed}")
        mine: list[str] = []
        while not stopping.is_set():
            text = f"note {seed} {acts} {dice.random()} / הערה"
            if len(mine) < 5 or dice.random() < 0.3:
                stored = await memories.store(user, NewMemory(text=text))
                mine.append(str(stored.memory_id))
            else:
                memory_id = dice.choice(mine)
                act = dice.randrange(3)
                if act == 0:
                    await memories.edit(user, memory_id, MemoryEdit(text=text))
                elif act == 1:
                    await memories.archive(user, memory_id)
                    await memories.restore(user, memory_id)
                else:
                    await memories.delete(user, memory_id)
                    mine.remove(memory_id)
            acts += 1

    tasks = [asyncio.create_task(traffic(seed)) for seed in range(4)]
    sweeps: list[Finish] = []
    while len(sweeps) < 3 or acts < 300:
        sweeps.append(await rig.sweep(repair=True))
        assert not any(task.done() for task in tasks)
    stopping.set()
    await asyncio.gather(*tasks)
    assert [finish.report["found"] for finish in sweeps] == [{}] * len(sweeps)
    await drained(rig.container.indexing)
    await assert_agreed(rig)
