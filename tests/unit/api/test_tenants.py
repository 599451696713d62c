"""Tenants: what a key decides, what is stored, and what operators do."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.api.app import ROUTES
from rayapp.api.auth import RULES
from rayapp.core.errors import InvalidInput
from rayapp.core.ids import org_of, owner_id, owners_of, user_of
from rayapp.index.records import Projection
from rayapp.portability import erasure
from tests.support.harness import Harness
from tests.unit.api.serving import client_of
from tests.unit.api.test_auth import keys_settings

TENANTS = "/api/memory/ops/tenants"
CONFIRM = {"confirm": "DELETE"}
OF_OPERATORS = [one for one in ROUTES if not RULES[one.method, one.path].of_one_user]


class Service:
    """A service with keys; each call names the one that it is made with. All have one principal."""

    def __init__(self) -> None:
        self.world = Harness.ready(keys_settings())
        self.http = client_of(self.world.services)
        self.keys = ApiKeyService(self.world.services.api_keys, clock=self.world.clock, cache_s=0)
        self.secrets: dict[str, str] = {}

    async def key(self, name: str, org_id: str | None, user_id: str | None = "dana") -> None:
        self.secrets[name], _ = await self.keys.create(
            "app", user_id=user_id, scopes=["read", "write", "admin"], org_id=org_id
        )

    async def ask(
        self, key: str, method: str, path: str, user: str | None = None, **content: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.secrets[key]}"}
        headers |= {"X-User-Id": user} if user else {}
        answer = await self.http.request(method, path, headers=headers, **content)
        await self.world.indexed()
        await self.world.settle()
        return answer

    async def done(self, key: str, method: str, path: str, **content: Any) -> dict[str, Any]:
        answer = await self.ask(key, method, path, **content)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def store(self, key: str, text: str) -> None:
        await self.done(
            key, "POST", "/api/memory/store", json={"text": text, "memory_id": "m", "tags": ["t"]}
        )

    async def export(self, key: str) -> dict[str, Any]:
        return await self.done(key, "GET", "/api/memory/backup/export?format=json")

    async def texts(self, key: str) -> list[str]:
        found = await self.done(key, "GET", "/api/memory/items?tiers=all")
        return [item["text"] for item in found["items"]]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No indexer runs beside a request, so an erasure need not wait for one."""
    monkeypatch.setattr(erasure, "POLL_S", 0.0)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """`operator` is the key of no tenant; every key is for dana and holds all scopes."""
    found = Service()
    for name, org_id in (("operator", None), ("acme", "acme"), ("beta", "beta")):
        await found.key(name, org_id)
    async with found.http:
        yield found


def test_an_owner_is_taken_apart_as_it_was_joined() -> None:
    for org_id, user_id in ((None, "dana"), ("acme", "dana"), ("a.b-c", "x@y:z")):
        owner = owner_id(org_id, user_id)
        assert (org_of(owner), user_of(owner)) == (org_id, user_id)
    start, end = owners_of("acme")
    assert start <= owner_id("acme", "~") < end
    assert not any(start <= one < end for one in ("acme", "acme-x/dana", "acme0/dana", "acm/dana"))


@pytest.mark.parametrize("org_id", ["", "a/b", "a b", "תה", "x" * 65, "acme\n"])
async def test_a_tenant_is_a_short_plain_name(service: Service, org_id: str) -> None:
    with pytest.raises(InvalidInput, match="tenant of a key is 1 to 64"):
        await service.keys.create("p", user_id="dana", scopes=["read"], org_id=org_id)


async def test_what_is_stored_names_its_tenant(service: Service) -> None:
    for key in ("operator", "acme", "beta"):
        await service.store(key, f"דנה גרה בחיפה: {key}")
    rows = [row.item for row in service.world.items.inner._rows.values()]
    assert {(row.user_id, row.org_id) for row in rows} == {
        ("dana", None),
        ("acme/dana", "acme"),
        ("beta/dana", "beta"),
    }
    assert {(row.subject_id, row.perspective_owner_id) for row in rows} == {("dana", "dana")}
    owner = Projection(("user_id",))
    points, _ = await service.world.index.scroll(after=None, limit=10, read=owner)
    owners = [point.payload["user_id"] for point in points]
    assert sorted(owners) == ["acme/dana", "beta/dana", "dana"]


async def test_nobody_but_a_key_names_a_tenant(service: Service) -> None:
    await service.store("acme", "secret")
    for name in ("acme/dana", "acme%2Fdana", "/dana"):
        for key in ("operator", "beta"):
            answer = await service.ask(key, "GET", "/api/memory/items", user=name)
            assert answer.status_code == 422
            assert answer.json()["code"] == "bad_user_id"
    headers = {"Authorization": f"Bearer {service.secrets['beta']}", "X-Org-Id": "acme"}
    answer = await service.http.get("/api/memory/items?org_id=acme", headers=headers)
    assert "secret" not in answer.text


async def test_an_admin_key_of_a_tenant_acts_for_any_of_its_users(service: Service) -> None:
    await service.ask("acme", "POST", "/api/memory/store", user="noa", json={"text": "tea"})
    found = await service.ask("acme", "GET", "/api/memory/items?tiers=all", user="noa")
    assert [item["user_id"] for item in found.json()["items"]] == ["noa"]
    for key in ("operator", "beta"):
        answer = await service.ask(key, "GET", "/api/memory/items?tiers=all", user="noa")
        assert answer.json()["items"] == []


@pytest.mark.parametrize("route", OF_OPERATORS, ids=lambda one: f"{one.method} {one.path}")
async def test_a_key_of_a_tenant_runs_no_service(service: Service, route: Any) -> None:
    path = route.path.replace("{", "").replace("}", "")
    answer = await service.ask("acme", route.method, path, json={})
    assert answer.status_code == 403
    assert answer.json()["error"] == (
        "This route is about the whole service; use a key without a tenant."
    )


async def test_a_key_of_a_tenant_sets_nothing_for_everybody(service: Service) -> None:
    path, window = "/api/model/context/qwen3:8b", {"tokens": 8192, "everybody": True}
    assert (await service.ask("acme", "POST", path, json=window)).status_code == 403
    answer = await service.ask("acme", "GET", "/api/memory/events?types=repaired&follow=false")
    assert answer.status_code in (403, 422)


async def test_an_export_moves_to_another_tenant_only_when_it_is_mapped(service: Service) -> None:
    await service.store("acme", "Dana lives in Haifa; דנה גרה בחיפה")
    payload = await service.export("acme")
    assert (payload["userId"], payload["manifest"]["org_id"]) == ("dana", "acme")
    body = {"payload": payload}
    for key in ("beta", "operator"):
        answer = await service.ask(key, "POST", "/api/memory/backup/import", json=body)
        assert answer.status_code == 422
        assert answer.json()["code"] == "other_user_archive"
        assert await service.texts(key) == []
    mapped = body | {"mapUser": True}
    await service.done("beta", "POST", "/api/memory/backup/import", json=mapped)
    assert await service.texts("beta") == ["Dana lives in Haifa; דנה גרה בחיפה"]
    found = await service.done("beta", "POST", "/api/memory/search", json={"query": "חיפה"})
    assert [hit["memory_id"] for hit in found["results"]] == ["m"]
    assert "acme" not in str(await service.export("beta"))
    # Back where it came from nothing is to be mapped.
    again = await service.done("acme", "POST", "/api/memory/backup/import", json=body)
    assert again["collections"]["memory_items"]["present"] == 1


async def test_an_archive_cannot_name_another_tenant_in_its_rows(service: Service) -> None:
    await service.store("beta", "tea")
    payload = await service.export("beta")
    payload["manifest"]["org_id"] = "acme"
    body = {"payload": payload, "mapUser": True}
    answer = await service.ask("beta", "POST", "/api/memory/backup/import", json=body)
    assert answer.status_code == 422
    assert "is not its own" in answer.json()["error"]


async def test_erasing_a_user_reaches_the_one_tenant(service: Service) -> None:
    for key in ("operator", "acme", "beta"):
        await service.store(key, key)
    await service.done("acme", "DELETE", "/api/memory/user", params=CONFIRM)
    assert await service.texts("acme") == []
    assert await service.texts("operator") == ["operator"]
    assert await service.texts("beta") == ["beta"]


async def test_operators_list_and_erase_tenants(service: Service) -> None:
    for key in ("operator", "acme", "beta"):
        await service.store(key, key)
        await service.done(
            key, "POST", "/api/memory/backup/restore", json={"payload": await service.export(key)}
        )  # it keeps an archive of what was there
    await service.ask("acme", "POST", "/api/memory/store", user="noa", json={"text": "tea"})
    rows = [
        {"org_id": "acme", "keys": 1, "users": 2, "memories": 2},
        {"org_id": "beta", "keys": 1, "users": 1, "memories": 1},
    ]
    assert (await service.done("operator", "GET", TENANTS))["tenants"] == rows
    refused = await service.ask("operator", "DELETE", f"{TENANTS}/acme")
    assert refused.json()["code"] == "confirm_needed"
    held = {"user_id": "acme/noa", "reason": "a court asked"}
    await service.done("operator", "POST", "/api/memory/ops/holds", json=held)
    refused = await service.ask("operator", "DELETE", f"{TENANTS}/acme", params=CONFIRM)
    assert refused.json()["code"] == "legal_hold"
    whose = {"user_id": "acme/noa"}
    await service.done("operator", "DELETE", "/api/memory/ops/holds", params=whose)
    first = await service.done("operator", "DELETE", f"{TENANTS}/acme", params=CONFIRM)
    assert first["keys_revoked"] == 1
    assert first["removed"]["archives"] == 1
    found = await service.done("operator", "DELETE", f"{TENANTS}/acme", params=CONFIRM)
    assert (found["complete"], found["users_left"], found["left"]) == (True, 0, {})
    service.world.clock.advance(31)  # replicas trust a key for 30 s
    assert (await service.ask("acme", "GET", "/api/memory/items")).status_code == 401
    rows[0] |= {"keys": 0, "users": 0, "memories": 0}
    assert (await service.done("operator", "GET", TENANTS))["tenants"] == rows
    for key in ("operator", "beta"):
        assert await service.texts(key) == [key]
        kept = await service.done(key, "GET", "/api/memory/backup/list")
        assert kept["total"] == 1
    unknown = await service.ask("operator", "DELETE", f"{TENANTS}/nobody", params=CONFIRM)
    assert unknown.status_code == 404


async def test_revoking_a_principal_ends_the_keys_of_one_tenant(service: Service) -> None:
    await service.keys.create("shared", user_id="dana", scopes=["read"])
    await service.keys.create("shared", user_id="dana", scopes=["read"], org_id="acme")
    assert await service.keys.revoke("shared", org_id="acme") == 1
    living = [row.org_id for row in await service.keys.all() if row.revoked_at is None]
    assert living.count(None) == 2
