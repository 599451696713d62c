"""Keyless local mode and keys mode."""

from collections.abc import Sequence

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService, hash_of
from rayapp.admin.ports import Scope
from rayapp.api.auth import RateLimiter
from rayapp.core.errors import InvalidInput, NotFound, RateLimited, Unauthorized
from rayapp.core.settings.access import RateLimitSettings
from rayapp.core.settings.model import Settings
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with

STATS = "/api/memory/stats"


def keys_settings(**more: object) -> Settings:
    return settings_with(auth={"mode": "keys"}, **more)


async def key_of(world: Harness, *scopes: Scope, user_id: str | None = "dana") -> str:
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    secret, _ = await keys.create("tests", user_id=user_id, scopes=scopes)
    return secret


def bearer(secret: str, user: str | None = None) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {secret}"}
    return headers | ({"X-User-Id": user} if user else {})


async def user_seen(api: httpx.AsyncClient, headers: dict[str, str]) -> str | int:
    response = await api.get(STATS, headers=headers)
    return response.json()["stats"]["user_id"] if response.is_success else response.status_code


async def test_where_keys_are_checked_nothing_is_said_of_them() -> None:
    world = Harness.ready(keys_settings())
    async with client_of(world.services) as api:
        response = await api.get(STATS, headers=bearer(await key_of(world, "read")))
    assert response.is_success
    assert "X-Auth-Notice" not in response.headers


class TestKeyless:
    async def test_the_user_is_admin_or_the_header(self, api: httpx.AsyncClient) -> None:
        assert await user_seen(api, {}) == "admin"
        assert await user_seen(api, {"X-User-Id": "dana@example"}) == "dana@example"

    async def test_a_key_that_nobody_looks_at_is_said_on_the_answer_and_once_in_the_log(
        self, api: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert "X-Auth-Notice" not in (await api.get(STATS)).headers
        notices = [
            (await api.get(STATS, headers=bearer("rk_of_production", user))).headers[
                "X-Auth-Notice"
            ]
            for user in (None, "dana")
        ]
        assert notices == [
            f"local mode checks no key: yours was ignored, user {user} served"
            for user in ("admin", "dana")
        ]
        said = [record for record in caplog.records if "a key was sent" in record.message]
        assert len(said) == 1
        assert "rk_of_production" not in caplog.text

    @pytest.mark.parametrize(
        ("user", "status"), [("system", 403), ("a b", 422), ("", 422), ("x" * 129, 422), ("é", 422)]
    )
    async def test_unusable_users_are_refused(
        self, api: httpx.AsyncClient, user: str, status: int
    ) -> None:
        assert (await api.get(STATS, headers={b"X-User-Id": user.encode("latin-1")})).status_code \
            == status  # fmt: skip

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("localhost", 200),
            ("LOCALHOST:1234", 200),
            ("[::1]:8000", 200),
            ("127.0.0.1", 200),
            ("evil.example", 403),
            ("127.0.0.1.evil.example:8000", 403),
            ("localhost:8000@evil.example", 403),
            ("", 403),
        ],
    )
    @pytest.mark.parametrize("path", [STATS, "/healthz", "/openapi.json"])
    async def test_only_listed_hosts_are_served(
        self, api: httpx.AsyncClient, host: str, status: int, path: str
    ) -> None:
        assert (await api.get(path, headers={"Host": host})).status_code == status

    @pytest.mark.parametrize(
        ("origin", "status"),
        [
            ("http://localhost:5173", 201),
            ("http://[::1]:5173", 201),
            ("https://evil.example", 403),
            ("null", 403),
            ("http://[bad", 403),
        ],
    )
    async def test_a_foreign_page_cannot_write(
        self, api: httpx.AsyncClient, origin: str, status: int
    ) -> None:
        response = await api.post(
            "/api/memory/store", json={"text": "a"}, headers={"Origin": origin}
        )
        assert response.status_code == status

    async def test_no_rate_limit(self) -> None:
        world = Harness.ready(settings_with(rate_limit={"burst": 1, "per_second": 0.01}))
        async with client_of(world.services) as api:
            assert [(await api.get(STATS)).status_code for _ in range(3)] == [200] * 3


class TestKeys:
    async def test_a_key_reads_as_its_user(self) -> None:
        world = Harness.ready(keys_settings())
        secret = await key_of(world, "read")
        async with client_of(world.services) as api:
            assert await user_seen(api, bearer(secret)) == "dana"
            assert await user_seen(api, bearer(secret, "dana")) == "dana"
            assert await user_seen(api, bearer(secret, "noa")) == 403
            assert await user_seen(api, bearer(secret, "system")) == 403

    async def test_an_admin_key_acts_for_any_user_but_system(self) -> None:
        world = Harness.ready(keys_settings())
        free = await key_of(world, "admin", user_id=None)
        bound = await key_of(world, "admin", user_id="dana")
        async with client_of(world.services) as api:
            assert await user_seen(api, bearer(free)) == "admin"
            assert await user_seen(api, bearer(free, "noa")) == "noa"
            assert await user_seen(api, bearer(bound)) == "dana"
            assert await user_seen(api, bearer(bound, "noa")) == "noa"
            assert await user_seen(api, bearer(free, "system")) == 403

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer rk_wrong"},
            {"Authorization": "Bearer rk_" + "x" * 43},
            {"Authorization": "Basic ZGFuYTp4"},
        ],
    )
    async def test_no_key_no_answer(self, headers: dict[str, str]) -> None:
        async with client_of(Harness.ready(keys_settings()).services) as api:
            response = await api.get(STATS, headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
        assert response.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize(
        ("scopes", "statuses"),
        [
            (["read"], [200, 403, 403]),
            (["write"], [403, 201, 403]),
            (["read", "write"], [200, 201, 403]),
            (["admin"], [200, 201, 200]),
        ],
    )
    async def test_each_scope_opens_its_routes(
        self, scopes: Sequence[Scope], statuses: list[int]
    ) -> None:
        world = Harness.ready(keys_settings())
        headers = bearer(await key_of(world, *scopes))
        async with client_of(world.services, headers) as api:
            answers = [
                await api.get(STATS),
                await api.post("/api/memory/store", json={"text": "a"}),
                await api.get("/api/memory/diagnostics"),
            ]
        assert [one.status_code for one in answers] == statuses

    async def test_hosts_are_free_with_keys(self) -> None:
        world = Harness.ready(keys_settings())
        headers = {**bearer(await key_of(world, "read")), "Host": "memory.example"}
        async with client_of(world.services, headers) as api:
            assert (await api.get(STATS)).status_code == 200

    async def test_the_rate_limit_is_per_key_and_says_when_to_return(self) -> None:
        world = Harness.ready(keys_settings(rate_limit={"burst": 2, "per_second": 0.5}))
        first, second = await key_of(world, "read"), await key_of(world, "read")
        async with client_of(world.services) as api:
            statuses = [await user_seen(api, bearer(first)) for _ in range(3)]
            assert statuses == ["dana", "dana", 429]
            refused = await api.get(STATS, headers=bearer(first))
            assert refused.headers["Retry-After"] == "2"
            assert await user_seen(api, bearer(second)) == "dana"
            world.clock.advance(2)
            assert await user_seen(api, bearer(first)) == "dana"


class TestKeyService:
    async def test_the_key_is_shown_once_and_stored_as_a_hash(self) -> None:
        world = Harness.ready()
        keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=30)
        secret, row = await keys.create("cli", user_id="dana", scopes=["read"])
        assert secret.startswith("rk_")
        assert row.key_hash == hash_of(secret)
        assert secret not in repr(await keys.all())
        assert await keys.authenticate(secret) == row

    async def test_a_revoked_key_works_at_most_as_long_as_the_cache(self) -> None:
        world = Harness.ready()
        asking = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=30)
        elsewhere = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=30)
        secret, row = await asking.create("cli", user_id="dana", scopes=["read"])
        await asking.authenticate(secret)
        assert await elsewhere.revoke("cli") == 1
        world.clock.advance(29)
        assert await asking.authenticate(secret) == row
        world.clock.advance(1)
        with pytest.raises(Unauthorized):
            await asking.authenticate(secret)
        with pytest.raises(NotFound):
            await elsewhere.revoke("cli")

    @pytest.mark.parametrize(
        ("principal", "user_id", "scopes"),
        [
            (" ", "dana", ["read"]),
            ("cli", "dana", []),
            ("cli", "dana", ["root"]),
            ("cli", None, ["read", "write"]),
            ("cli", "system", ["read"]),
            ("cli", "a b", ["read"]),
            ("cli", "dana\n", ["read"]),
        ],
    )
    async def test_a_useless_key_is_not_made(
        self, principal: str, user_id: str | None, scopes: list[Scope]
    ) -> None:
        world = Harness.ready()
        keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
        with pytest.raises(InvalidInput):
            await keys.create(principal, user_id=user_id, scopes=scopes)
        assert await keys.all() == []


def test_idle_buckets_are_forgotten_and_busy_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayapp.api.auth.BUCKETS", 2)
    limiter = RateLimiter(RateLimitSettings(per_second=1, burst=1))
    limiter.take("idle", 0.0)
    limiter.take("busy", 9.9)
    limiter.take("new", 10.0)
    with pytest.raises(RateLimited):
        limiter.take("busy", 10.0)
