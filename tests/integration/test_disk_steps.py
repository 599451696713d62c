"""A real disk that fills up: warned, bulk work refused, stores refused, and back by itself."""

import asyncio
from functools import partial

import httpx

from rayapp.core.disk_space import DiskLimits, DiskSpace, measured
from rayapp.memory.scope import EVERYTHING, ReadScope
from tests.small_disk import MIB, SmallDisk, on_small_disk
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

LIMITS = DiskLimits(warn_bytes=50 * MIB, bulk_bytes=30 * MIB, min_bytes=20 * MIB)
GUIDE = {"file": ("guide.md", b"# Guide")}


def test_a_disk_that_fills_up_is_told_of_step_by_step() -> None:
    test = f"{__file__}::{test_a_disk_that_fills_up_is_told_of_step_by_step.__name__}"
    on_small_disk(100, test, lambda disk: asyncio.run(steps(disk)))


async def steps(disk: SmallDisk) -> None:
    space = DiskSpace(str(disk.folder), LIMITS, partial(measured, disk.folder))
    world = Harness.ready(disk=space)
    async with client_of(world.services) as api:
        kept = 0
        for free_mib, state, stores, bulk in (
            (90, "ok", True, True),
            (45, "low", True, True),
            (25, "tight", True, False),
            (15, "full", False, False),
        ):
            disk.leave(free_mib * MIB)
            kept += await look(api, state, stores=stores, bulk=bulk, number=free_mib)
        disk.fill()
        await look(api, "full", stores=False, bulk=False, number=0)
        disk.release()
        kept += await look(api, "ok", stores=True, bulk=True, number=100)
    admin = ReadScope("admin", include_shared=False)
    assert await world.items.count(admin, EVERYTHING) == kept == 4


async def look(api: httpx.AsyncClient, state: str, *, stores: bool, bulk: bool, number: int) -> int:
    """1 when it was stored."""
    health = (await api.get("/api/memory/health")).json()
    found = {one["name"]: one for one in health["components"]}["disk"]
    assert found["details"]["state"] == state
    fact = {"text": f"The cellar has {number} jars; במרתף {number} צנצנות", "tier": "history"}
    stored = await api.post("/api/memory/store", json=fact)
    assert stored.status_code == (201 if stores else 507), stored.text
    job = await api.post("/api/memory/ops/datagov", json={})
    refused = (job.status_code, job.json().get("code")) == (507, "disk_full")
    assert refused is not bulk, job.text
    assert (await api.post("/api/memory/search", json={"query": "cellar"})).status_code == 200
    return int(stores)
