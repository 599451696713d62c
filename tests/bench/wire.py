"""A minimal HTTP client, so that the client is not what a load test measures.

Keep-alive connections over asyncio streams with httptools as parser: about 40 µs of CPU per
call, against about 500 µs of a full client library.
"""

import asyncio
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httptools
import uvloop

from rayapp.core.errors import DependencyDown

READ_BYTES = 1 << 16
ANSWERED = 200
KEEP_EVERY = 20  # the first answer and every 20th after it is kept for its stage timings
REFUSED = 429  # the service has too much to do: come again later
PAUSE_S = 0.05  # of a client that was refused or lost its connection, before its next call


class _Answer:
    """Callbacks of the parser."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.retry_after = b""
        self.done = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self.retry_after = value

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.done = True


class Connection:
    """One keep-alive connection; calls on it are sequential.

    `retry_after` is that header of the last answer, empty without one.
    """

    def __init__(self, url: str) -> None:
        self.retry_after = b""
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(
        self, method: str, path: str, body: bytes = b"", user_id: str | None = None
    ) -> tuple[int, bytes]:
        """(status, body). Raises DependencyDown when the connection is lost."""
        try:
            return await self._call(method, path, body, user_id)
        except OSError as error:
            self.close()
            raise DependencyDown(
                f"The connection to {self._host}:{self._port} was lost: "
                "look at the service with `rayapp doctor`, start it again and repeat the run."
            ) from error

    async def _call(
        self, method: str, path: str, body: bytes, user_id: str | None
    ) -> tuple[int, bytes]:
        self.retry_after = b""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        user = f"X-User-Id: {user_id}\r\n" if user_id else ""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{user}\r\n"
        )
        writer.write(head.encode() + body)
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        while not answer.done:
            data = await reader.read(READ_BYTES)
            if not data:
                raise ConnectionResetError("the server closed the connection")
            parser.feed_data(data)
        self.retry_after = answer.retry_after
        if not parser.should_keep_alive():
            self.close()
        return parser.get_status_code(), bytes(answer.body)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass(frozen=True, slots=True)
class Call:
    path: str
    body: bytes
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """A closed loop of `clients` connections in one process, each with calls of its own."""

    url: str
    clients: int
    start_at: float  # wall-clock seconds: processes begin together
    warm_s: float
    measure_s: float
    calls: Sequence[Call]


@dataclass(slots=True)
class Driven:
    """What one process saw after the warm-up.

    Attributes:
        latencies_ms: of every answer but a refusal, which takes no time.
        refused: answers of a service that has too much to do.
        lost: calls without an answer.
        kept: bodies of some of the answers.
    """

    latencies_ms: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    kept: list[bytes] = field(default_factory=list)
    refused: int = 0
    lost: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0


def drive(plan: Drive) -> Driven:
    """Run the plan in this process; the entry point of a worker process."""
    return uvloop.run(_drive(plan))


async def _drive(plan: Drive) -> Driven:
    await asyncio.sleep(max(0.0, plan.start_at - time.time()))
    seen = Driven()
    begin = time.perf_counter() + plan.warm_s
    end = begin + plan.measure_s
    # With fewer calls than clients, some of them ask the same.
    shares = [plan.calls[index :: plan.clients] or plan.calls for index in range(plan.clients)]
    clock = asyncio.create_task(_cpu_between(begin, end))
    await asyncio.gather(*(_client(plan.url, share, begin, end, seen) for share in shares))
    seen.cpu_s, seen.wall_s = await clock, plan.measure_s
    return seen


async def _cpu_between(begin: float, end: float) -> float:
    await asyncio.sleep(max(0.0, begin - time.perf_counter()))
    before = _cpu_s()
    await asyncio.sleep(max(0.0, end - time.perf_counter()))
    return _cpu_s() - before


async def _client(url: str, calls: Sequence[Call], begin: float, end: float, seen: Driven) -> None:
    """Answers that end inside the window count; the calls wrap around when they run out."""
    connection = Connection(url)
    index = 0
    while time.perf_counter() < end:
        call = calls[index % len(calls)]
        index += 1
        started = time.perf_counter()
        try:
            status, body = await connection.call("POST", call.path, call.body, call.user_id)
        except DependencyDown:
            seen.lost += 1
            await asyncio.sleep(PAUSE_S)
            continue
        now = time.perf_counter()
        if status == REFUSED:
            seen.refused += begin <= now <= end
            await asyncio.sleep(PAUSE_S)
        elif begin <= now <= end:
            seen.latencies_ms.append((now - started) * 1000.0)
            seen.statuses[status] = seen.statuses.get(status, 0) + 1
            if status == ANSWERED and seen.statuses[status] % KEEP_EVERY == 1:
                seen.kept.append(body)
    connection.close()


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
