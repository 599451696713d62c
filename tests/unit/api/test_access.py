"""Keys and the audit log over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import USED_S, ApiKeyService
from rayapp.admin.audit import MAX_MEMORIES
from rayapp.admin.ports import AuditEntry
from rayapp.api.app import ROUTES, create_api
from rayapp.api.auth import RULES, Mark
from rayapp.api.route import Route
from rayapp.core.errors import StoreDown
from tests.support.harness import Harness
from tests.unit.api.serving import settings_with

KEYS, AUDIT = "/api/admin/keys", "/api/admin/audit"
SECRETS = {"mode": "keys", "cache_s": 30}
ADDRESS = "203.0.113.7"


async def locked(**settings: Any) -> tuple[Harness, str]:
    """A service that asks for keys, and one that may operate it."""
    world = Harness.ready(settings_with(auth=SECRETS, **settings))
    secret, _ = await world.services.keys.create("ops", user_id="admin", scopes=["admin"])
    return world, secret


@asynccontextmanager
async def caller(world: Harness, key: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=create_api(world.services), client=(ADDRESS, 40_000))
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://testserver", headers=headers
    ) as http:
        yield http


async def made(http: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    body = {"principal": "shop", "user_id": "noa", **fields}
    answer: dict[str, Any] = (await http.post(KEYS, json=body)).raise_for_status().json()
    return answer


async def listed(http: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    found = (await http.get(KEYS)).raise_for_status().json()["keys"]
    return {one["key_id"]: one for one in found}


async def test_a_key_is_shown_once_and_works_until_it_ends() -> None:
    world, ops = await locked()
    until = world.clock.now() + timedelta(hours=1)
    async with caller(world, ops) as http:
        answer = await made(http, name="  The shop  ", expires_at=until.isoformat())
        row = answer["made"]
        assert (row["name"], row["principal"], row["scopes"]) == (
            "The shop",
            "shop",
            ["read", "write"],
        )
        assert answer["key"] not in (await http.get(KEYS)).text
        async with caller(world, answer["key"]) as shop:
            assert (await shop.get("/api/memory/items")).status_code == 200
            # Also where it is in the cache.
            await world.clock.elapse(3_600)
            assert (await shop.get("/api/memory/items")).status_code == 401
        assert (await listed(http))[row["key_id"]]["state"] == "expired"
        refused = await http.post(
            KEYS, json={"principal": "x", "user_id": "x", "expires_at": until.isoformat()}
        )
        assert refused.status_code == 422
        assert "still to come" in refused.json()["message"]


async def test_a_rotated_key_goes_on_for_its_grace_and_the_next_lasts_as_long() -> None:
    world, ops = await locked()
    async with caller(world, ops) as http:
        until = (world.clock.now() + timedelta(days=30)).isoformat()
        first = await made(http, expires_at=until, name="garden")
        await world.clock.elapse(86_400)
        path = f"{KEYS}/{first['made']['key_id']}/rotate"
        second = (await http.post(path, json={"grace_s": 600})).raise_for_status().json()
        assert second["made"]["name"] == "garden"
        lasts = world.clock.now() + timedelta(days=30)
        assert second["made"]["expires_at"].startswith(lasts.isoformat()[:19])
        for seconds, expected in ((0, 200), (601, 401)):
            await world.clock.elapse(seconds)
            async with caller(world, first["key"]) as old, caller(world, second["key"]) as new:
                assert (await old.get("/api/memory/items")).status_code == expected
                assert (await new.get("/api/memory/items")).status_code == 200
        assert (await http.post(path)).status_code == 404


async def test_one_key_is_revoked_and_the_one_in_use_is_not() -> None:
    world, ops = await locked()
    async with caller(world, ops) as http:
        one, other = await made(http), await made(http)
        gone = await http.delete(f"{KEYS}/{one['made']['key_id']}")
        assert gone.json()["ended"]["state"] == "revoked"
        assert (await http.delete(f"{KEYS}/{one['made']['key_id']}")).status_code == 404
        for key, expected in ((one["key"], 401), (other["key"], 200)):
            async with caller(world, key) as shop:
                assert (await shop.get("/api/memory/items")).status_code == expected
        own = next(key for key, row in (await listed(http)).items() if row["principal"] == "ops")
        assert (await http.delete(f"{KEYS}/{own}")).status_code == 409
        assert (await listed(http))[own]["state"] == "living"


async def test_the_last_use_costs_no_write_per_request(monkeypatch: pytest.MonkeyPatch) -> None:
    world, ops = await locked()
    written: list[str] = []
    used = world.services.api_keys.used

    async def noted(key_hash: str, at: Any) -> None:
        written.append(key_hash)
        await used(key_hash, at)

    monkeypatch.setattr(world.services.api_keys, "used", noted)
    async with caller(world, ops) as http:
        for _ in range(20):
            await http.get("/api/memory/items")
            await world.clock.elapse(2)
        assert len(written) == 1
        await world.clock.elapse(USED_S)
        (row,) = (await listed(http)).values()
        assert len(written) == 2
        assert row["last_used_at"].startswith(world.clock.now().isoformat()[:19])


async def test_a_key_opens_though_its_use_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, ops = await locked()

    async def away(key_hash: str, at: Any) -> None:
        raise StoreDown("MongoDB is away.")

    monkeypatch.setattr(world.services.api_keys, "used", away)
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    assert (await keys.authenticate(ops)).principal == "ops"


async def test_keys_are_for_operators() -> None:
    world, ops = await locked()
    tenant, _ = await world.services.keys.create(
        "acme", user_id=None, scopes=["admin"], org_id="acme"
    )
    plain, _ = await world.services.keys.create("dana", user_id="dana", scopes=["read", "write"])
    for key in (tenant, plain):
        async with caller(world, key) as http:
            for path in (KEYS, AUDIT, "/api/memory/ops/tenants/acme/users"):
                assert (await http.get(path)).status_code == 403, path
    async with caller(world, ops) as http:
        assert (await http.get(AUDIT)).status_code == 200


async def test_who_deleted_what_and_from_where() -> None:
    world, ops = await locked()
    dana, row = await world.services.keys.create("app", user_id="dana", scopes=["read", "write"])
    async with caller(world, dana) as http:
        stored = {"text": "A secret of Dana's", "tier": "history"}
        memory = (await http.post("/api/memory/store", json=stored)).json()["memory_id"]
        await http.get("/api/memory/items")
        await http.delete(f"/api/memory/items/{memory}", headers={"X-Request-Id": "r-1"})
        await http.delete(f"/api/memory/items/{memory}")
    async with caller(world, ops) as http:
        await http.post("/api/memory/ops/holds", json={"user_id": "noa", "reason": "Case 17"})
        answer = await http.get(AUDIT, params={"limit": 3})
        entries = answer.json()["entries"]
        assert "secret" not in answer.text
        assert "Case 17" not in answer.text
        shown = [(one["principal"], one["method"], one["status"], one["ids"]) for one in entries]
        assert shown == [
            ("ops", "POST", 200, {"held": "noa"}),
            ("app", "DELETE", 404, {"memory_id": memory}),
            ("app", "DELETE", 200, {"memory_id": memory}),
        ]
        first = entries[2]
        assert (first["key_id"], first["user_id"], first["source"], first["request_id"]) == (
            row.key_id,
            "dana",
            ADDRESS,
            "r-1",
        )
        # Whoever reads the log stands in it.
        again = (await http.get(AUDIT)).json()["entries"]
        assert (again[0]["route"], again[0]["method"]) == (AUDIT, "GET")


async def test_many_that_are_deleted_at_once_stand_in_the_log() -> None:
    world, ops = await locked()
    async with caller(world, ops) as http:
        ids = [f"mem-{number}" for number in range(MAX_MEMORIES + 7)]
        for asked in (ids[:2], ids):
            await http.post("/api/memory/bulk/delete", json={"ids": asked})
        many, few = (await http.get(AUDIT)).json()["entries"]
    assert (few["ids"], few["memory_ids"]) == ({}, ids[:2])
    assert many["memory_ids"] == ids[:MAX_MEMORIES]
    assert many["ids"] == {"memories": str(len(ids))}


async def test_pages_and_conditions_of_the_log() -> None:
    world, ops = await locked(audit={"writes": True, "keep_days": 2})
    async with caller(world, ops) as http:
        for number in range(5):
            body = {"text": f"The {number}th of them", "tier": "history"}
            await http.post("/api/memory/store", json=body)
            await world.clock.elapse(60)
        pages, cursor = [], None
        for _ in range(3):
            asked = {"route": "/api/memory/store", "limit": 2, "cursor": cursor}
            given = {name: value for name, value in asked.items() if value is not None}
            page = (await http.get(AUDIT, params=given)).json()
            pages.append([one["entry_id"] for one in page["entries"]])
            cursor = page["next_cursor"]
        assert ([len(one) for one in pages], cursor) == ([2, 2, 1], None)
        ids = [one for page in pages for one in page]
        assert sorted(ids, reverse=True) == ids
        for asked, expected in (
            ({"principal": "nobody"}, 0),
            ({"user_id": "admin"}, 5),
            ({"user_id": "admin", "org_id": "acme"}, 0),
        ):
            query = {"route": "/api/memory/store", **asked}
            assert len((await http.get(AUDIT, params=query)).json()["entries"]) == expected, asked
        await world.clock.elapse(2 * 86_400)
        assert (await http.get(AUDIT)).json()["entries"] == []


async def test_an_answer_does_not_wait_for_a_log_that_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world, ops = await locked()

    async def away(entry: AuditEntry) -> None:
        raise StoreDown("MongoDB is away.")

    monkeypatch.setattr(world.container.stores.audit_log, "append", away)
    async with caller(world, ops) as http:
        assert (await made(http))["key"].startswith("rk_")
    assert "the audit log did not take an entry" in caplog.text


def test_what_deletes_operates_or_hands_out_is_audited() -> None:
    for (method, path), rule in RULES.items():
        if method == "DELETE" or (rule.scope == "admin" and method != "GET"):
            assert rule.audited, path
    plain = [("POST", "/api/memory/store"), ("GET", "/api/memory/items"), ("GET", KEYS)]
    assert not any(RULES[one].audited for one in plain)
    assert RULES[("GET", AUDIT)].marks is Mark.AUDITED


@pytest.mark.parametrize("operation", [one for one in ROUTES if one.writes], ids=str)
def test_no_answer_that_shows_a_secret_is_kept(operation: Route) -> None:
    """What an idempotency key remembers lies in the store for a day."""
    assert {"secret", "key", "token"}.isdisjoint(operation.answer.model_fields)
