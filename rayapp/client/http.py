"""The client: one connection pool, idempotency keys on writes, errors of `rayapp.errors`."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
import orjson
from pydantic import ValidationError

from rayapp.client.calls import AnswerT
from rayapp.client.learning import LearningCalls
from rayapp.client.models import Backlog, Memory, Ready, SearchReply, StoreReply
from rayapp.client.operations import OperationCalls
from rayapp.client.retry import RetryPolicy, may_retry
from rayapp.domain.memory import USER_ID_PATTERN
from rayapp.errors import (
    Conflict,
    DeadlineExceeded,
    DependencyDown,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    RayappError,
    TooLarge,
    Unauthorized,
)

TIMEOUT_S = 30.0  # the server ends a request at serve.request_timeout_s, 30 s by default
STALL_S = 120.0  # an index backlog that does not move for this long is stuck, not slow
POLL_S = 0.25  # between two looks at the backlog

ERROR_BY_STATUS: Mapping[int, type[RayappError]] = {
    400: InvalidInput,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: InvalidInput,
    429: RateLimited,
    503: DependencyDown,
    504: DeadlineExceeded,
}


class MemoryClient(LearningCalls, OperationCalls):
    """Async client of one service. Use as a context manager, or call `close`.

    Args:
        url: root of the service, for example `http://127.0.0.1:8000`.
        user_id: acts for this user; None = the user of the key. Every call may override it.
        api_key: bearer key; None in keyless local mode.
        retry: what is done about 429, 503 and lost connections.

    Raises:
        InvalidInput: a user id that no service accepts.
    """

    def __init__(
        self,
        url: str,
        *,
        user_id: str | None = None,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._user_id = _usable(user_id)
        self._retry = retry or RetryPolicy()
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=timeout_s, trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def store(
        self, memory: Memory, *, user_id: str | None = None, idempotency_key: str | None = None
    ) -> StoreReply:
        """Store one memory. A text that is already there answers `duplicate` with its id.

        Raises:
            InvalidInput, Unauthorized, Forbidden, TooLarge: as the server says.
            RateLimited, DependencyDown: after all retries.
        """
        answer = await self._send(
            "POST",
            "/api/memory/store",
            memory.body(),
            headers=_write_headers(self._user(user_id), idempotency_key),
        )
        status = "duplicate" if answer.get("duplicate") else "stored"
        return _parse(StoreReply, {**answer, "status": status})

    async def store_batch(
        self,
        memories: Sequence[Memory],
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> list[StoreReply]:
        """Store many; one answer per memory in the same order, a bad one rejects itself only.

        Raises: as `store`.
        """
        answer = await self._send(
            "POST",
            "/api/memory/store/batch",
            {"items": [memory.body() for memory in memories]},
            headers=_write_headers(self._user(user_id), idempotency_key),
        )
        replies = [_parse(StoreReply, row) for row in answer.get("results", ())]
        if len(replies) != len(memories):
            raise DependencyDown(
                f"{self.url} answered {len(replies)} results for {len(memories)} memories: "
                "check that it is this service and its version matches."
            )
        return replies

    async def item(self, memory_id: str, *, user_id: str | None = None) -> dict[str, Any]:
        """One memory with its counters, as the API documents it.

        Raises:
            NotFound: no such memory of the user.
        """
        path = f"/api/memory/items/{quote(memory_id, safe='')}"
        answer = await self._send("GET", path, headers=_user_header(self._user(user_id)))
        found: dict[str, Any] = answer["memory"]
        return found

    async def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        tiers: Sequence[str] | None = None,
        recipe: str | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> SearchReply:
        """Search; `options` are further documented body fields (offset, filters, as_of …).

        Raises: as `store`.
        """
        asked = {"query": query, "limit": limit, "recipe": recipe, **options}
        if tiers is not None:
            asked["tiers"] = list(tiers)
        body = {name: value for name, value in asked.items() if value is not None}
        started = time.perf_counter()
        answer = await self._send(
            "POST", "/api/memory/search", body, headers=_user_header(self._user(user_id))
        )
        elapsed_ms = (time.perf_counter() - started) * 1000.0
        return _parse(SearchReply, {**answer, "elapsed_ms": elapsed_ms})

    async def diagnostics(self) -> dict[str, Any]:
        """The whole diagnostics body."""
        return await self._send("GET", "/api/memory/diagnostics")

    async def backlog(self) -> Backlog:
        """Index counts out of the diagnostics."""
        return _parse(Backlog, (await self.diagnostics()).get("index"))

    async def ready(self) -> Ready:
        """Readiness; a service that is warming up answers `ready=False` with reasons.

        Raises:
            DependencyDown: nothing listens there.
        """
        try:
            response = await self._http.get("/readyz")
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        return _parse(Ready, _json(response))

    async def wait_indexed(
        self,
        *,
        stall_s: float = STALL_S,
        poll_s: float = POLL_S,
        on_progress: Callable[[Backlog], None] | None = None,
    ) -> Backlog:
        """Wait until nothing is pending in the index, over all users.

        Raises:
            DeadlineExceeded: the backlog did not shrink for `stall_s` seconds.
        """
        lowest: int | None = None
        moved = time.monotonic()
        while True:
            backlog = await self.backlog()
            if on_progress is not None:
                on_progress(backlog)
            if backlog.pending == 0:
                return backlog
            if lowest is None or backlog.pending < lowest:
                lowest, moved = backlog.pending, time.monotonic()
            if time.monotonic() - moved > stall_s:
                raise DeadlineExceeded(
                    f"{backlog.pending} memories are still waiting to be indexed after "
                    f"{stall_s:.0f} s without progress: look at GET /api/memory/diagnostics."
                )
            await asyncio.sleep(poll_s)

    async def read(
        self,
        model: type[AnswerT],
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
    ) -> AnswerT:
        headers = _user_header(self._user(user_id))
        return _parse(model, await self._send(method, path, body, headers=headers))

    async def write(
        self,
        model: type[AnswerT],
        path: str,
        body: Mapping[str, Any],
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> AnswerT:
        headers = _write_headers(self._user(user_id), idempotency_key)
        return _parse(model, await self._send("POST", path, body, headers=headers))

    def _user(self, user_id: str | None) -> str | None:
        return _usable(user_id) if user_id is not None else self._user_id

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """One call with retries; every attempt carries the same body and idempotency key."""
        content = None if body is None else orjson.dumps(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        for attempt in range(1, self._retry.attempts + 1):
            last = attempt == self._retry.attempts
            retry_after_s: float | None = None
            try:
                response = await self._http.request(method, path, content=content, headers=sent)
            except httpx.TransportError as error:
                if last or isinstance(error, httpx.TimeoutException):
                    raise self._unreachable(error) from error
            else:
                if response.is_success:
                    return _json(response)
                failure = _failure(response)
                retry_after_s = failure.retry_after_s
                if last or not may_retry(response.status_code, failure.code, retry_after_s):
                    raise failure
            await asyncio.sleep(self._retry.wait_s(attempt, random.random(), retry_after_s))
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, error: httpx.TransportError) -> DependencyDown:
        if isinstance(error, httpx.TimeoutException):
            return DependencyDown(
                f"{self.url} did not answer in time: look at its health with `rayapp doctor`."
            )
        return DependencyDown(
            f"No service answers at {self.url}: start it with `rayapp up`, or pass its URL."
        )


def _usable(user_id: str | None) -> str | None:
    if user_id is not None and not USER_ID_PATTERN.fullmatch(user_id):
        raise InvalidInput(
            "A user id is 1 to 128 characters of letters, digits and . _ : @ -.", code="bad_user_id"
        )
    return user_id


def _user_header(user_id: str | None) -> dict[str, str]:
    return {} if user_id is None else {"X-User-Id": user_id}


def _write_headers(user_id: str | None, idempotency_key: str | None) -> dict[str, str]:
    return {**_user_header(user_id), "Idempotency-Key": idempotency_key or uuid.uuid4().hex}


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise DependencyDown(
            f"{response.url} answered {response.status_code} without a JSON object: "
            "check that the URL is this service."
        )
    return body


def _parse(model: type[AnswerT], value: Any) -> AnswerT:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise DependencyDown(
            f"The answer does not fit {model.__name__} ({where}: {first['msg']}): "
            "check that the URL is this service and its version matches."
        ) from None


def _failure(response: httpx.Response) -> RayappError:
    """The server's error as ours: same code, message, details and `Retry-After`."""
    kind = ERROR_BY_STATUS.get(response.status_code, RayappError)
    try:
        body = _json(response)
    except DependencyDown:
        body = {}
    message = body.get("error") or body.get("message")
    return kind(
        str(message or f"{response.url} answered {response.status_code}."),
        code=body.get("code"),
        details=body.get("details") or {},
        retry_after_s=_retry_after(response.headers.get("Retry-After")),
    )


def _retry_after(value: str | None) -> float | None:
    """Seconds; the date form of the header is not used by this service and reads as none."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
