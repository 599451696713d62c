"""What the fault table counts, and what ends it with a 3."""

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.bench import fault_load
from tests.bench.fault_load import CALM_S, Ended, FaultLoad, Kind, Seen, Verdict, missing, one_call
from tests.bench.faults import FAULTS, FURTHER, USUAL, main, misses, parser, table
from tests.bench.wire import Connection
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving

ENOUGH = 8  # memories


class Forgetful(FakeService):
    """Reads what was stored, but for one id; says when it has enough."""

    forgotten = "m1"
    enough: Callable[[], None] = staticmethod(lambda: None)

    def put(self, user: str, item: dict[str, Any]) -> dict[str, Any]:
        answer = super().put(user, item)
        if len(self.users[user]) == ENOUGH:
            self.enough()
        return answer

    def app(self) -> Starlette:
        made = super().app()
        made.routes.append(Route("/api/memory/items/{memory_id}", self.item))
        return made

    async def item(self, request: Request) -> Response:
        name = request.path_params["memory_id"]
        known = name in self.users.get(request.headers["X-User-Id"], {})
        return JSONResponse({}, 200 if known and name != self.forgotten else 404)


@pytest.fixture
def service() -> Iterator[Forgetful]:
    with serving(Forgetful()) as started:
        assert isinstance(started, Forgetful)
        yield started


def ended(how: str, begun: float, *, kind: Kind = "search", retry: bool = False) -> Ended:
    return Ended(kind, how, begun, begun + 0.5, retry)


def a_row(**changes: Any) -> dict[str, Any]:
    row = {
        "kind": "haproxy",
        "calls": 100,
        "acknowledged": 30,
        "failed": {"503": 2},
        "bare": 0,
        "first_s": 0.1,
        "last_s": 4.0,
        "missing": 0,
        "bar_s": 10.0,
        "load_average": [1.0, 1.5],
    }
    return row | changes


def test_a_verdict_counts_from_the_kill() -> None:
    calls = [
        ended("201", 9.0, kind="store"),
        ended("refused", 10.25),
        ended("503", 11.0, retry=True),
        ended("503", 12.0),
        ended("200", 13.0),
        ended("200", 14.0, kind="store"),
    ]
    assert Verdict.of(Seen(calls, ["a"]), killed_at=10.0) == Verdict(
        calls=6,
        acknowledged=1,
        failed={"200": 1, "503": 2, "refused": 1},
        bare=1,
        first_s=0.25,
        last_s=4.5,
    )
    assert Verdict.of(Seen([ended("200", 1.0)]), 0.0).last_s is None


def test_a_load_is_calm_when_calls_succeed_again() -> None:
    failed, good = ended("refused", 0.0), ended("200", 5.0)
    assert not Seen([failed, good]).calm(now=CALM_S)
    assert Seen([failed, good]).calm(now=CALM_S + 1.0)
    assert not Seen([failed, good]).calm(now=3 * CALM_S), "nothing was answered since"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"bar_s": None, "last_s": 900.0}, []),
        ({"failed": {}, "last_s": None, "bar_s": 0.0}, []),
        ({"missing": 3}, ["haproxy: 3 acknowledged memories are missing."]),
        ({"failed": {"404": 1, "503": 1}}, ["haproxy: 404 on routes that exist."]),
        ({"bare": 2}, ["haproxy: 2 answers 503 without Retry-After."]),
        ({"last_s": 10.5}, ["haproxy: calls failed until 10.5 s after the kill, above 10."]),
    ],
)
def test_what_a_row_may_not_have(changes: dict[str, Any], said: list[str]) -> None:
    assert list(misses(a_row(**changes))) == said


def test_the_table_has_what_the_acceptance_asks_for() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(table([a_row(), a_row(kind="indexer", failed={}, first_s=None, last_s=None)]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for part in ("503: 2", "4.0", "0 of 30", "indexer", "none"):
        assert part in text


def test_seven_kinds_by_default_and_a_wrong_one_is_refused() -> None:
    assert len(USUAL) == 7
    assert FAULTS.keys() == USUAL.keys() | FURTHER.keys()
    assert parser().parse_args([]).kind is None
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(["--kind", "cosmic_rays"])


def test_a_folder_without_a_stack_is_said(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path)]) == 2
    assert "No stack runs" in capsys.readouterr().err


async def test_a_load_knows_what_was_acknowledged_and_what_is_missing(service: Forgetful) -> None:
    load = FaultLoad(service.url, "u")
    service.enough = load.stop
    await load.run()
    assert service.searches
    assert load.seen.failures == []
    assert set(load.seen.acknowledged) == set(service.users["u"])
    assert await missing(service.url, "u", load.seen.acknowledged) == ["m1"]


async def test_every_way_a_call_can_end(
    service: Forgetful, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def how(url: str, path: str = "/api/memory/search") -> tuple[str, bool]:
        connection = Connection(url)
        try:
            call, _ = await one_call(connection, "search", "POST", path, b'{"query":"x"}', "u")
        finally:
            connection.close()
        return call.how, call.retry_after

    assert await how(service.url) == ("200", False)
    service.shed["/api/memory/search"] = 1
    assert await how(service.url) == ("503", True)
    assert await how(service.url, "/none") == ("404", False)
    assert await how(f"http://127.0.0.1:{free_port()}") == ("refused", False)

    async def shut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr(fault_load, "CALL_TIMEOUT_S", 0.2)
    for answer, expected in ((shut, "reset"), (silent, "timeout")):
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert await how(f"http://127.0.0.1:{port}") == (expected, False)
        server.close()
