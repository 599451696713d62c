"""Promotion over HTTP: cycles, their schedule, and the routes of the client's panel."""

import asyncio
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.api.app import create_api
from rayapp.core.errors import Conflict
from rayapp.learning.records import PromotionReport, PromotionSchedule
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_learning import OUTCOMES, keep
from tests.unit.api.test_middleware import Connection


class Cycle:
    """Implements `Promotion` with fixed answers; keeps whose cycle was asked for."""

    def __init__(self) -> None:
        self.users: list[str | None] = []
        self.busy = False

    async def run(self, user_id: str | None) -> PromotionReport:
        if self.busy:
            raise Conflict("A cycle goes on; try again.", code="busy")
        self.users.append(user_id)
        return PromotionReport(
            examined=9, promoted=1, demoted=2, archived=3, merged=4, errors=5, duration_ms=6.5
        )

    async def schedule(self, user_id: str | None = None) -> PromotionSchedule:
        self.users.append(user_id)
        return PromotionSchedule(interval_ms=1_800_000, running=False, last_run_at=None)


COUNTS = {
    "examined": 9,
    "promoted": 1,
    "demoted": 2,
    "archived": 3,
    "merged": 4,
    "deleted": 0,
    "errors": 5,
    "durationMs": 6.5,
}


class TestPromotion:
    async def test_a_cycle_is_the_acting_users_unless_all_are_asked_for(self) -> None:
        cycle = Cycle()
        async with client_of(Harness.ready(promotion=cycle).services) as api:
            own = await api.post("/api/memory/ops/promote", headers={"X-User-Id": "dana"})
            every = await api.post("/api/memory/ops/promote", json={"all_users": True})
            forced = await api.post("/api/memory/decay/force", json={})
        assert own.json() == {"success": True, "stats": COUNTS, "degraded": []}
        assert every.status_code == 200
        assert forced.json() == {"success": True, "result": COUNTS, "degraded": []}
        assert cycle.users == ["dana", None, "admin"]

    async def test_a_cycle_that_goes_on_is_a_conflict(self) -> None:
        cycle = Cycle()
        cycle.busy = True
        async with client_of(Harness.ready(promotion=cycle).services) as api:
            for path in ("/api/memory/ops/promote", "/api/memory/decay/force"):
                response = await api.post(path)
                assert (response.status_code, response.json()["code"]) == (409, "busy")

    async def test_a_cycle_is_finished_although_its_caller_went_away(self) -> None:
        began, go_on = asyncio.Event(), asyncio.Event()

        class Slow(Cycle):
            async def run(self, user_id: str | None) -> PromotionReport:
                began.set()
                await go_on.wait()
                return await super().run(user_id)

        connection = Connection("/api/memory/ops/promote", b"{}")
        app = create_api(Harness.ready(promotion=Slow()).services)
        serving = asyncio.create_task(app(connection.scope, connection.receive, connection.send))
        await began.wait()
        connection.gone.set()
        await asyncio.sleep(0.01)
        go_on.set()
        await asyncio.wait_for(serving, 5)
        assert connection.sent[0]["status"] == 200

    async def test_the_schedule_has_what_the_client_checks(self) -> None:
        cycle = Cycle()
        async with client_of(Harness.ready(promotion=cycle).services) as api:
            found = (await api.get("/api/memory/decay/schedule")).json()
        assert cycle.users == ["admin"]
        assert found["schedule"] == {
            "kind": "promotion_cycle",
            "interval_ms": 1_800_000,
            "running": False,
            "last_run_at": None,
        }

    @pytest.mark.parametrize("body", [{"all_users": 1}, {"all_users": "yes"}, {"user": "dana"}])
    async def test_a_bad_body_is_422(self, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
        assert (await api.post("/api/memory/ops/promote", json=body)).status_code == 422

    async def test_promote_needs_the_scope_admin(self) -> None:
        world = Harness.ready(settings_with(auth={"mode": "keys"}), promotion=Cycle())
        keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
        statuses = []
        for scope in ("write", "admin"):
            secret, _ = await keys.create(scope, user_id="dana", scopes=[scope])
            async with client_of(world.services, {"Authorization": f"Bearer {secret}"}) as api:
                statuses.append((await api.post("/api/memory/ops/promote")).status_code)
        assert statuses == [403, 200]

    async def test_a_good_memory_is_promoted(self, api: httpx.AsyncClient, world: Harness) -> None:
        await keep(world, "m-1")
        for _ in range(2):
            await api.post(OUTCOMES, json={"memory_ids": ["m-1"], "outcome": "worked"})
        world.clock.advance(3_600)
        stats = (await api.post("/api/memory/ops/promote")).json()["stats"]
        assert (stats["promoted"], stats["errors"]) == (1, 0)
        counted = (await api.get("/api/memory/stats")).json()["stats"]
        assert counted["promotion_rate"] == 1.0
        assert counted["demotion_rate"] == 0.0
