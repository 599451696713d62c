"""`python -m tests.serve`: the API and the real services over in-memory stores, to try a change.

No Ray, no servers, ready in seconds. What is stored is embedded by the bundled model and gone when
the process ends; a bulk job is stored and not run. Only this machine is served.
"""

import argparse
import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI

from rayapp.api.app import create_api
from rayapp.container import bootstrap
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from tests.support.harness import Harness
from tests.support.stores.told import ToldChanges

HOST = "127.0.0.1"
# How long the background work rests when there was none, seconds.
PAUSE_S = 0.1
TRY = """\
The service is at {url} until Ctrl-C; nothing is kept.
Its console: {url}/console, its reference: {url}/docs
curl -s {url}/api/memory/store -H 'Content-Type: application/json' \
-d '{{"text": "Dana parks on the second floor", "tier": "history"}}'
curl -s {url}/api/memory/search -H 'Content-Type: application/json' \
-d '{{"query": "where does Dana park?", "conversation_id": "c1"}}'
curl -s {url}/api/memory/outcomes -H 'Content-Type: application/json' \
-d '{{"conversation_id": "c1", "positions": [1], "outcome": "worked"}}'"""


async def world_of(**overrides: Any) -> Harness:
    """As a stack of its own has it, where that needs no server: clock and reranker are real."""
    world = Harness(load_settings("local", env={}, overrides=overrides), SystemClock())
    world.reranker.inner = bootstrap.rerank_service(world.settings, world.metrics)
    return await world.opened()


async def again_and_again(run_once: Callable[[], Awaitable[int]]) -> None:
    while True:
        if not await run_once():
            await asyncio.sleep(PAUSE_S)


def app_of(world: Harness) -> FastAPI:
    """The application, and beside it what indexer and maintenance do in replicas of their own."""

    @asynccontextmanager
    async def beside(_app: FastAPI) -> AsyncIterator[None]:
        encoding = world.container.encoding
        works = (
            *(() if encoding is None else (encoding.run_once,)),
            world.indexing.run_once,
            world.maintenance.drain,
            world.container.book_work.run_once,
            world.container.understanding.run_once,
            ToldChanges(world).run_once,
        )
        tasks = [asyncio.create_task(again_and_again(work)) for work in works]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = create_api(world.services)
    app.router.lifespan_context = beside
    return app


class Server(uvicorn.Server):
    """Says what to try once it answers."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            print(TRY.format(url=f"http://{HOST}:{port}"), flush=True)


async def serve(port: int) -> None:
    app = app_of(await world_of())
    await Server(uvicorn.Config(app, host=HOST, port=port, log_level="warning")).serve()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.serve", description=__doc__)
    parser.add_argument("--port", type=int, default=8100, help="0: any free one")
    logging.basicConfig(level=logging.INFO)
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
