"""Whoever guesses keys is slowed down, and nobody else; and which pages may call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.api import auth
from rayapp.api.app import create_api
from rayapp.api.auth import WRONG_KEYS, RateLimiter, source_of
from rayapp.core.errors import RateLimited
from tests.support.harness import Harness
from tests.unit.api.serving import LOCAL, settings_with

STATS = "/api/memory/stats"
PAGE = "https://app.example"
WRONG = "rk_" + "x" * 43


@asynccontextmanager
async def asking(world: Harness, *sources: str) -> AsyncIterator[list[httpx.AsyncClient]]:
    """A client at each address, of one replica."""
    app = create_api(world.services)
    clients = [
        httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(one, 9)), base_url=LOCAL)
        for one in sources
    ]
    yield clients
    for client in clients:
        await client.aclose()


async def a_key(world: Harness) -> dict[str, str]:
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    secret, _ = await keys.create("app", user_id="dana", scopes=["read"])
    return {"Authorization": f"Bearer {secret}"}


async def test_wrong_keys_of_one_source_are_limited_and_known_ones_pass() -> None:
    world = Harness.ready(settings_with(auth={"mode": "keys"}))
    known, unknown = await a_key(world), await a_key(world)
    wrong = {"Authorization": f"Bearer {WRONG}"}
    async with asking(world, "198.51.100.7", "198.51.100.8") as (one, other):
        assert (await one.get(STATS, headers=known)).is_success
        answers = [await one.get(STATS, headers=wrong) for _ in range(WRONG_KEYS.burst + 5)]
        assert [answer.status_code for answer in answers].count(401) == WRONG_KEYS.burst
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["Retry-After"]) >= 1
        assert answers[-1].json()["error"] == "Too many wrong keys from this address; wait."
        # What was found before goes on; nothing new is looked up for this source alone.
        assert (await one.get(STATS, headers=known)).is_success
        assert (await one.get(STATS, headers=unknown)).status_code == 429
        assert (await other.get(STATS, headers=unknown)).is_success
        world.clock.advance(1 / WRONG_KEYS.per_second)
        assert (await one.get(STATS, headers=unknown)).is_success


async def test_nothing_is_looked_up_for_a_source_above_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Harness.ready(settings_with(auth={"mode": "keys"}))
    looked: list[str] = []
    find = world.services.api_keys.find

    async def noted(key_hash: str) -> Any:
        looked.append(key_hash)
        return await find(key_hash)

    monkeypatch.setattr(world.services.api_keys, "find", noted)
    async with asking(world, "198.51.100.7") as (one,):
        for number in range(WRONG_KEYS.burst + 50):
            wrong = {"Authorization": f"Bearer rk_{number:043}"}
            await one.get(STATS, headers=wrong)
    assert len(looked) == WRONG_KEYS.burst


async def test_guessed_tokens_count_too() -> None:
    world = Harness.ready(
        settings_with(auth={"mode": "keys", "sessions": True, "session_secret": "s" * 40})
    )
    async with asking(world, "198.51.100.7") as (one,):
        for _ in range(WRONG_KEYS.burst):
            answer = await one.get(STATS, headers={"Authorization": "Bearer a.b.c"})
            assert answer.status_code == 401
        answer = await one.get(STATS, headers={"Authorization": "Bearer a.b.c"})
        assert answer.status_code == 429


def test_memory_is_bounded_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "BUCKETS", 50)
    limiter = RateLimiter(WRONG_KEYS)
    for number in range(1_000):
        limiter.take(f"source-{number}", 0.0)
        limiter.check(f"other-{number}", 0.0)
    assert len(limiter._buckets) == 50
    for _ in range(WRONG_KEYS.burst - 1):
        limiter.take("source-999", 0.0)
    with pytest.raises(RateLimited):
        limiter.check("source-999", 0.0)


@pytest.mark.parametrize(
    ("client", "source"),
    [
        (("198.51.100.7", 1), "198.51.100.7"),
        (("2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2::/64"),
        (("2001:db8:1:2::9", 1), "2001:db8:1:2::/64"),
        (("::ffff:198.51.100.7", 1), "198.51.100.7"),
        (("fe80::1%eth0", 1), "fe80::/64"),
        (("/run/socket", None), "/run/socket"),
        (None, ""),
    ],
)
def test_who_asks(client: Any, source: str) -> None:
    assert source_of({"type": "http", "client": client}) == source


def pages(mode: str, *origins: str) -> Harness:
    return Harness.ready(
        settings_with(auth={"mode": mode}, http={"allowed_origins": list(origins)})
    )


async def preflight(client: httpx.AsyncClient, origin: str) -> httpx.Response:
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,idempotency-key,x-turn-id",
    }
    return await client.options("/api/memory/store", headers=headers)


def allowed(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-")}


@pytest.mark.parametrize("mode", ["keys", "open"])
async def test_a_page_on_the_list_may_call(mode: str) -> None:
    async with asking(pages(mode, PAGE), "127.0.0.1") as (client,):
        asked = await preflight(client, PAGE)
        assert asked.status_code == 200
        assert asked.headers["Access-Control-Allow-Origin"] == PAGE
        assert "POST" in asked.headers["Access-Control-Allow-Methods"]
        headers = {"Origin": PAGE}
        body = {"text": "Dana lives in Haifa; דנה גרה בחיפה"}
        answer = await client.post("/api/memory/store", json=body, headers=headers)
        # A refusal can be read by the page as well.
        assert answer.status_code == (401 if mode == "keys" else 201)
        assert answer.headers["Access-Control-Allow-Origin"] == PAGE
        exposed = answer.headers["Access-Control-Expose-Headers"]
        assert {"X-Request-Id", "X-Conversation-Id", "ETag"} <= set(exposed.split(", "))
        for one in (asked, answer):
            assert "*" not in allowed(one).values()
            assert "access-control-allow-credentials" not in one.headers
            assert "Origin" in one.headers["Vary"]


@pytest.mark.parametrize("mode", ["keys", "open"])
@pytest.mark.parametrize("listed", [(), (PAGE,)])
async def test_no_other_page_may(mode: str, listed: tuple[str, ...]) -> None:
    async with asking(pages(mode, *listed), "127.0.0.1") as (client,):
        for origin in ("https://evil.example", f"{PAGE}.evil.example", "null", f"{PAGE}:8443"):
            asked = await preflight(client, origin)
            assert not asked.is_success
            assert "access-control-allow-origin" not in asked.headers
            answer = await client.post(
                "/api/memory/store", json={"text": "x"}, headers={"Origin": origin}
            )
            assert answer.status_code == (401 if mode == "keys" else 403)
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://*.example", "app.example", "https://a.example/", "HTTPS://a.b"]
)
def test_a_page_is_named_as_its_browser_does(origin: str) -> None:
    with pytest.raises(Exception, match="scheme://host"):
        settings_with(http={"allowed_origins": [origin]})


def test_a_short_secret_is_refused_and_not_repeated() -> None:
    with pytest.raises(Exception, match="32 random characters") as raised:
        settings_with(auth={"session_secret": "hush-hush"})
    assert "hush-hush" not in str(raised.value)
