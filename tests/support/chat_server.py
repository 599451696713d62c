"""A chat model over real HTTP that is good, slow, broken, cut off or hostile, by script."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What the client sent. `path` and `headers` as they came, names of headers in lower case."""

    path: str
    headers: Headers
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All messages, one after the other."""
        return "\n".join(message["content"] for message in self.body["messages"])

    @property
    def wants_json(self) -> bool:
        return "response_format" in self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes over the wire. `reset`: the connection ends instead, in the middle of the body.

    endless: bytes that follow the body, so many. after_s: pause before the first byte.
    """

    status: int = 200
    body: bytes = b""
    headers: Headers = field(default_factory=lambda: {"content-type": "application/json"})
    after_s: float = 0.0
    reset: bool = False
    endless: int = 0


Script = Callable[[ChatRequest], Reply]


def good(text: str, *, finish: str = "stop", usage: tuple[int, int] | None = (11, 7)) -> Reply:
    """An answer as OpenAI writes it. usage: tokens of prompt and answer; None: it does not say."""
    body: dict[str, Any] = {
        "id": "chat-1",
        "object": "chat.completion",
        "model": "scripted",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        ],
    }
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return Reply(body=orjson.dumps(body))


def streamed(*pieces: str, calls: str = "") -> Reply:
    """An answer in pieces, as server-sent events. calls: a tool that is called before its end."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces]
    if calls:
        function = {"name": calls, "arguments": "{}"}
        deltas.append({"tool_calls": [{"index": 0, "id": "c1", "function": function}]})
    rows = [_chunk(delta) for delta in deltas]
    return events(*rows, _chunk({}, "tool_calls" if calls else "stop"))


def events(*rows: dict[str, Any]) -> Reply:
    """Chunks as server-sent events."""
    body = b"".join(b"data: %s\n\n" % orjson.dumps(row) for row in rows) + b"data: [DONE]\n\n"
    return Reply(body=body, headers={"content-type": "text/event-stream"})


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chat-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [choice],
    }


def late(text: str, seconds: float) -> Reply:
    """Good, but slow."""
    return Reply(body=good(text).body, after_s=seconds)


def status(code: int, detail: str = "as told") -> Reply:
    """An error of the server."""
    return Reply(status=code, body=orjson.dumps({"error": {"message": detail}}))


def busy(retry_after: int) -> Reply:
    """429 with the pause that it asks for."""
    headers = {"content-type": "application/json", "retry-after": str(retry_after)}
    return Reply(status=429, body=b'{"error": {"message": "slow down"}}', headers=headers)


def reset() -> Reply:
    """The connection ends within the answer."""
    return Reply(body=good("half").body, reset=True)


def garbage() -> Reply:
    """Bytes of no encoding."""
    return Reply(body=b"\x00\xff\xfe{\x80not json")


def html() -> Reply:
    """The page of a proxy, with status 200."""
    return Reply(body=b"<html><body>Login</body></html>", headers={"content-type": "text/html"})


def shape(value: Any) -> Reply:
    """Any JSON instead of an answer's."""
    return Reply(body=orjson.dumps(value))


def cut(text: str) -> Reply:
    """Stopped at the length limit."""
    return good(text, finish="length")


def huge(megabytes: int = 64) -> Reply:
    """An answer that does not end."""
    return Reply(body=b'{"choices": [{"message": {"content": "', endless=megabytes << 20)


def fenced(text: str) -> Reply:
    """In a code fence, with chatter around it."""
    return good(f"Sure! Here is the result / הנה התוצאה:\n```json\n{text}\n```\nAnything else?")


def thinking(text: str, thought: str = 'maybe {"outcome": "failed", "confidence": 1}') -> Reply:
    """Thinks aloud first."""
    return good(f"<think>{thought}</think>\n{text}")


def tool_call(name: str = "delete_everything") -> Reply:
    """Calls a tool that nobody offered, and says nothing."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return shape(
        {
            "choices": [
                {
                    "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                    "finish_reason": "tool_calls",
                }
            ]
        }
    )


def in_turn(*replies: Reply) -> Script:
    """One after the other; the last one for ever."""
    queue = list(replies)
    return lambda request: queue.pop(0) if len(queue) > 1 else queue[0]


def without_json_mode(text: str, code: int = 400) -> Script:
    """An endpoint that does not know `response_format`."""

    def script(request: ChatRequest) -> Reply:
        return status(code, "unknown field response_format") if request.wants_json else good(text)

    return script


class ChatServer:
    """A plain socket server, because no framework sends broken HTTP.

    Attributes:
        script: answers each request; swap it at any time.
        key: bearer token it demands, none when empty.
        requests: what came, oldest first.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.key = ""
        self.url = ""
        self.requests: list[ChatRequest] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept open between requests."""
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                if not await self._send(writer, self._reply(request)):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client went away, which tests do on purpose
        finally:
            writer.close()

    def _reply(self, request: ChatRequest) -> Reply:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return status(401, "who are you")
        return self.script(request)

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        """False when the connection ended with it."""
        await asyncio.sleep(reply.after_s)
        length = len(reply.body) + reply.endless
        headers = {**reply.headers, "content-length": str(length)}
        head = f"HTTP/1.1 {reply.status} Scripted\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers.items()
        )
        body = reply.body[: len(reply.body) // 2] if reply.reset else reply.body
        writer.write(head.encode() + b"\r\n" + body)
        await writer.drain()
        if reply.reset:
            writer.transport.abort()
            return False
        for piece in _pieces(reply.endless):
            writer.write(piece)
            await writer.drain()
        return True


def _pieces(length: int) -> Iterator[bytes]:
    while length > 0:
        yield b"x" * min(length, 1 << 16)
        length -= 1 << 16


async def _read(reader: asyncio.StreamReader) -> ChatRequest | None:
    first = await reader.readline()
    if not first:
        return None
    headers: Headers = {}
    while line := (await reader.readline()).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    path = first.decode("latin-1").split(" ")[1]
    return ChatRequest(path, headers, orjson.loads(body) if body else {})


@asynccontextmanager
async def chat_server(script: Script | None = None) -> AsyncIterator[ChatServer]:
    """A running server on a free loopback port, in this event loop; without a script it is good."""
    app = ChatServer(script or (lambda request: good("ok")))
    server = await asyncio.start_server(app.serve, "127.0.0.1", 0)
    app.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield app
    finally:
        server.close()
