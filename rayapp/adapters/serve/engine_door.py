"""A local socket beside the engine's actor, for the one call that every search makes.

An actor call passes four threads and two object stores; on one machine a socket carries the same
question in a tenth of the time. It is a short cut and nothing depends on it: whatever goes wrong
with it, the call goes to the actor, which is also who opens it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol

from rayapp.errors import IndexDown, RayappError

logger = logging.getLogger(__name__)

SOCKET_NAME: Final = "engine.sock"
# Longer paths are no socket's name (Linux: 108 bytes with the final zero).
PATH_BYTES: Final = 107
HEAD_BYTES: Final = 4
# A question is 2 KB and an answer 20; a longer frame is not one of ours.
FRAME_BYTES: Final = 16 << 20
# After a failure the actor is called for so long before the door is tried again, seconds.
CLOSED_S: Final = 1.0
# Calls that go through the door: short reads. Everything else is not worth a second way.
THROUGH_DOOR: Final = frozenset({"query"})

Answering = Callable[[str, tuple[Any, ...]], Awaitable[Any]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Inner(Protocol):
    """The transport that always works."""

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any: ...
    async def close(self) -> None: ...


def door_path(folder: Path) -> Path | None:
    """Where the door of an engine's folder is; None when that is too long for a socket."""
    path = folder / SOCKET_NAME
    return path if len(os.fsencode(path)) <= PATH_BYTES else None


class EngineDoor:
    """The actor's side. Who may open the socket's file may ask the engine: its owner alone."""

    def __init__(self, folder: Path, answer: Answering) -> None:
        self._path = door_path(folder)
        self._answer = answer
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Never raises: without a door all calls come through the actor."""
        if self._path is None or self._server is not None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)  # of an actor that was killed
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            os.fchmod(listening.fileno(), 0o600)  # the file gets this mode the moment it is there
            listening.bind(os.fsencode(self._path))
            self._server = await asyncio.start_unix_server(self._serve, sock=listening)
        except OSError as error:
            logger.warning("no local door to the vector engine: %s", error)

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One question after the other until the caller hangs up."""
        with contextlib.suppress(OSError, EOFError):
            try:
                while True:
                    method, args = await _read(reader)
                    _write(writer, await self._result(method, args))
                    await writer.drain()
            finally:
                writer.close()

    async def _result(self, method: str, args: tuple[Any, ...]) -> tuple[bool, Any]:
        if method not in THROUGH_DOOR:
            return False, IndexDown(f"The door of the vector engine does not take {method!r}.")
        try:
            return True, await self._answer(method, args)
        except RayappError as error:
            return False, error
        except Exception as error:  # the caller hears of a bug as it would from the actor
            logger.exception("a call through the door broke")
            return False, IndexDown("The vector engine broke.", details={"error": str(error)[:500]})


class DoorTransport:
    """Asks through the door where there is one, else `inner`. A connection carries one call."""

    def __init__(self, inner: Inner, folder: Path) -> None:
        self._inner = inner
        self._path = door_path(folder)
        self._idle: list[Streams] = []
        self._closed_until = 0.0

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any:
        if method not in THROUGH_DOOR or self._path is None or self._is_closed():
            return await self._inner.call(method, *args, timeout_s=timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                fine, value = await self._ask(self._path, method, args)
        except TimeoutError:
            raise IndexDown(
                f"The vector engine gave no answer within {timeout_s:g} s; try again shortly."
            ) from None
        except (OSError, EOFError):
            # Restarted, on another machine, or not called yet: the actor is, and opens the door.
            self._hang_up()
            self._closed_until = time.monotonic() + CLOSED_S
            return await self._inner.call(method, *args, timeout_s=timeout_s)
        if not fine:
            raise value
        return value

    async def close(self) -> None:
        self._hang_up()
        await self._inner.close()

    def _is_closed(self) -> bool:
        return time.monotonic() < self._closed_until

    def _hang_up(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    async def _ask(self, path: Path, method: str, args: tuple[Any, ...]) -> tuple[bool, Any]:
        reader, writer = (
            self._idle.pop() if self._idle else await asyncio.open_unix_connection(path)
        )
        answered = False
        try:
            _write(writer, (method, args))
            answer: tuple[bool, Any] = await _read(reader)
            answered = True
            return answer
        finally:
            # A late answer must not be read as that of the next question.
            if answered:
                self._idle.append((reader, writer))
            else:
                writer.close()


def _write(writer: asyncio.StreamWriter, value: Any) -> None:
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    writer.write(len(body).to_bytes(HEAD_BYTES, "big") + body)


async def _read(reader: asyncio.StreamReader) -> Any:
    """The next value. EOFError when the other side hung up (IncompleteReadError is one)."""
    size = int.from_bytes(await reader.readexactly(HEAD_BYTES), "big")
    if size > FRAME_BYTES:
        raise EOFError("a frame of impossible length")
    # Both ends are this program under one user; the file's mode keeps others out.
    return pickle.loads(await reader.readexactly(size))
