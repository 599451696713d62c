"""The console: its files as they are served, and its session in a cookie."""

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from rayapp.api.console_files import FOLDER, built_files
from rayapp.search.rules.knowledge import REASONS
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with

SESSION, ITEMS = "/api/auth/console", "/api/memory/items"
HERE = {"X-Rayapp-Console": "1"}
WORDS = Path(__file__).resolve().parents[3] / "console" / "src" / "words.ts"
# All that a first visit loads, bytes.
MOST_BYTES = 250_000


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(Harness.ready(settings_with()).services) as found:
        yield found


def asset(suffix: str) -> str:
    return next(name for name in built_files() if name.endswith(suffix))


async def test_every_address_is_the_page(http: httpx.AsyncClient) -> None:
    pages = [
        await http.get(path)
        for path in ("/console", "/console/", "/console/memories/m-1", "/console/a/b%2Fc?q=1")
    ]
    assert {page.status_code for page in pages} == {200}
    assert {page.text for page in pages} == {(FOLDER / "index.html").read_text(encoding="utf-8")}
    assert {page.headers["cache-control"] for page in pages} == {"no-cache"}


async def test_a_page_runs_nothing_but_our_files(http: httpx.AsyncClient) -> None:
    page = await http.get("/console")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page.text) == []
    assert page.headers["x-content-type-options"] == "nosniff"
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert all(path.startswith("/console/") for path in loaded)
    assert {(await http.get(path)).status_code for path in loaded} == {200}


async def test_files_with_a_hash_are_kept_and_none_is_sent_twice(http: httpx.AsyncClient) -> None:
    path = f"/console/{asset('.js')}"
    first = await http.get(path, headers={"Accept-Encoding": "identity"})
    assert "immutable" in first.headers["cache-control"]
    again = await http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    packed = await http.get(path, headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == first.content
    assert len(first.content) > 2 * int(packed.headers["content-length"])


async def test_a_file_of_an_older_build_is_not_the_page(http: httpx.AsyncClient) -> None:
    gone = await http.get("/console/assets/index-older.js")
    assert (gone.status_code, gone.json()["code"]) == (404, "route_not_found")
    outside = await http.get("/console/../api/app.py")
    assert "fastapi" not in outside.text


def test_all_of_it_is_small() -> None:
    sent = [one.packed or one.body for one in built_files().values()]
    assert 0 < sum(map(len, sent)) < MOST_BYTES
    assert all(
        gzip.decompress(one.packed) == one.body for one in built_files().values() if one.packed
    )


def test_every_reason_of_silence_has_its_hebrew() -> None:
    words = WORDS.read_text(encoding="utf-8")
    assert [sentence for sentence in REASONS.values() if f'"{sentence}"' not in words] == []


# --- the session


class Console:
    """A service with keys, and a browser at it."""

    def __init__(self, **auth: object) -> None:
        auth = {"mode": "keys", "sessions": True, "session_secret": "s" * 40} | auth
        self.world = Harness.ready(settings_with(auth=auth))
        self.http = client_of(self.world.services)

    async def key(self, *scopes: Scope) -> dict[str, str]:
        keys = ApiKeyService(self.world.services.api_keys, clock=self.world.clock, cache_s=0)
        secret, _ = await keys.create("app", scopes=scopes, user_id="dana", org_id=None)
        return {"Authorization": f"Bearer {secret}"}

    async def signed_in(self, *scopes: Scope) -> httpx.Response:
        answer = await self.http.post(SESSION, headers=HERE | await self.key(*scopes))
        assert answer.is_success, answer.text
        return answer


async def test_a_session_is_in_a_cookie_that_no_script_reads() -> None:
    console = Console()
    answer = await console.signed_in("read", "write", "admin")
    said = answer.json()
    assert (said["user_id"], said["scopes"], said["keys"]) == ("dana", ["read", "write"], True)
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="))
    assert cookie.partition("=")[2].partition(";")[0] not in answer.text
    seen = await console.http.get(SESSION, headers=HERE)
    assert seen.json()["expires_at"] == said["expires_at"]


async def test_a_cookie_counts_only_beside_the_header_of_our_pages() -> None:
    console = Console()
    await console.signed_in("read", "write")
    assert (await console.http.get(ITEMS)).status_code == 401
    assert (await console.http.get(ITEMS, headers=HERE)).status_code == 200
    form = {"Content-Type": "application/json", "Origin": "https://evil.example"}
    forged = await console.http.post("/api/memory/store", headers=form, json={"text": "I was here"})
    assert forged.status_code == 401
    # A key that is sent too is the one that counts.
    wrong = HERE | {"Authorization": "Bearer rk_none"}
    assert (await console.http.get(ITEMS, headers=wrong)).status_code == 401


async def test_signing_out_ends_it_everywhere() -> None:
    console = Console()
    answer = await console.signed_in("read")
    cookie = answer.headers["set-cookie"].partition(";")[0]
    out = await console.http.delete(SESSION, headers=HERE)
    assert "Max-Age=0" in out.headers["set-cookie"]
    kept = await console.http.get(ITEMS, headers=HERE | {"Cookie": cookie})
    assert (kept.status_code, kept.json()["code"]) == (401, "bad_token")


async def test_a_key_is_no_cookie() -> None:
    console = Console()
    secret = (await console.key("read"))["Authorization"].removeprefix("Bearer ")
    answer = await console.http.get(ITEMS, headers=HERE | {"Cookie": f"rayapp_console={secret}"})
    assert answer.status_code == 401


async def test_without_sessions_it_says_what_to_set() -> None:
    console = Console(sessions=False)
    answer = await console.http.post(SESSION, headers=HERE | await console.key("read"))
    assert answer.json()["code"] == "sessions_off"
    seen = await console.http.get(SESSION, headers=HERE | await console.key("read", "admin"))
    assert (seen.json()["scopes"], seen.json()["expires_at"]) == (["admin", "read"], None)


async def test_local_mode_lets_everybody_write(http: httpx.AsyncClient) -> None:
    said = (await http.get(SESSION, headers={"X-User-Id": "noa"})).json()
    assert (said["user_id"], said["keys"]) == ("noa", False)
    assert "write" in said["scopes"]
