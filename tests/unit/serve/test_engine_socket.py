"""The socket into the engine's process: answers, errors, and what happens when it goes away."""

import asyncio
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rayapp.core.errors import BadVector
from rayapp.serve.engine_socket import SocketClient, SocketClosedError, SocketServer


class Toy:
    """Echoes after as long as it is told, or raises."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    async def call(self, operation: str, args: tuple[Any, ...], timeout_s: float) -> Any:
        self.seen.append((operation, timeout_s))
        if operation == "refuse":
            raise BadVector("A vector has 3 numbers; send 256.", details={"dims": 3})
        if operation == "break":
            raise KeyError("no such thing")
        if operation == "wait":
            await asyncio.sleep(args[0])
        return (lambda: None) if operation == "unsendable" else args


@pytest.fixture
async def server() -> AsyncIterator[SocketServer]:
    made = SocketServer(Toy().call)
    yield made
    await made.close()


async def test_values_cross_whole_however_long(server: SocketServer) -> None:
    client = await SocketClient.to(await server.open())
    big = np.arange(1_000_000, dtype=np.float32)
    (text, array) = await client.call("echo", ("שלום", big), 5)
    assert text == "שלום"
    assert np.array_equal(array, big)
    await client.close()


async def test_a_quick_call_passes_a_slow_one(server: SocketServer) -> None:
    client = await SocketClient.to(await server.open())
    slow = asyncio.create_task(client.call("wait", (30,), 60))
    assert await asyncio.gather(*(client.call("echo", (n,), 5) for n in range(50))) == [
        (n,) for n in range(50)
    ]
    assert not slow.done()
    slow.cancel()
    await client.close()


async def test_an_error_keeps_its_class_and_the_connection(server: SocketServer) -> None:
    client = await SocketClient.to(await server.open())
    with pytest.raises(BadVector, match="send 256") as caught:
        await client.call("refuse", (), 5)
    assert caught.value.details == {"dims": 3}
    with pytest.raises(SocketClosedError, match="KeyError"):
        await client.call("break", (), 5)
    assert await client.call("echo", (1,), 5) == (1,)
    await client.close()


async def test_who_stops_waiting_disturbs_nobody(server: SocketServer) -> None:
    client = await SocketClient.to(await server.open())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.call("wait", (0.05,), 5), 0.01)
    await asyncio.sleep(0.1)
    assert await client.call("echo", (2,), 5) == (2,)
    await client.close()


async def test_a_process_that_ends_fails_every_call_at_once(server: SocketServer) -> None:
    path = await server.open()
    client = await SocketClient.to(path)
    waiting = [asyncio.create_task(client.call("wait", (30,), 60)) for _ in range(3)]
    await asyncio.sleep(0.05)
    client._writer.transport.abort()
    for one in waiting:
        with pytest.raises(SocketClosedError):
            await one
    assert not client.is_open
    await server.close()
    with pytest.raises(SocketClosedError):
        await SocketClient.to(path)


async def test_only_its_owner_may_enter(server: SocketServer) -> None:
    folder = Path(await server.open()).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    await server.close()
    assert not folder.exists()


async def test_an_answer_that_cannot_be_sent_is_an_error_at_once(server: SocketServer) -> None:
    client = await SocketClient.to(await server.open())
    with pytest.raises(SocketClosedError, match="lambda"):
        await asyncio.wait_for(client.call("unsendable", (), 5), 5)
    assert await client.call("echo", (3,), 5) == (3,)
    await client.close()


async def test_a_socket_that_somebody_removed_is_opened_anew(server: SocketServer) -> None:
    first = await server.open()
    assert await server.open() == first
    shutil.rmtree(Path(first).parent)
    second = await server.open()
    assert second != first
    client = await SocketClient.to(second)
    assert await client.call("echo", (4,), 5) == (4,)
    await client.close()
