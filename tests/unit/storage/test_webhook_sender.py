"""Requests of webhooks: only to public addresses, without being led on, never without an end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.storage.webhook_sender import HttpWebhookSender

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(status: str, asked: list[bytes], *headers: str) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        lines = [f"HTTP/1.1 {status}", "content-length: 0", *headers, "", ""]
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        writer.close()

    return talk


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_private_address_is_asked_nothing() -> None:
    asked: list[bytes] = []
    sender = HttpWebhookSender(allow_private=False, timeout_s=5.0)
    async with listening(answering("204 No Content", asked)) as port:
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"):
            reply = await sender.send(f"http://{host}:{port}/", {}, b"{}")
            assert reply.status is None
            assert "private network" in str(reply.error), (host, reply)
        with pytest.raises(InvalidInput, match="private network"):
            await sender.check("localhost", port)
    assert asked == []
    await sender.close()


async def test_the_name_goes_along_and_nobody_is_led_on() -> None:
    asked: list[bytes] = []
    sender = HttpWebhookSender(allow_private=True, timeout_s=5.0)
    async with listening(answering("302 Found", asked, "location: /elsewhere")) as port:
        url = f"http://localhost:{port}/events?a=1"
        reply = await sender.send(url, {"webhook-id": "d-1"}, b"{}")
    assert (reply.status, reply.error) == (302, "The program answered with status 302.")
    (request,) = asked
    assert request.startswith(b"POST /events?a=1 HTTP/1.1\r\n")
    assert f"host: localhost:{port}\r\n".encode() in request.lower()
    assert b"webhook-id: d-1\r\n" in request.lower()
    await sender.close()


async def test_a_program_that_says_nothing_is_left() -> None:
    sender = HttpWebhookSender(allow_private=True, timeout_s=0.2)
    async with listening(silent) as port:
        reply = await sender.send(f"http://127.0.0.1:{port}/", {}, b"{}")
    assert reply.status is None
    assert reply.error is not None
    closed = await sender.send(f"http://127.0.0.1:{port}/", {}, b"{}")
    assert closed.error == "There was no answer (ConnectError)."
    await sender.close()
