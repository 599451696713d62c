"""Statistics, health, diagnostics, system, probes."""

import asyncio
from pathlib import Path

import httpx
import pytest

from rayapp.admin import health
from rayapp.api.app import create_api
from rayapp.api.routes.system import public_url
from rayapp.core.errors import DependencyDown, StoreDown
from rayapp.memory.ports import TierCount
from rayapp.memory.scope import ReadScope
from tests.support.harness import Harness
from tests.unit.api.serving import LOCAL, client_of, settings_with


async def test_stats_have_all_seven_tiers_with_the_clients_names(api: httpx.AsyncClient) -> None:
    await api.post("/api/memory/store", json={"text": "a", "tier": "books"})
    stats = (await api.get("/api/memory/stats")).json()["stats"]
    assert stats["tiers"].keys() == {
        "working",
        "history",
        "patterns",
        "documents",
        "memory_bank",
        "datagov_schema",
        "datagov_expansion",
    }
    assert stats["tiers"]["documents"] == {
        "active_count": 1,
        "archived_count": 0,
        "hidden_count": 0,
        "deleted_count": 0,
        "uses_total": 0,
        "success_rate": 0.5,
    }
    assert (stats["user_id"], stats["derived_window_ms"]) == ("admin", 300_000)


async def test_what_was_deleted_or_cleared_is_counted(api: httpx.AsyncClient) -> None:
    for text in ("tea", "coffee", "milk"):
        stored = await api.post("/api/memory/store", json={"text": text, "tier": "history"})
    await api.delete(f"/api/memory/items/{stored.json()['memory_id']}")
    await api.post("/api/data/clear/history?confirm=DELETE")
    history = (await api.get("/api/memory/stats")).json()["stats"]["tiers"]["history"]
    assert (history["active_count"], history["deleted_count"]) == (0, 3)


async def test_the_growth_of_a_new_user_is_empty(api: httpx.AsyncClient) -> None:
    """A chart says so then; it drew thirty bars of nothing."""
    assert (await api.get("/api/memory/growth?days=30")).json() == []


async def test_growth_is_a_bare_array_without_gaps(api: httpx.AsyncClient) -> None:
    await api.post("/api/memory/store", json={"text": "a"})
    rows = (await api.get("/api/memory/growth?days=3")).json()
    assert [row["date"] for row in rows] == ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert [row["totalMemories"] for row in rows] == [0, 0, 1]
    assert sum(rows[2]["bySource"].values()) == 1


@pytest.mark.parametrize("query", ["days=0", "days=3654", "days=x"])
async def test_bad_days_are_422(api: httpx.AsyncClient, query: str) -> None:
    assert (await api.get(f"/api/memory/growth?{query}")).status_code == 422


@pytest.mark.parametrize(
    ("part", "check", "status", "code"),
    [("items", "ping", "unhealthy", 503), ("index", "health", "degraded", 200)],
)
async def test_health_follows_its_components(
    api: httpx.AsyncClient, world: Harness, part: str, check: str, status: str, code: int
) -> None:
    async def fails() -> None:
        raise DependencyDown("It does not answer.")

    assert (await api.get("/api/memory/health")).json()["status"] == "healthy"
    setattr(getattr(world, part), check, fails)
    response = await api.get("/api/memory/health?full=true")
    body = response.json()
    assert (response.status_code, body["status"]) == (code, status)
    assert body["summary"] == {"total": 5, "healthy": 4, "unhealthy": 1}
    assert body["metrics"]["uptime_ms"] == 0
    short = (await api.get("/api/system/health")).json()["health"]
    assert (short["ok"], len(short["warnings"])) == (False, 1)


async def test_full_health_asks_no_store_for_its_metrics(
    api: httpx.AsyncClient, world: Harness
) -> None:
    async def fails(*_: object) -> None:
        raise StoreDown("MongoDB does not answer.")

    for name in ("ping", "backlog", "failures", "tier_counts"):
        setattr(world.items, name, fails)
    response = await api.get("/api/memory/health?full=true")
    body = response.json()
    assert (response.status_code, body["status"]) == (503, "unhealthy")
    assert {"timestamp", "uptime_ms", "latencies", "operations"} <= body["metrics"].keys()


async def test_metrics_have_the_names_of_the_first_client(
    api: httpx.AsyncClient, world: Harness
) -> None:
    memory = {"text": "Dana parks on the second floor", "tier": "history"}
    await api.post("/api/memory/store", json=memory)
    await world.settle()
    await api.post("/api/memory/search", json={"query": "where does Dana park?"})
    world.clock.advance(10)
    diagnostics = await api.get("/api/memory/diagnostics?metrics=true")
    health = await api.get("/api/memory/health?full=true")
    for body in (diagnostics.json(), health.json()):
        metrics = body["metrics"]
        latencies = metrics["latencies"]
        assert latencies["store"]["count"] == latencies["search"]["count"] == 1
        stages = latencies["searchStages"]
        assert stages["qdrant_query"].keys() == {"count", "min", "max", "avg", "p50", "p90", "p99"}
        assert stages["bm25_query"] == stages["qdrant_query"]
        assert metrics["rates"]["stored[status=stored]"] == 0.1
        assert "qdrant" in metrics["circuitBreakers"]
        assert "http_in_flight" in metrics["queues"]
        assert metrics["hitRate"] is None or 0 <= metrics["hitRate"] <= 1


async def test_diagnostics_count_the_backlog(api: httpx.AsyncClient, world: Harness) -> None:
    await api.post("/api/memory/store", json={"text": "a", "tier": "books"})
    world.clock.advance(5)
    body = (await api.get("/api/memory/diagnostics")).json()
    counts = {"pending": 1, "synced": 0, "failed": 0, "oldest_pending_s": 5.0, "unencoded": 0}
    assert body["index"] == counts
    assert [row["tier"] for row in body["by_tier"]] == ["documents"]
    assert "metrics" not in body
    assert body["review_waiting"] == {"thought": 0, "episode": 0, "merge": 0}
    assert "metrics" in (await api.get("/api/memory/diagnostics?metrics=true")).json()


async def test_diagnostics_do_not_wait_for_tiers_that_take_long_to_count(
    api: httpx.AsyncClient, world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million memories take ten seconds: the backlog is asked for meanwhile."""
    await api.post("/api/memory/store", json={"text": "a", "tier": "history"})
    counted = asyncio.Event()
    count, asked = world.items.tier_counts, []

    async def slow(scope: ReadScope | None) -> list[TierCount]:
        asked.append(scope)
        await counted.wait()
        world.clock.advance(10)
        rows: list[TierCount] = await count(scope)
        return rows

    monkeypatch.setattr(world.items, "tier_counts", slow)
    monkeypatch.setattr(health, "CHECK_TIMEOUT_S", 0.05)
    for _ in range(2):
        body = (await api.get("/api/memory/diagnostics")).json()
        assert (body["memory_items_total"], body["index"]["pending"]) == (1, 1)
        assert (body["by_tier"], body["by_tier_age_s"]) == ([], None)
    counted.set()
    body = (await api.get("/api/memory/diagnostics")).json()
    assert [row["tier"] for row in body["by_tier"]] == ["history"]
    assert body["by_tier_age_s"] == 0.0
    # What took ten seconds is not counted again after fifteen.
    world.clock.advance(150)
    assert (await api.get("/api/memory/diagnostics")).json()["by_tier_age_s"] == 160.0
    assert asked == [None]
    world.clock.advance(100)
    assert (await api.get("/api/memory/diagnostics")).json()["by_tier_age_s"] == 0.0
    assert asked == [None, None]


async def test_a_count_that_failed_is_tried_again_by_the_next_who_asks(
    api: httpx.AsyncClient, world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_scope: ReadScope | None) -> list[TierCount]:
        raise StoreDown("MongoDB does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(world.items, "tier_counts", fails)
        assert (await api.get("/api/memory/diagnostics")).status_code == 503
    assert (await api.get("/api/memory/diagnostics")).json()["by_tier_age_s"] == 0.0


async def test_disk_space_of_a_folder_that_is_not_made_yet(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"
    world = Harness.ready(settings_with(data={"dir": str(folder)}))
    async with client_of(world.services) as api:
        disk = (await api.get("/api/system/disk-space")).json()["disk"]
    assert disk["path"] == str(folder)
    assert disk["used_bytes"] + disk["free_bytes"] == disk["total_bytes"] > 0


async def test_a_breaker_is_shown_with_its_service(api: httpx.AsyncClient, world: Harness) -> None:
    details = {"breaker": {"state": "open"}}
    world.model.state = {"healthy": False, "message": "away", **details}
    services = (await api.get("/api/system/health")).json()["health"]["services"]
    assert services["embedding"] == {
        "ok": False,
        "base_url": None,
        "circuit_breaker": {"state": "open"},
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", None),
        ("http://q:6333", "http://q:6333"),
        ("https://user:secret@q.example:6333/x?key=y", "https://q.example:6333/x"),
        ("http://[::1]:6333", "http://[::1]:6333"),
    ],
)
def test_no_secret_of_a_url_is_shown(url: str, shown: str | None) -> None:
    assert public_url(url) == shown


class TestProbes:
    async def test_ready_and_not_ready(self, api: httpx.AsyncClient, world: Harness) -> None:
        assert (await api.get("/readyz")).json() == {"ready": True}
        world.problems.append("mongodb: no primary")
        response = await api.get("/readyz")
        assert response.status_code == 503
        assert response.json()["reasons"] == ["mongodb: no primary"]
        assert (await api.get("/healthz")).status_code == 200

    async def test_before_the_services_exist_only_probes_and_document_answer(
        self, world: Harness
    ) -> None:
        built: list[Harness] = []
        app = create_api(lambda: built[0].services if built else None)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as api:
            assert (await api.get("/healthz")).status_code == 200
            assert (await api.get("/readyz")).json()["reasons"] == ["starting"]
            assert (await api.get("/openapi.json")).status_code == 200
            early = await api.get("/api/memory/stats")
            assert (early.status_code, early.json()["code"]) == (503, "starting")
            assert early.headers["Retry-After"] == "1"
            built.append(world)
            assert (await api.get("/api/memory/stats")).status_code == 200
