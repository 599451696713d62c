"""What a person sees whose script ends with an error of the client: where it asked, what to do."""

import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rayapp.client import RetryPolicy, SyncMemoryClient
from rayapp.core.errors import DependencyDown
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving

MOST_LINES = 10
SYNC = """
from rayapp.client import RetryPolicy, SyncMemoryClient


def main():
    with SyncMemoryClient({url!r}, retry=RetryPolicy(attempts=2, base_s=0.001)) as memory:
        {call}


main()
"""
ASYNC = """
import asyncio

from rayapp.client import MemoryClient, RetryPolicy


async def main():
    async with MemoryClient({url!r}, retry=RetryPolicy(attempts=2, base_s=0.001)) as memory:
        await {call}


asyncio.run(main())
"""
SEARCH = 'memory.search("where does Dana live")'
STREAM = """
import asyncio

from rayapp.client import MemoryClient, RetryPolicy


async def main():
    async with MemoryClient({url!r}, retry=RetryPolicy(attempts=2, base_s=0.001)) as memory:
        async for event in memory.events():
            print(event)


asyncio.run(main())
"""
REFUSALS = {
    401: ("unauthorized", "Send your key as `Authorization: Bearer rk_…`."),
    422: ("invalid_input", "limit must be 1 to 200."),
}


class Refusing(FakeService):
    """Refuses everything with one status."""

    status = 401

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.refuse, methods=["GET", "POST"])])

    async def refuse(self, request: Request) -> Response:
        code, message = REFUSALS[self.status]
        return JSONResponse(
            {"success": False, "error": message, "code": code}, status_code=self.status
        )


def printed(folder: Path, program: str) -> list[str]:
    """What a script prints to the terminal on its way to a failure."""
    script = folder / "script.py"
    script.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()


@pytest.mark.process
@pytest.mark.parametrize("program", [SYNC, ASYNC, STREAM], ids=["sync", "async", "events"])
def test_nobody_answers(tmp_path: Path, program: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    lines = printed(tmp_path, program.format(url=url, call=SEARCH))
    assert len(lines) <= MOST_LINES, lines
    assert "`rayapp " in lines[-1]
    assert any(SEARCH in line or "memory.events()" in line for line in lines)


@pytest.mark.process
@pytest.mark.parametrize("program", [SYNC, ASYNC, STREAM], ids=["sync", "async", "events"])
@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_is_the_sentence_of_the_service(
    tmp_path: Path, program: str, status: int
) -> None:
    service = Refusing()
    service.status = status
    with serving(service):
        lines = printed(tmp_path, program.format(url=service.url, call=SEARCH))
    assert len(lines) <= MOST_LINES, lines
    assert lines[-1].endswith(REFUSALS[status][1])


@pytest.mark.process
@pytest.mark.parametrize("url", ["127.0.0.1:8000", "localhost", "http://[::1", ""])
def test_what_is_no_url_is_said_at_once(tmp_path: Path, url: str) -> None:
    lines = printed(tmp_path, SYNC.format(url=url, call=SEARCH))
    assert len(lines) <= MOST_LINES, lines
    assert lines[-1].endswith("is no address of a service: pass one like http://127.0.0.1:8000.")


@pytest.mark.process
@pytest.mark.parametrize(
    ("more", "last"),
    [
        ("sys.excepthook = lambda *_: print('mine', file=sys.stderr)", "mine"),
        ("raise ValueError('not ours')", "ValueError: not ours"),
    ],
    ids=["a hook of the program", "another error"],
)
def test_what_is_not_ours_stays_as_it_is(tmp_path: Path, more: str, last: str) -> None:
    before = "import sys\nimport rayapp.client\n"
    url = f"http://127.0.0.1:{free_port()}"
    lines = printed(tmp_path, f"{before}{more}\n{SYNC.format(url=url, call=SEARCH)}")
    assert lines[-1] == last


def test_the_calls_of_a_caught_error_are_not_ours() -> None:
    """A program that logs the error shows its own step and one of the client."""
    url = f"http://127.0.0.1:{free_port()}"
    with (
        SyncMemoryClient(url, retry=RetryPolicy(attempts=1)) as memory,
        pytest.raises(DependencyDown) as caught,
    ):
        memory.search("x")
    assert caught.value.__cause__ is None
    assert len(traceback.extract_tb(caught.value.__traceback__)) <= 3
