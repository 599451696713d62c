"""No spelling of a path gets past the guard: every operation, in every encoding of its path."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.types import ASGIApp

from rayapp.admin.api_keys import ApiKeyService
from rayapp.api.app import create_api
from rayapp.core.settings.load import load_settings
from tests.spelling import SPELLINGS
from tests.support.harness import Harness

REFUSED = {400, 401, 404, 405}
# With a key, what is spelled otherwise may be the name of another memory, or no name at all.
REFUSED_BY_NAME = REFUSED | {409, 422}
# A stream goes on for as long as the clock of the fakes stands still.
STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Asked:
    """One operation of the API document, with its example."""

    method: str
    path: str
    body: bytes
    public: bool
    stream: bool


def operations(document: dict[str, Any]) -> Iterator[Asked]:
    for template, item in document["paths"].items():
        for method, one in item.items():
            path = template
            for parameter in one["parameters"]:
                if parameter["in"] == "path":
                    path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
            content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
            yield Asked(
                method.upper(),
                path,
                json.dumps(content["example"]).encode() if content else b"",
                public=one["security"] == [],
                stream=any(
                    STREAM in found.get("content", {}) for found in one["responses"].values()
                ),
            )


ALL = list(operations(create_api(None).openapi()))


async def answered(
    app: ASGIApp, method: str, target: str, *, key: str | None = None, body: bytes = b""
) -> tuple[int, bytes]:
    """Status and body of the answer to a request line with `target` as it stands.

    Clients tidy a path up before they send it; this hands it on as the HTTP server does.
    """
    raw, _, query = target.partition("?")
    headers = [(b"host", b"127.0.0.1:8000")]
    if body:
        headers += [(b"content-type", b"application/json")]
    if key is not None:
        headers += [(b"authorization", f"Bearer {key}".encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8_000),
    }
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if not waiting:
            await asyncio.Event().wait()  # the caller stays for its answer
        return waiting.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    whole = b"".join(one.get("body", b"") for one in sent[1:])
    return int(sent[0]["status"]), whole


async def locked() -> tuple[ASGIApp, str]:
    """An application that asks for keys, and a key for everything."""
    settings = load_settings(
        env={},
        overrides={
            "auth": {"mode": "keys"},
            "rate_limit": {"burst": 10_000, "per_second": 10_000.0},
        },
    )
    world = Harness.ready(settings)
    keys = ApiKeyService(world.services.api_keys, clock=world.clock, cache_s=0)
    secret, _ = await keys.create("tests", user_id=None, scopes=("admin",))
    return create_api(world.services), secret


def test_every_operation_is_asked_in_more_than_twenty_spellings() -> None:
    assert len(ALL) > 120
    assert len(SPELLINGS) >= 20
    assert len({spell("/api/memory/stats") for spell in SPELLINGS.values()}) == len(SPELLINGS)


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
async def test_without_a_key_no_spelling_reaches_a_handler(spell: Callable[[str], str]) -> None:
    app, _ = await locked()
    for one in ALL:
        status, body = await answered(app, one.method, spell(one.path), body=one.body)
        if one.public and status == 200:
            assert (status, body) == await answered(app, one.method, one.path)
        else:
            assert status in REFUSED, f"{one.method} {spell(one.path)} answers {status}: {body!r}"


@pytest.fixture(scope="module")
async def plain() -> Mapping[tuple[str, str], int]:
    """What each operation answers to its own path."""
    app, key = await locked()
    return {
        (one.method, one.path): (await answered(app, one.method, one.path, key=key, body=one.body))[
            0
        ]
        for one in ALL
        if not one.stream
    }


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
async def test_with_a_key_a_spelling_is_the_plain_route_or_none(
    spell: Callable[[str], str], plain: Mapping[tuple[str, str], int]
) -> None:
    app, key = await locked()
    for one in ALL:
        if one.stream:
            continue
        expected = plain[one.method, one.path]
        status, body = await answered(app, one.method, spell(one.path), key=key, body=one.body)
        same = status == expected or status // 100 == expected // 100 == 2
        assert same or status in REFUSED_BY_NAME, (
            f"{one.method} {spell(one.path)} answers {status}: {body!r}"
        )


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/static-offline-docs/x.js"])
async def test_no_spelling_of_a_page_is_a_defect(spell: Callable[[str], str], path: str) -> None:
    app, _ = await locked()
    status, body = await answered(app, "GET", spell(path))
    assert status in {200, 307, *REFUSED}, f"{spell(path)} answers {status}: {body!r}"
