"""A full disk at the routes: what stores is refused with 507, reads go on, what frees is let in."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from rayapp.api.auth import RULES, Mark
from rayapp.core.disk_space import MIB, DiskLimits, DiskSpace
from rayapp.core.errors import StoreDown
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

LIMITS = DiskLimits(warn_bytes=400 * MIB, bulk_bytes=300 * MIB, min_bytes=200 * MIB)
STORE = {"text": "Dana lives in Haifa", "tier": "history"}


class Disk:
    """Its free MiB are set by the test."""

    def __init__(self) -> None:
        self.free = 100

    def space(self) -> DiskSpace:
        return DiskSpace("/data", LIMITS, lambda: (1_000 * MIB, self.free * MIB))


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def world(disk: Disk) -> Harness:
    return Harness.ready(disk=disk.space())


@pytest.fixture
async def api(world: Harness) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world.services) as client:
        yield client


async def test_a_store_is_refused_whole_and_goes_through_when_there_is_room(
    api: httpx.AsyncClient, disk: Disk
) -> None:
    refused = await api.post("/api/memory/store", json=STORE, headers={"Idempotency-Key": "k"})
    assert (refused.status_code, refused.json()["code"]) == (507, "disk_full")
    assert refused.headers["Retry-After"] == "30"
    assert "/data is full (100 MiB are left" in refused.json()["message"]
    listed = (await api.get("/api/memory/items")).json()
    assert listed["items"] == []
    disk.free = 250
    stored = await api.post("/api/memory/store", json=STORE, headers={"Idempotency-Key": "k"})
    assert (stored.status_code, stored.json()["duplicate"]) == (201, False)


async def test_reads_go_on_and_what_frees_is_let_in(api: httpx.AsyncClient, disk: Disk) -> None:
    disk.free = 1_000
    memory_id = (await api.post("/api/memory/store", json=STORE)).json()["memory_id"]
    disk.free = 199
    found = (await api.post("/api/memory/search", json={"query": "Haifa"})).json()
    assert [hit["memory_id"] for hit in found["results"]] == [memory_id]
    edited = await api.patch(f"/api/memory/items/{memory_id}", json={"text": "x"})
    assert edited.status_code == 507
    assert (await api.delete(f"/api/memory/items/{memory_id}")).status_code == 200
    disk.free = 49
    assert (await api.delete(f"/api/memory/items/{memory_id}")).status_code == 507


async def test_below_the_second_step_only_bulk_work_is_refused(
    api: httpx.AsyncClient, disk: Disk
) -> None:
    disk.free = 299
    assert (await api.post("/api/memory/store", json=STORE)).status_code == 201
    guide = {"file": ("guide.md", b"# Guide")}
    for path in sorted(path for (_, path), rule in RULES.items() if Mark.BULK in rule.marks):
        url = path.format(job_id="job-1")
        sent = {"files": guide} if "upload" in path or path.endswith("/books") else {"json": {}}
        refused = await api.post(url, **sent)  # type: ignore[arg-type]
        assert (refused.status_code, refused.json()["code"]) == (507, "disk_full"), path
        assert "nearly full (299 MiB are left" in refused.json()["message"]
    health = (await api.get("/api/memory/health")).json()
    said = {one["name"]: one for one in health["components"]}["disk"]
    assert (said["healthy"], said["details"]["state"]) == (True, "tight")
    disk.free = 374
    assert (await api.post("/api/memory/books", files=guide)).status_code == 507
    disk.free = 375
    assert (await api.post("/api/memory/books", files=guide)).status_code == 200


async def test_a_tool_that_stores_is_refused_and_one_that_reads_is_not(
    api: httpx.AsyncClient,
) -> None:
    tools = "/api/memory/tools"
    found = await api.post(f"{tools}/search_memory", json={"query": "Haifa"})
    assert found.status_code == 200, found.text
    body = {"content": "Dana lives in Haifa", "tags": ["home"]}
    kept = await api.post(f"{tools}/add_to_memory_bank", json=body)
    assert (kept.status_code, kept.json()["code"]) == (507, "disk_full"), kept.text


async def test_a_mongodb_that_the_disk_took_away_is_explained(world: Harness, disk: Disk) -> None:
    class Away:
        async def tiers(self, _scope: object) -> list[object]:
            raise StoreDown("MongoDB does not answer.", retry_after_s=2.0)

    services = replace(world.services, statistics=Away())
    async with client_of(services) as client:
        told = await client.get("/api/memory/stats")
        assert (told.status_code, told.json()["code"]) == (503, "store_down")
        assert "/data is full" in told.json()["message"]
        assert told.json()["message"].endswith("comes back by itself when there is room.")
        disk.free = 1_000
        told = await client.get("/api/memory/stats")
        assert told.json()["message"] == "MongoDB does not answer."
