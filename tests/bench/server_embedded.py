"""The embedded engine in a process of its own, behind its socket: the yardstick of the server."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rayapp.core.settings.model import QdrantSettings
from rayapp.serve.engine_socket import SocketClient, SocketServer
from rayapp.storage.qdrant.edge import QdrantEdgeIndex
from rayapp.storage.qdrant.edge_engine import EdgeEngine

ALIAS = "memories"
STOP_LIMIT_S = 10.0
START_LIMIT_S = 60.0
CLOSE_S = 0.2  # the connection ends by itself before the event loop does


class DoorTransport:
    """As the service reaches the engine of its machine, without Ray around it."""

    def __init__(self, door: SocketClient) -> None:
        self._door = door

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any:
        async with asyncio.timeout(timeout_s):
            return await self._door.call(method, args, timeout_s)

    async def close(self) -> None:
        await self._door.close()


@dataclass(frozen=True, slots=True)
class Embedded:
    index: QdrantEdgeIndex
    pid: int


@asynccontextmanager
async def embedded(folder: Path, settings: QdrantSettings) -> AsyncIterator[Embedded]:
    """The engine's process is ended afterwards."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(str(folder), theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        path = await asyncio.wait_for(asyncio.to_thread(ours.recv), START_LIMIT_S)
        index = QdrantEdgeIndex(DoorTransport(await SocketClient.to(path)), settings)
        try:
            yield Embedded(index, process.pid or 0)
        finally:
            await index.close()
    finally:
        ours.close()
        # Not in this thread: the loop still has to close the socket.
        await asyncio.to_thread(process.join, STOP_LIMIT_S)
        if process.is_alive():
            process.kill()


def _serve(folder: str, pipe: Connection) -> None:
    asyncio.run(_answer(Path(folder), pipe))


async def _answer(folder: Path, pipe: Connection) -> None:
    engine = EdgeEngine(folder, ALIAS)

    async def handle(operation: str, args: tuple[Any, ...], timeout_s: float) -> Any:
        return engine.call(operation, args)

    door = SocketServer(handle)
    pipe.send(await door.open())
    # Ends when the other side closes the pipe, or is gone.
    await asyncio.to_thread(_closed, pipe)
    await asyncio.sleep(CLOSE_S)
    await door.close()
    engine.close()


def _closed(pipe: Connection) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        return
