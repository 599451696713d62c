"""A running stack as tests see it: HTTP, and the processes that tests kill."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.local.stack import stack
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.state import StackState, read_state
from tests.support.ports import free_port

REPLICA = "ServeReplica:rayapp:"
VECTOR_ENGINE = "VectorEngineActor"
SETTLE_S = 60.0
# A job that was asked where it stands has written it by then, seconds.
STACKS_S = 2.0


def started(folder: Path, **overrides: Any) -> RunningService:
    """`rayapp up --wait` with the embedded defaults on a free port."""
    settings = load_settings(
        env={}, overrides={"data": {"dir": str(folder)}, "http": {"port": free_port()}, **overrides}
    )
    waits: list[str] = []
    result = stack.up(settings, on_wait=waits.append)
    return RunningService(folder, result.state.http_url, waits)


def output_of(process: subprocess.Popen[bytes], limit_s: float) -> str:
    """What a job's driver printed until its end. One that hangs is ended, and says where it was."""
    try:
        text, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
        time.sleep(STACKS_S)
        process.kill()
        text, _ = process.communicate()
        raise AssertionError(f"It had not ended after {limit_s:g} s:\n{text.decode()}") from None
    return text.decode()


@dataclass
class RunningService:
    """`user` headers isolate tests from each other. `waits`: what its start waited for."""

    folder: Path
    url: str
    waits: list[str] = field(default_factory=list)

    def client(self, user: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"X-User-Id": user}, timeout=20)

    @property
    def settings(self) -> Settings:
        """What it runs with. This process stays a stranger: no variable of Ray is set here."""
        text = StackPaths.of(self.folder).settings.read_text(encoding="utf-8")
        return Settings.model_validate_json(text)

    def state(self) -> StackState:
        state = read_state(StackPaths.of(self.folder))
        assert state is not None
        return state

    def child(self, name: str) -> psutil.Process:
        """A process that the supervisor started."""
        ref = next(c for c in self.state().children if c.name == name)
        return psutil.Process(ref.pid)

    def actors(self, name: str) -> list[psutil.Process]:
        """Ray processes whose title holds `name`."""
        found = []
        for process in self.child("ray").children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if name in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def kill(self, name: str) -> None:
        """kill -9 of one Ray process by its title."""
        victims = self.actors(name)
        assert victims, f"no process called {name}"
        victims[0].kill()

    def ready(self) -> bool:
        return httpx.get(f"{self.url}/readyz").status_code == 200

    def indexed(self, timeout_s: float = SETTLE_S) -> None:
        """Wait until nothing waits for the index."""

        def done() -> bool:
            with self.client("admin") as http:
                body = http.get("/api/memory/diagnostics").json()
            return bool(body["index"]["pending"] == 0)

        until(done, timeout_s)

    def down(self) -> None:
        stack.down(self.folder)


def until(check: Callable[[], bool], timeout_s: float = SETTLE_S) -> None:
    """Repeat `check` until it holds; a transport error or an odd answer counts as not yet."""
    end = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(httpx.HTTPError, KeyError, ValueError):
            if check():
                return
        assert time.monotonic() < end, f"still not after {timeout_s} s"
        time.sleep(0.1)
