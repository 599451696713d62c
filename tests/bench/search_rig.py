"""The search request in one process: the HTTP application on a real mongod and a real engine.

What Ray, the proxy and the sockets add is not in here; `tests.bench.load` measures the whole.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
    register,
)

from rayapp.api.app import create_api
from rayapp.api.services import Services
from rayapp.container import bootstrap
from rayapp.container.services import Container
from rayapp.core.errors import DependencyDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.index.service import IndexingService
from rayapp.storage.qdrant.edge_engine import EdgeEngine
from tests.support.asgi import posted
from tests.support.engine_container import container_on
from tests.support.mongo_server import MongoServer

MONGO_FOLDER, ENGINE_FOLDER = "mongo", "engine"
PORT_FILE = "port"
# Commands that the driver sends by itself.
DRIVER_COMMANDS = frozenset({"hello", "ismaster", "ping", "endSessions", "buildInfo"})


class Commands(CommandListener):
    """Counts what is sent to MongoDB; registered once for every client made afterwards."""

    def __init__(self) -> None:
        self.counting = False
        self.names: list[str] = []
        self.kept: list[dict[str, Any]] = []

    def started(self, event: CommandStartedEvent) -> None:
        if self.counting and event.command_name not in DRIVER_COMMANDS:
            self.names.append(event.command_name)
            self.kept.append(dict(event.command))

    def succeeded(self, event: CommandSucceededEvent) -> None:
        return None

    def failed(self, event: CommandFailedEvent) -> None:
        return None

    def clear(self) -> None:
        self.names.clear()
        self.kept.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRig:
    """`api` is the application as the ingress mounts it."""

    api: FastAPI
    services: Services
    container: Container
    engine: EdgeEngine
    indexing: IndexingService
    mongo: MongoServer
    commands: Commands

    async def post(self, path: str, body: bytes, user_id: str) -> tuple[int, bytes]:
        """One request through the application, without a socket."""
        sent: list[dict[str, Any]] = []
        asked = False
        waiting = _Never()

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await waiting
            asked = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.api(posted(path, len(body), [(b"x-user-id", user_id.encode())]), receive, send)
        return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:])

    async def settle(self) -> None:
        """Until nothing waits for the index."""
        while await self.indexing.run_once():
            pass
        await self.container.index.rebuilt()
        await self.container.watch.look(self.container.index, self.container.stores.items)


class _Never:
    """Waits until it is cancelled: a caller that stays connected."""

    def __await__(self) -> Any:
        return asyncio.get_running_loop().create_future().__await__()


@contextlib.asynccontextmanager
async def search_rig(keep: Path | None) -> AsyncIterator[SearchRig]:
    """Started servers and the application; what `keep` holds from an earlier run is used again."""
    commands = Commands()
    register(commands)
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rayapp-")))
        (folder / MONGO_FOLDER).mkdir(parents=True, exist_ok=True)
        mongo = MongoServer(folder / MONGO_FOLDER)
        # A replica set knows itself by its address: data that is used again keeps its port.
        port = folder / PORT_FILE
        mongo.port = int(port.read_text(encoding="ascii")) if port.exists() else mongo.port
        port.write_text(str(mongo.port), encoding="ascii")
        mongo.start()
        stack.callback(mongo.stop)
        settings = load_settings(
            env={}, overrides={"mongo": mongo.settings("search-rig").model_dump()}
        )
        engine = EdgeEngine(folder / ENGINE_FOLDER, settings.qdrant.alias)
        stack.callback(engine.close)
        rig = await _rig(settings, engine, mongo, commands)
        yield rig
        await rig.container.flush()


async def _rig(
    settings: Settings, engine: EdgeEngine, mongo: MongoServer, commands: Commands
) -> SearchRig:
    metrics = InMemoryMetrics()
    embedder = bootstrap.embedding_service(settings, metrics)
    container = await container_on(engine, settings, embedder, metrics)
    services = container.services()
    return SearchRig(
        api=create_api(services),
        services=services,
        container=container,
        engine=engine,
        indexing=container.indexing,
        mongo=mongo,
        commands=commands,
    )


async def fill(rig: SearchRig, batches: list[tuple[str, list[str]]]) -> None:
    """Store the texts of each user and index them."""
    for user_id, texts in batches:
        items = [{"text": text, "tier": "history"} for text in texts]
        status, answer = await rig.post(
            "/api/memory/store/batch", orjson.dumps({"items": items}), user_id
        )
        if status not in (200, 201):
            raise DependencyDown(
                f"The store answered a batch with {status}: read the log above.",
                details={"answer": answer[:300].decode(errors="replace")},
            )
    await rig.settle()
