"""Integrity and the rows per day over HTTP."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from rayapp.admin.rules import backup_is_late, differences_left
from rayapp.container.leader_tasks import daily_task
from rayapp.core.errors import IndexDown
from rayapp.index.records import Projection
from rayapp.memory.item import IndexState, SyncState
from rayapp.memory.scope import WriteScope
from tests.support.builders import STORED_AT, an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

INTEGRITY, DAILY = "/api/memory/ops/integrity", "/api/memory/ops/daily"
NAME = "rayapp-backup-2026-01-10T00-00-00-000000Z.zip"


@pytest.fixture
async def world(tmp_path: Path) -> Harness:
    return await Harness.open(backup={"dir": tmp_path, "every_h": 24})


@pytest.fixture
async def api(world: Harness) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world.services) as client:
        yield client


async def checks(api: httpx.AsyncClient) -> dict[str, Any]:
    body = (await api.get(INTEGRITY)).json()
    return {one["name"]: one for one in body["checks"]} | {"all": body}


async def test_each_check_names_the_command_that_repairs_it(
    api: httpx.AsyncClient, world: Harness, tmp_path: Path
) -> None:
    found = await checks(api)
    assert (found["backup"]["found"], found["backup"]["says"]) == (1, "there is no backup")
    assert (found["drift"]["found"], found["drift"]["well"]) == (None, False)
    (tmp_path / NAME).write_bytes(b"x" * 10)
    (tmp_path / (NAME + ".part")).write_bytes(b"half")
    await world.store("Dana lives in Haifa; דנה גרה בחיפה", user="dana")
    await world.indexed()
    await world.services.consistency.check(sample=10, repair=False)
    found = await checks(api)
    assert found["all"]["backups"]["count"] == 1
    assert found["all"]["backups"]["bytes"] == 10
    kinds = ("counts", "failed", "missing_in_index", "orphan_in_index", "waiting")
    assert {name: found[name]["found"] for name in kinds} == dict.fromkeys(kinds, 0)
    for name in kinds:
        assert found[name]["repair"].startswith("rayapp job ")


async def test_what_is_lost_is_counted(api: httpx.AsyncClient, world: Harness) -> None:
    await world.store("Dana lives in Haifa", user="dana")
    await world.indexed()
    failed = IndexState(sync_state=SyncState.FAILED)
    await world.items.insert(an_item(user_id="dana", index=failed))
    page, _ = await world.index.scroll(after=None, limit=9, read=Projection(()))
    await world.index.delete([one.point_id for one in page])
    await world.services.consistency.check(sample=10, repair=False)
    found = await checks(api)
    assert (found["failed"]["found"], found["counts"]["found"]) == (1, 1)
    assert found["missing_in_index"]["found"] == 1
    assert not found["all"]["well"]
    world.index.error = IndexDown("The index is away.")
    found = await checks(api)
    assert (found["counts"]["found"], found["all"]["degraded"]) == (None, ["vector_index"])


async def test_an_archived_memory_owes_no_point(api: httpx.AsyncClient, world: Harness) -> None:
    await world.store("Dana lives in Haifa", user="dana")
    await world.store("Dana likes tea", user="dana", memory_id="old")
    await world.indexed()
    await world.services.memories.archive(WriteScope("dana"), "old")
    await world.indexed()
    assert (await checks(api))["counts"]["found"] == 0
    tiers = (await api.get("/api/memory/diagnostics")).json()["by_tier"]
    assert sum(row["qdrantCount"] for row in tiers) == await world.index.count() == 1


async def test_a_day_has_one_row_that_is_kept_anew(api: httpx.AsyncClient, world: Harness) -> None:
    task = daily_task(world.services.storage_report)
    for _ in range(2):
        await world.store(f"note {await world.items.waiting(None)}", user="dana")
        assert await task.run()
    await world.clock.elapse(timedelta(days=1).total_seconds())
    await world.store("another; עוד אחת", user="noa")
    assert await task.run()
    rows = (await api.get(DAILY, params={"days": 7})).json()["days"]
    assert [row["tiers"]["working"]["active"] for row in rows] == [3, 2]
    assert rows[0]["day"] > rows[1]["day"]
    assert [row["waiting"] for row in rows] == [3, 2]
    assert len((await api.get(DAILY, params={"days": 1})).json()["days"]) == 1
    assert (await api.get(DAILY, params={"days": 401})).status_code == 422


def test_a_backup_is_late_after_twice_its_pause() -> None:
    for every_h, age_h, late in ((24, 48, False), (24, 49, True), (0, 168, False), (0, 169, True)):
        at = STORED_AT - timedelta(hours=age_h)
        assert backup_is_late(at, every_h, STORED_AT) is late
    assert backup_is_late(None, 0, STORED_AT)


def test_what_a_sweep_left_is_what_nobody_repaired() -> None:
    sampled = {"found": {"missing_in_index": 3, "stale": 1}, "repaired": {"missing_in_index": 2}}
    assert differences_left(sampled) == {"missing_in_index": 1, "stale": 1}
    assert differences_left({**sampled, "left": {"stale": 1}}) == {"stale": 1}
