"""Server-sent events: the reader of a stream and when to ask for it again. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
import orjson

from rayapp.client.calls import Request
from rayapp.client.core import failure
from rayapp.client.retry import RetryPolicy, may_retry
from rayapp.core.errors import DependencyDown

RETRY_S = 0.5  # before the stream is asked for again, until the server names another pause
READY = "ready"
# Every connection begins with one of them.
MARKS = frozenset({READY, "reset"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`id` is handed back to go on after it; `name` is for example `stored` or `progress`."""

    id: str
    name: str
    data: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Stream:
    """One stream over any number of connections: after each, it goes on where it was.

    Attributes:
        last: names of events after which there is nothing more.
        once: end with the first connection that brings nothing of before the first one began: the
            server answers a part at a time, and a connection may break in the middle.
    """

    path: str
    headers: Mapping[str, str]
    retry: RetryPolicy
    last_id: str | None = None
    last: frozenset[str] = frozenset()
    once: bool = False
    ended: bool = False
    _failures: int = 0
    _answers: int = 0
    _brought: bool = False
    _begun: datetime | None = None
    _pause_s: float = RETRY_S
    _id: str | None = None
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def request(self) -> Request:
        """The next connection."""
        self._id, self._name, self._data = None, "", []
        self._brought = False
        headers = {**self.headers, "Accept": "text/event-stream"}
        if self.last_id is not None:
            headers["Last-Event-ID"] = self.last_id
        return Request(method="GET", path=self.path, headers=headers)

    def line(self, line: str) -> Event | None:
        """The event that this line completes."""
        self._failures = 0
        if line:
            self._field(line)
            return None
        name, data = self._name, self._data
        # Only a whole event moves the position: one that breaks off after its id is told again.
        self.last_id = self.last_id if self._id is None else self._id
        self._id, self._name, self._data = None, "", []
        if not data:
            return None
        if name in self.last:
            self.ended = True
        found = _object("\n".join(data))
        at = _time_of(found)
        if name in MARKS:
            self._begun = self._begun or at
        elif self._begun is None or at is None or at <= self._begun:
            self._brought = True
        if name == READY and self.once and self._answers:
            return None  # of a connection that the caller did not ask for
        return Event(id=self.last_id or "", name=name or "message", data=found)

    def closed(self) -> float:
        """The server ended the connection; the pause before the next one."""
        self._answers += 1
        self.ended = self.ended or (self.once and not self._brought)
        return self._pause_s

    def refused(self, response: httpx.Response) -> float:
        """The pause before the next try. Raises what the server says when there is none."""
        error = failure(response)
        self._failures += 1
        worth = may_retry(response.status_code, error.code, error.retry_after_s)
        if not worth or self._failures >= self.retry.attempts:
            raise error
        return self.retry.wait_s(self._failures, 1.0, error.retry_after_s)

    def lost(self) -> float:
        """The pause before the next try. Raises DependencyDown when it was the last one."""
        self._failures += 1
        if self._failures >= self.retry.attempts:
            raise DependencyDown(
                "The stream of events was lost and cannot be opened again: look at the service's "
                "health with `rayapp doctor`."
            ) from None
        return self.retry.wait_s(self._failures, 1.0, None)

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and value:
            self._id = value
        elif name == "retry" and value.isdigit():
            self._pause_s = int(value) / 1000


def _object(text: str) -> dict[str, Any]:
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        data = None
    if not isinstance(data, dict):
        raise DependencyDown(
            "An event is no JSON object: check that the URL is this service and its version "
            "matches."
        )
    return data


def _time_of(data: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(data["at"])
    except (KeyError, TypeError, ValueError):
        return None
