"""Collected where a browser is; elsewhere `tests.check` says that it is left out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn

from jobs.build.console import SOURCE, install
from tests.browser import chromium, missing_browser
from tests.serve import HOST, app_of, world_of
from tests.support.harness import Harness
from tests.support.ports import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

collect_ignore_glob = ["test_*.py"] if missing_browser() else []
# Generous: the machine that runs the tests may be busy.
PATIENCE_MS = 40_000
Visit = Callable[..., "Page"]


class Served:
    """The service of `tests.serve`, in a thread of this process."""

    def __init__(self, world: Harness, url: str) -> None:
        self.world, self.url = world, url

    def http(self, user: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"X-User-Id": user}, timeout=60)


@contextmanager
def serving(at_port: int | None = None, **overrides: Any) -> Iterator[Served]:
    """One that runs until the block ends."""
    port, ready = at_port or free_port(), Future[Harness]()
    server: list[uvicorn.Server] = []

    async def run() -> None:
        world = await world_of(**overrides)
        config = uvicorn.Config(
            app_of(world), host=HOST, port=port, log_level="warning", timeout_graceful_shutdown=1
        )
        server.append(uvicorn.Server(config))
        ready.set_result(world)
        await server[0].serve()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    world, url = ready.result(60), f"http://{HOST}:{port}"
    httpx.Client(transport=httpx.HTTPTransport(retries=8)).get(f"{url}/healthz", timeout=60)
    try:
        yield Served(world, url)
    finally:
        server[0].should_exit = True
        thread.join(20)


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one file: while its driver runs, no other test of the process has an event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that looks for what somebody could not read or reach."""
    install(SOURCE)
    return (SOURCE / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """A page of the console for a user: in a language, a theme and a width. What its console calls
    an error fails the test."""
    wrong: list[str] = []
    contexts = []

    def opened(
        url: str, *, user: str, lang: str = "en", theme: str = "light", width: int = 1180
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if theme == "dark" else "light",
            locale="he-IL" if lang == "he" else "en-GB",
            accept_downloads=True,
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        if user:
            context.add_init_script(f"sessionStorage.setItem('acting-for', '{user}')")
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda said: (
                wrong.append(said.text)
                if said.type == "error" and "Failed to load resource" not in said.text
                else None
            ),
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
