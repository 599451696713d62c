"""A unix socket into the process of the vector engine, for callers on the same machine.

A call of a Ray actor costs two milliseconds of processor time on both sides together, more than
the engine needs to answer a search (our benchmark, decision 0032); a frame through a socket costs
a tenth of that. Ray still finds, starts and restarts the actor, and carries calls from other nodes.

A frame is its length, 4 bytes, and a pickle. The socket lies in a folder that only its owner may
enter, as the tokens of the cluster do: whoever may write to it could submit any job anyway.
"""

import asyncio
import contextlib
import itertools
import pickle
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Self

from rayapp.core.errors import RayappError
from rayapp.core.own_folder import own_folder

# What the engine runs: (operation, arguments, seconds that its caller waits).
Handler = Callable[[str, tuple[Any, ...], float], Awaitable[Any]]

LENGTH: Final = struct.Struct("!I")
# Read in one go: a search and its answer fit many times.
BUFFER_BYTES: Final = 256 * 1024
SOCKET_NAME: Final = "engine"
# Calls at once over all connections; further ones wait in their order.
MAX_CALLS: Final = 256


class SocketClosedError(Exception):
    """The process behind the socket is gone, or was never on this machine."""


class SocketServer:
    """Answers frames with what `handler` returns or raises."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._folder: Path | None = None
        self._owned = contextlib.ExitStack()
        self._running: set[asyncio.Task[None]] = set()
        self._calls = asyncio.Semaphore(MAX_CALLS)

    async def open(self) -> str:
        """The path of the socket; opened by the first call, and anew when somebody removed it."""
        if self._folder is None or not (self._folder / SOCKET_NAME).exists():
            await self.close()
            # Not in the data directory: the path of a socket has at most 107 bytes.
            folder = self._owned.enter_context(own_folder("rayapp-engine-"))
            self._server = await asyncio.start_unix_server(
                self._serve, folder / SOCKET_NAME, limit=BUFFER_BYTES
            )
            self._folder = folder
        return str(self._folder / SOCKET_NAME)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._running:
            task.cancel()
        self._owned.close()
        self._server = self._folder = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _frame(reader)
                task = asyncio.create_task(self._answer(frame, writer))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        writer.close()

    async def _answer(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        number, operation, args, timeout_s = pickle.loads(frame)
        try:
            async with self._calls:
                answer = _pack((number, None, await self._handler(operation, args, timeout_s)))
        except RayappError as raised:
            answer = _pack((number, raised, None))
        except Exception as raised:  # noqa: BLE001 - the caller is told, as Ray tells of a task
            answer = _pack((number, f"{type(raised).__name__}: {raised}", None))
        with contextlib.suppress(ConnectionError):
            writer.write(answer)
            await writer.drain()


class SocketClient:
    """The other end: many calls at once over one connection of one event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._loop = asyncio.get_running_loop()
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def to(cls, path: str) -> Self:
        """Raises SocketClosedError when nobody listens there."""
        try:
            return cls(*await asyncio.open_unix_connection(path, limit=BUFFER_BYTES))
        except OSError as error:
            raise SocketClosedError(str(error)) from error

    @property
    def is_open(self) -> bool:
        """Whether the running loop may still use it."""
        return not self._reading.done() and self._loop is asyncio.get_running_loop()

    async def call(self, operation: str, args: tuple[Any, ...], timeout_s: float) -> Any:
        """Raises what the other side raises, and SocketClosedError when it went away."""
        number = next(self._numbers)
        answer = self._waiting[number] = self._loop.create_future()
        try:
            self._writer.write(_pack((number, operation, args, timeout_s)))
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                number, error, value = pickle.loads(await _frame(reader))
                answer = self._waiting.get(number)
                if answer is None or answer.done():
                    continue  # its caller did not wait any longer
                if error is None:
                    answer.set_result(value)
                else:
                    known = isinstance(error, RayappError)
                    answer.set_exception(error if known else SocketClosedError(str(error)))
        except (asyncio.IncompleteReadError, ConnectionError) as lost:
            self._end(str(lost))
        except BaseException:
            self._end("The connection was closed.")
            raise

    def _end(self, reason: str) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(SocketClosedError(reason))


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return await reader.readexactly(length)


def _pack(value: Any) -> bytes:
    frame = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(frame)) + frame
