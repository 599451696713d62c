"""Session tokens: what they open, when they end, and what is refused."""

import base64
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from rayapp.api.app import ROUTES
from rayapp.api.auth import RULES
from rayapp.storage.files import kept_secret
from tests.support.examples import examples
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with

SESSION = "/api/auth/session"
ITEMS, STATS = "/api/memory/items", "/api/memory/stats"
DAY_S = 86_400
SECRET = "a secret of this service, for tests alone"


class Service:
    """A service that gives tokens; `secret` signs them."""

    def __init__(self, secret: str = SECRET, **auth: Any) -> None:
        auth = {"mode": "keys", "sessions": True, "session_secret": secret} | auth
        self.world = Harness.ready(settings_with(auth=auth))
        self.http = client_of(self.world.services)
        self.keys = ApiKeyService(self.world.services.api_keys, clock=self.world.clock, cache_s=0)

    async def key(self, *scopes: Scope, **row: Any) -> str:
        row = {"user_id": "dana", "org_id": None} | row
        secret, _ = await self.keys.create("app", scopes=scopes or ("read", "write"), **row)
        return secret

    async def ask(self, secret: str, method: str, path: str, **content: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {secret}", **content.pop("headers", {})}
        return await self.http.request(method, path, headers=headers, **content)

    async def token(self, key: str, **body: Any) -> str:
        answer = await self.ask(key, "POST", SESSION, json=body)
        assert answer.is_success, answer.text
        found: str = answer.json()["token"]
        return found

    async def user_of(self, secret: str, **content: Any) -> str:
        answer = await self.ask(secret, "GET", STATS, **content)
        found: str = answer.json()["stats"]["user_id"]
        return found


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    found = Service()
    async with found.http:
        yield found


def refusal(answer: httpx.Response) -> str:
    """The one sentence of a 401."""
    assert answer.status_code == 401
    body = answer.json()
    assert body["code"] == "bad_token"
    sentence: str = body["error"]
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0
    return sentence


@pytest.mark.parametrize(("mode", "said"), [("keys", "auth.sessions"), ("open", "auth.mode")])
async def test_unless_it_is_set_nobody_gets_a_token(mode: str, said: str) -> None:
    service = Service(mode=mode, sessions=mode == "open")
    key = await service.key()
    for method in ("POST", "DELETE"):
        answer = await service.ask(key, method, SESSION)
        assert answer.status_code == 403
        assert answer.json()["code"] == "sessions_off"
        assert said in answer.json()["error"]


async def test_a_token_is_sent_in_the_place_of_the_key(service: Service) -> None:
    key = await service.key()
    made = (await service.ask(key, "POST", SESSION)).json()
    assert made["token_type"] == "Bearer"
    assert made["expires_at"] == "2026-03-02T09:30:00Z"
    assert (made["user_id"], made["shard"], made["scopes"]) == ("dana", None, ["read", "write"])
    body = {"text": "Dana lives in Haifa", "memory_id": "m"}
    assert (await service.ask(made["token"], "POST", "/api/memory/store", json=body)).is_success
    assert (await service.ask(key, "GET", f"{ITEMS}/m")).is_success
    assert await service.user_of(made["token"], headers={"X-User-Id": "dana"}) == "dana"
    other = await service.ask(made["token"], "GET", STATS, headers={"X-User-Id": "noa"})
    assert other.json()["code"] == "other_user"


async def test_an_admin_key_makes_tokens_for_any_user_but_none_that_runs_the_service(
    service: Service,
) -> None:
    key = await service.key("admin", user_id=None)
    made = await service.ask(key, "POST", SESSION, headers={"X-User-Id": "noa"})
    token = made.json()["token"]
    assert made.json()["scopes"] == ["read", "write"]
    assert await service.user_of(token) == "noa"
    for method, path in (key for key, rule in RULES.items() if rule.scope == "admin"):
        path = path.replace("{", "").replace("}", "")
        assert (await service.ask(token, method, path)).status_code == 403
    window = {"tokens": 8192, "everybody": True}
    answer = await service.ask(token, "POST", "/api/model/context/qwen3:8b", json=window)
    assert answer.status_code == 403


async def test_a_token_covers_no_more_than_its_key(service: Service) -> None:
    reader = await service.key("read")
    assert (
        await service.ask(reader, "POST", SESSION, json={"scopes": ["write"]})
    ).status_code == 403
    for token in (
        await service.token(reader),
        await service.token(await service.key(), scopes=["read"]),
    ):
        assert await service.user_of(token) == "dana"
        for route in ROUTES:
            if RULES[route.method, route.path].scope == "write":
                path = route.path.replace("{", "").replace("}", "")
                answer = await service.ask(token, route.method, path)
                assert answer.status_code == 403, route.path
        call = {"arguments": {"content": "tea", "importance": 1, "confidence": 1}}
        tool = "/api/memory/tools/add_to_memory_bank"
        assert (await service.ask(token, "POST", tool, json=call)).status_code == 403


async def test_a_token_stays_in_the_tenant_of_its_key(service: Service) -> None:
    plain = await service.key()
    key = await service.key("admin", org_id="acme")
    token = await service.token(key, shard="acme")
    await service.ask(token, "POST", "/api/memory/store", json={"text": "tea", "memory_id": "m"})
    assert (await service.ask(key, "GET", f"{ITEMS}/m")).is_success
    assert (await service.ask(plain, "GET", f"{ITEMS}/m")).status_code == 404
    for secret, shard in ((key, "beta"), (plain, "acme")):
        answer = await service.ask(secret, "POST", SESSION, json={"shard": shard})
        assert answer.status_code == 403
    assert "acme/" not in base64.b64decode(token.split(".")[1] + "==").decode()


async def test_a_token_makes_no_token(service: Service) -> None:
    token = await service.token(await service.key())
    assert (await service.ask(token, "POST", SESSION)).status_code == 403


async def test_how_long_one_lasts(service: Service) -> None:
    key = await service.key()
    for seconds in (59, DAY_S + 1, "600", 1.5):
        answer = await service.ask(key, "POST", SESSION, json={"seconds": seconds})
        assert answer.status_code == 422
    token, day = await service.token(key, seconds=60), await service.token(key)
    service.world.clock.advance(59)
    assert await service.user_of(token) == "dana"
    service.world.clock.advance(1)
    assert "has expired" in refusal(await service.ask(token, "GET", STATS))
    service.world.clock.advance(DAY_S - 61)
    assert await service.user_of(day) == "dana"
    service.world.clock.advance(1)
    assert "has expired" in refusal(await service.ask(day, "GET", STATS))


async def test_a_token_is_revoked_by_itself_or_by_whoever_shows_it(service: Service) -> None:
    key = await service.key()
    first, second, third = [await service.token(key) for _ in range(3)]
    assert (await service.ask(first, "DELETE", SESSION)).is_success
    assert (await service.ask(key, "DELETE", SESSION, json={"token": second})).is_success
    for token in (first, second):
        assert "was revoked" in refusal(await service.ask(token, "GET", STATS))
    assert await service.user_of(third) == "dana"
    nothing = await service.ask(key, "DELETE", SESSION)
    assert nothing.status_code == 422
    junk = await service.ask(key, "DELETE", SESSION, json={"token": "junk"})
    refusal(junk)


async def test_another_replica_hears_of_it_within_its_cache(service: Service) -> None:
    token = await service.token(await service.key())
    async with client_of(service.world.services) as other:
        headers = {"Authorization": f"Bearer {token}"}
        assert (await other.get(STATS, headers=headers)).is_success
        await service.world.services.session_tokens.end(
            service.world.services.session_tokens.read(token)
        )
        service.world.clock.advance(31)
        assert "was revoked" in refusal(await other.get(STATS, headers=headers))


async def test_a_token_dies_with_its_key(service: Service) -> None:
    token = await service.token(await service.key())
    await service.keys.revoke("app")
    service.world.clock.advance(31)
    sentence = refusal(await service.ask(token, "GET", STATS))
    assert sentence.startswith("The key that made this session token is revoked")


async def test_one_of_another_service_is_told_so(service: Service) -> None:
    other = Service(secret="another secret that is long enough too")
    async with other.http:
        foreign = await other.token(await other.key())
    assert "another service" in refusal(await service.ask(foreign, "GET", STATS))
    assert "not one that a service gave" in refusal(await service.ask("a.b.c", "GET", STATS))


async def test_what_was_changed_is_refused(service: Service) -> None:
    token = await service.token(await service.key("read"))
    head, claims, mark = token.split(".")
    known = json.loads(base64.urlsafe_b64decode(claims + "=="))
    kid = jwt.get_unverified_header(token)["kid"]
    for changed in ({"sub": "noa"}, {"scope": "read write"}, {"exp": known["exp"] + 9}):
        forged = jwt.encode(known | changed, "x" * 40, "HS256", headers={"kid": kid})
        body = forged.split(".")[1]
        for sent in (forged, f"{head}.{body}.{mark}"):
            assert "was changed" in refusal(await service.ask(sent, "GET", STATS))
        service.world.clock.advance(60)  # so that the source may try again
    unsigned = jwt.encode(known, "", "none", headers={"kid": kid})
    for sent in (unsigned, f"{head}.{claims}."):
        assert "was changed" in refusal(await service.ask(sent, "GET", STATS))


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(at=st.integers(0, 1_000), letter=st.sampled_from("AZaz09-_."))
async def test_no_changed_letter_passes(at: int, letter: str) -> None:
    service = Service()
    async with service.http:
        token = await service.token(await service.key())
        place = at % len(token)
        changed = token[:place] + letter + token[place + 1 :]
        answer = await service.ask(changed, "GET", STATS)
        # The last letter of the signature holds bits that decode to nothing.
        signed, _, mark = changed.rpartition(".")
        same = signed == token.rpartition(".")[0] and decoded(mark) == decoded(token.split(".")[2])
        assert answer.is_success == same


def decoded(part: str) -> bytes | None:
    try:
        return jwt.utils.base64url_decode(part)
    except ValueError:
        return None


def test_a_secret_is_made_once_for_all_who_ask(tmp_path: Path) -> None:
    path, found = tmp_path / "data" / "session.secret", []
    threads = [threading.Thread(target=lambda: found.append(kept_secret(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(found[0]) >= 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["session.secret"]


async def test_without_a_setting_replicas_of_a_machine_share_a_secret(tmp_path: Path) -> None:
    auth = {"mode": "keys", "sessions": True}
    tokens = []
    for _ in range(2):
        world = Harness.ready(settings_with(auth=auth, data={"dir": tmp_path}))
        tokens.append(world.services.session_tokens)
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    _, row = await keys.create("app", user_id="dana", scopes=["read"])
    token, said = tokens[0].make(row, "dana", frozenset(), None)
    assert tokens[1].read(token) == said
