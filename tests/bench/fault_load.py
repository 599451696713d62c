"""Stores and searches while a process dies: how every call ended, and when."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from rayapp.core.errors import DependencyDown
from tests.bench.wire import Connection

STORERS, SEARCHERS = 2, 4
# A person's screen waits about that long; a call beyond it counts as failed.
CALL_TIMEOUT_S = 10.0
# Between two calls of a client: a load that leaves a core to what has to start again.
PAUSE_S = 0.02
FAILED_PAUSE_S = 0.1
# Without a failure for this long the service is back, and the load may end.
CALM_S = 5.0
# A service that is not back by then is measured as what it is.
LONGEST_S = 180.0
READ_AGAIN = 20  # tries of the read that says whether a memory is missing

Kind = Literal["store", "search", "read"]
GOOD = {"store": "201", "search": "200", "read": "200"}


@dataclass(frozen=True, slots=True)
class Ended:
    """One call. `how`: a status, or `refused`, `reset`, `timeout`; times are monotonic seconds."""

    kind: Kind
    how: str
    begun: float
    ended: float
    retry_after: bool = False

    @property
    def failed(self) -> bool:
        return self.how != GOOD[self.kind]


@dataclass(slots=True)
class Seen:
    """All calls of one load, and the ids that were acknowledged."""

    calls: list[Ended] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[Ended]:
        return [call for call in self.calls if call.failed]

    def calm(self, now: float) -> bool:
        """True when none failed in the last seconds, and some were answered."""
        recent = [call for call in self.calls if call.ended > now - CALM_S]
        return bool(recent) and not any(call.failed for call in recent)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a fault cost.

    Attributes:
        failed: calls by status or transport error.
        bare: answers 503 without a Retry-After.
        first_s, last_s: seconds from the kill to the beginning of the first failed call and to the
            end of the last one; None when no call failed.
    """

    calls: int
    acknowledged: int
    failed: dict[str, int]
    bare: int
    first_s: float | None
    last_s: float | None

    @classmethod
    def of(cls, seen: Seen, killed_at: float) -> Verdict:
        failures = seen.failures
        failed = Counter(call.how for call in failures)
        return cls(
            calls=len(seen.calls),
            acknowledged=len(seen.acknowledged),
            failed=dict(sorted(failed.items())),
            bare=sum(call.how == "503" and not call.retry_after for call in failures),
            first_s=_since(killed_at, min((call.begun for call in failures), default=None)),
            last_s=_since(killed_at, max((call.ended for call in failures), default=None)),
        )


def _since(begun: float, at: float | None) -> float | None:
    return None if at is None else round(at - begun, 2)


class FaultLoad:
    """Clients that go on until `stop`, of one user."""

    def __init__(self, url: str, user_id: str) -> None:
        self.seen = Seen()
        self._url = url
        self._user_id = user_id
        self._number = 0
        self._stopped = False

    async def run(self) -> None:
        clients = [self._client("store") for _ in range(STORERS)]
        clients += [self._client("search") for _ in range(SEARCHERS)]
        await asyncio.gather(*clients)

    def stop(self) -> None:
        self._stopped = True

    async def _client(self, kind: Kind) -> None:
        connection = Connection(self._url)
        while not self._stopped:
            ended = await self._call(connection, kind)
            await asyncio.sleep(FAILED_PAUSE_S if ended.failed else PAUSE_S)
        connection.close()

    async def _call(self, connection: Connection, kind: Kind) -> Ended:
        self._number += 1
        if kind == "store":
            path = "/api/memory/store"
            body: dict[str, Any] = {
                "text": f"fault note {self._number} of {self._user_id}",
                "tier": "history",
            }
        else:
            path, body = "/api/memory/search", {"query": f"fault note {self._number}", "limit": 5}
        ended, answer = await one_call(
            connection, kind, "POST", path, orjson.dumps(body), self._user_id
        )
        self.seen.calls.append(ended)
        if kind == "store" and not ended.failed:
            self.seen.acknowledged.append(orjson.loads(answer)["memory_id"])
        return ended


async def one_call(
    connection: Connection, kind: Kind, method: str, path: str, body: bytes, user_id: str
) -> tuple[Ended, bytes]:
    """How it ended, and the body of the answer; never raises for what the service does."""
    begun, answer = time.monotonic(), b""
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            status, answer = await connection.call(method, path, body, user_id)
        how = str(status)
    except TimeoutError:
        connection.close()
        how = "timeout"
    except DependencyDown as error:
        how = "refused" if isinstance(error.__cause__, ConnectionRefusedError) else "reset"
    return Ended(kind, how, begun, time.monotonic(), bool(connection.retry_after)), answer


async def missing(url: str, user_id: str, ids: list[str]) -> list[str]:
    """The ids that cannot be read, each tried again while the service does not answer."""
    connections = [Connection(url) for _ in range(SEARCHERS)]
    shares = [ids[place :: len(connections)] for place in range(len(connections))]

    async def look(connection: Connection, share: list[str]) -> list[str]:
        lost = [one for one in share if not await _is_there(connection, user_id, one)]
        connection.close()
        return lost

    found = await asyncio.gather(*map(look, connections, shares))
    return [one for lost in found for one in lost]


async def _is_there(connection: Connection, user_id: str, memory_id: str) -> bool:
    for _ in range(READ_AGAIN):
        path = f"/api/memory/items/{memory_id}"
        ended, _answer = await one_call(connection, "read", "GET", path, b"", user_id)
        if not ended.failed:
            return True
        if ended.how == "404":
            return False
        await asyncio.sleep(1.0)
    return False
