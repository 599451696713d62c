"""Request ids, limits, disconnects, and answers when something breaks."""

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rayapp.api import middleware
from rayapp.api.app import create_api
from tests.support.asgi import posted
from tests.support.harness import Harness
from tests.unit.api.serving import client_of, settings_with
from tests.unit.api.test_idempotency import Gated
from tests.unit.api.test_search import SEARCH, Slow

STORE = "/api/memory/store"


class Broken:
    """Statistics with a defect."""

    async def tiers(self, scope: object) -> list[object]:
        raise KeyError("a secret detail")


@pytest.mark.parametrize("given", ["abc-1.2_3", "x" * 128])
async def test_a_good_request_id_is_echoed(api: httpx.AsyncClient, given: str) -> None:
    response = await api.get("/healthz", headers={"X-Request-Id": given})
    assert response.headers.get_list("X-Request-Id") == [given]


@pytest.mark.parametrize("given", ["a b", "", "x" * 129, "a\tb", "é"])
async def test_another_request_id_is_replaced(api: httpx.AsyncClient, given: str) -> None:
    headers = {b"X-Request-Id": given.encode("latin-1")}
    response = await api.get("/api/memory/stats", headers=headers)
    assert response.headers["X-Request-Id"] != given
    assert len(response.headers["X-Request-Id"]) == 32


async def test_a_body_that_is_not_utf_8_is_refused_as_such(api: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    for body in (gzip.compress(b'{"text": "tea"}'), '{"text": "caf\u00e9"}'.encode("latin-1")):
        answer = await api.post(STORE, content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed_json")
        assert "not UTF-8" in answer.json()["error"]


async def test_errors_carry_the_request_id_too(api: httpx.AsyncClient) -> None:
    for path in ("/nope", "/api/memory/items/gone"):
        response = await api.get(path, headers={"X-Request-Id": "r-1"})
        assert (response.status_code, response.headers["X-Request-Id"]) == (404, "r-1")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/memory/nope", 404, "route_not_found"),
        ("GET", "/api/memory/search/", 404, "route_not_found"),
        ("PUT", STORE, 405, "method_not_allowed"),
        ("OPTIONS", STORE, 405, "method_not_allowed"),
        ("DELETE", SEARCH, 405, "method_not_allowed"),
    ],
)
async def test_unknown_routes_and_methods_have_the_error_shape(
    api: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    response = await api.request(method, path)
    body = response.json()
    assert (response.status_code, body["code"], body["success"]) == (status, code, False)
    assert ("Allow" in response.headers) == (status == 405)


async def test_head_is_guarded_like_get(api: httpx.AsyncClient) -> None:
    assert (await api.head("/api/memory/stats")).status_code == 200
    world = Harness.ready(settings_with(auth={"mode": "keys"}))
    async with client_of(world.services) as locked:
        assert (await locked.head("/api/memory/stats")).status_code == 401


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 201),
        ("Application/JSON; charset=utf-8", 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ],
)
async def test_only_json_posts(api: httpx.AsyncClient, kind: str, status: int) -> None:
    headers = {"Content-Type": kind} if kind else {}
    response = await api.post(STORE, content=b'{"text": "tea"}', headers=headers)
    assert response.status_code == status


async def test_an_unexpected_exception_shows_an_id_and_no_detail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Harness.ready(statistics=Broken())
    async with client_of(world.services, {"X-Request-Id": "r-7"}) as api:
        with caplog.at_level(logging.ERROR):
            response = await api.get("/api/memory/stats")
    body = response.json()
    assert (response.status_code, body["code"]) == (500, "internal")
    assert body["error"] == "Internal error, request id r-7."
    assert "secret" not in response.text
    assert "r-7" in caplog.text


class TestBodyLimit:
    LIMIT = 2_048

    @pytest.fixture
    def small(self) -> Harness:
        limits = {"body_limit_bytes": self.LIMIT, "batch_body_limit_bytes": 2 * self.LIMIT}
        return Harness.ready(settings_with(http=limits))

    async def test_the_batch_has_its_own_limit(self, small: Harness) -> None:
        text = "x" * self.LIMIT
        async with client_of(small.services) as api:
            response = await api.post(STORE, json={"text": text})
            assert (response.status_code, response.json()["code"]) == (413, "too_large")
            batch = await api.post(f"{STORE}/batch", json={"items": [{"text": text}]})
            assert batch.json()["results"][0]["status"] == "stored"
            batch = await api.post(f"{STORE}/batch", json={"items": [{"text": text * 2}]})
            assert batch.status_code == 413

    async def test_a_long_body_is_not_read_to_its_end(self, small: Harness) -> None:
        sent = 0

        async def long() -> AsyncIterator[bytes]:
            # Bounded, so that a limit that fails is a failed test and not a full machine.
            nonlocal sent
            for _ in range(64):
                sent += 1
                yield b" " * 512

        async with client_of(small.services, {"Content-Type": "application/json"}) as api:
            response = await api.post(STORE, content=long())
        assert response.status_code == 413
        assert sent <= self.LIMIT // 512 + 2

    async def test_a_declared_length_is_refused_before_reading(self, small: Harness) -> None:
        connection = Connection(STORE, b"{}", length=self.LIMIT + 1)
        app = create_api(small.services)
        await app(connection.scope, connection.receive, connection.send)
        assert connection.sent[0]["status"] == 413
        assert not connection.was_read


async def test_above_the_in_flight_limit_the_answer_is_429_at_once() -> None:
    slow = Slow()
    world = Harness.ready(settings_with(http={"max_in_flight": 1}), search=slow)
    async with client_of(world.services) as api:
        held = asyncio.create_task(api.post(SEARCH, json={"query": "tea"}))
        await slow.began.wait()
        response = await api.get("/api/memory/stats")
        assert (response.status_code, response.json()["code"]) == (429, "overloaded")
        assert response.headers["Retry-After"] == "1"
        assert (await api.get("/healthz")).status_code == 200
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)
        assert (await api.get("/api/memory/stats")).status_code == 200


async def test_many_refusals_are_held_and_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "AT_ONCE_PER_S", 1.0)
    slow = Slow()
    world = Harness.ready(settings_with(http={"max_in_flight": 1}), search=slow)
    async with client_of(world.services) as api:
        working = asyncio.create_task(api.post(SEARCH, json={"query": "tea"}))
        await slow.began.wait()
        assert (await api.get("/api/memory/stats")).status_code == 429
        waiting = asyncio.create_task(api.get("/api/memory/stats"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        # The one that is held is not in work: who comes now is served before it is refused.
        assert (await api.get("/api/memory/stats")).status_code == 200
        assert not waiting.done()
        assert (await waiting).json()["code"] == "overloaded"


class Connection:
    """One request whose caller goes away when a test says so; plain ASGI."""

    def __init__(self, path: str, body: bytes, length: int | None = None) -> None:
        self.gone = asyncio.Event()
        self.sent: list[Any] = []
        self._body = [{"type": "http.request", "body": body, "more_body": False}]
        self.scope = posted(path, len(body) if length is None else length)

    @property
    def was_read(self) -> bool:
        return not self._body

    async def receive(self) -> Any:
        if self._body:
            return self._body.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def left(connection: Connection, world: Harness, began: asyncio.Event) -> asyncio.Task[None]:
    """The request, whose caller went away when it began."""
    app = create_api(world.services)
    serving = asyncio.create_task(app(connection.scope, connection.receive, connection.send))
    await began.wait()
    connection.gone.set()
    return serving


async def test_a_caller_that_goes_away_cancels_its_search() -> None:
    slow = Slow()
    world = Harness.ready(search=slow)
    connection = Connection(SEARCH, b'{"query": "tea"}')
    serving = await left(connection, world, slow.began)
    await asyncio.wait_for(serving, 1)
    assert slow.cancelled.is_set()
    assert connection.sent == []
    labels = (("route", SEARCH), ("status", "499"))
    assert world.metrics.counters["http_requests", labels] == 1


async def test_a_write_is_finished_although_its_caller_went_away() -> None:
    gated = Gated()
    world = Harness.ready(memories=gated)
    connection = Connection(STORE, b'{"text": "tea"}')
    serving = await left(connection, world, gated.began)
    await asyncio.sleep(0.01)
    gated.open.set()
    await asyncio.wait_for(serving, 1)
    assert connection.sent[0]["status"] == 201


async def test_a_caller_that_leaves_with_its_answer_cancels_nothing(world: Harness) -> None:
    connection = Connection(SEARCH, b'{"query": "tea"}')

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            connection.gone.set()
            await asyncio.sleep(0.01)
        connection.sent.append(message)

    await create_api(world.services)(connection.scope, connection.receive, send)
    assert [one["type"] for one in connection.sent] == ["http.response.start", "http.response.body"]


async def test_requests_are_measured_by_template(api: httpx.AsyncClient, world: Harness) -> None:
    await api.get("/api/memory/items/a")
    await api.get("/api/memory/items/b")
    labels = (("route", "/api/memory/items/{memory_id}"), ("status", "404"))
    assert world.metrics.counters["http_requests", labels] == 2
    assert len(world.metrics.samples_of("http_latency_s")) == 2
