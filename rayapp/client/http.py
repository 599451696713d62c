"""The clients: one connection pool each, over the calls that both share."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Self, Unpack

import httpx

from rayapp.client.books import BookCalls
from rayapp.client.calls import (
    AnswerT,
    AsyncDriver,
    Came,
    Json,
    Pause,
    Reader,
    Step,
    SyncDriver,
    Writer,
    asked,
    at,
    listed,
)
from rayapp.client.context import ContextCalls
from rayapp.client.conversations import ConversationCalls
from rayapp.client.core import key_header
from rayapp.client.derived import DerivedCalls
from rayapp.client.events import Event, Stream
from rayapp.client.knowledge import KnowledgeCalls
from rayapp.client.learning import LearningCalls
from rayapp.client.memories import MemoryCalls
from rayapp.client.ops import JOBS, OpsCalls, SystemCalls
from rayapp.client.raw_data import RawDataCalls
from rayapp.client.retry import RetryPolicy
from rayapp.client.user_data import UserDataCalls
from rayapp.client.webhooks import WebhookCalls
from rayapp.core.event_lines import event_lines, sync_event_lines

# The server ends its longest answers, an import or an erasure, after 60 s by default, and says how
# far it came: who gives up earlier repeats it beside the first.
TIMEOUT_S = 75.0
JSON = {"Content-Type": "application/json"}


class Listener(Reader, total=False):
    """Of a stream of events: where it goes on, and whether it waits for what is to come."""

    last_id: str | None
    follow: bool


class AllCalls(
    MemoryCalls,
    RawDataCalls,
    BookCalls,
    ContextCalls,
    ConversationCalls,
    DerivedCalls,
    KnowledgeCalls,
    LearningCalls,
    UserDataCalls,
    SystemCalls,
    WebhookCalls,
):
    """What a program with a memory calls; operators' calls are under `ops`."""

    def __init__(
        self,
        url: str,
        *,
        user_id: str | None = None,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retry: RetryPolicy | None = None,
    ) -> None:
        super().__init__(url, user_id=user_id, retry=retry)
        self._connect(headers=key_header(api_key), timeout=timeout_s)

    @abstractmethod
    def _connect(self, **options: Any) -> None:
        """Open the connections, with these options of httpx."""

    def _events(
        self,
        types: Sequence[str] | None,
        last_id: str | None = None,
        follow: bool = True,
        user_id: str | None = None,
    ) -> Stream:
        path = asked(
            "/api/memory/events",
            types=",".join(listed(types)) if types else None,
            follow=None if follow else False,
        )
        headers = self.headers_of(user_id)
        return Stream(
            path=path, headers=headers, retry=self._retry, last_id=last_id, once=not follow
        )

    def _job_events(self, job_id: str) -> Stream:
        path = at(JOBS, job_id, "events")
        return Stream(path=path, headers={}, retry=self._retry, last=frozenset({"end"}))


class MemoryClient(AsyncDriver, AllCalls):
    """Async client of one service. Use as a context manager, or call `close`.

    Args:
        url: root of the service, for example `http://127.0.0.1:8000`.
        user_id: acts for this user; None = the user of the key. Every call may override it.
        api_key: bearer key; None in keyless local mode.
        retry: what is done about 429, 503 and lost connections.

    Attributes:
        ops: operators' calls: bulk jobs, upkeep, circuit breakers.

    Raises:
        InvalidInput: a user id or a key that no service accepts, or no URL.
    """

    def _connect(self, **options: Any) -> None:
        self.ops = AsyncOps(self)
        self._http = httpx.AsyncClient(base_url=self.url, trust_env=False, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def read(
        self, model: type[AnswerT], path: str, body: Json = None, **who: Unpack[Reader]
    ) -> AnswerT:
        """Any call that changes nothing, as `model`; a POST when it has a body."""
        return await self._drive(self.reading(model, path, body, **who))

    async def write(
        self,
        model: type[AnswerT],
        path: str,
        body: Json = None,
        *,
        method: str = "POST",
        **who: Unpack[Writer],
    ) -> AnswerT:
        """Any write, with an idempotency key, as `model`."""
        return await self._drive(self.writing(model, path, body, method=method, **who))

    def events(
        self, types: Sequence[str] | None = None, **where: Unpack[Listener]
    ) -> AsyncIterator[Event]:
        """What happens to the memories, from now on or after `last_id`, without an end.

        A connection that ends is opened again where it was. The event `reset` says that the
        service no longer knows `last_id`: read again what you show. `follow` False: what has
        happened so far, then the end. Close the iterator when you leave early.
        """
        return self._follow(self._events(types, **where))

    async def _follow(self, stream: Stream) -> AsyncIterator[Event]:
        while not stream.ended:
            request = stream.request()
            try:
                async with self._http.stream(
                    "GET", request.path, headers=dict(request.headers)
                ) as response:
                    if response.is_success:
                        async for line in event_lines(response.aiter_bytes()):
                            if (event := stream.line(line)) is not None:
                                yield event
                        pause_s = stream.closed()
                    else:
                        await response.aread()
                        pause_s = stream.refused(response)
            except httpx.RequestError:
                pause_s = stream.lost()
            if not stream.ended:
                await asyncio.sleep(pause_s)

    async def _take(self, step: Step) -> Came:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.request(
                step.method, step.path, content=step.content, headers={**JSON, **step.headers}
            )
        except httpx.RequestError as error:
            return error


class AsyncOps(AsyncDriver, OpsCalls):
    """`ops` of the async client."""

    def __init__(self, client: MemoryClient) -> None:
        super().__init__(client)
        self._client = client

    def job_events(self, job_id: str) -> AsyncIterator[Event]:
        """The progress of one job, until it has ended. Raises NotFound."""
        return self._client._follow(self._client._job_events(job_id))

    async def _take(self, step: Step) -> Came:
        return await self._client._take(step)


class SyncMemoryClient(SyncDriver, AllCalls):
    """The same client for programs without an event loop. One thread at a time may use it.

    Args and errors: as `MemoryClient`.
    """

    def _connect(self, **options: Any) -> None:
        self.ops = SyncOps(self)
        self._http = httpx.Client(base_url=self.url, trust_env=False, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def read(
        self, model: type[AnswerT], path: str, body: Json = None, **who: Unpack[Reader]
    ) -> AnswerT:
        """Any call that changes nothing, as `model`; a POST when it has a body."""
        return self._drive(self.reading(model, path, body, **who))

    def write(
        self,
        model: type[AnswerT],
        path: str,
        body: Json = None,
        *,
        method: str = "POST",
        **who: Unpack[Writer],
    ) -> AnswerT:
        """Any write, with an idempotency key, as `model`."""
        return self._drive(self.writing(model, path, body, method=method, **who))

    def events(
        self, types: Sequence[str] | None = None, **where: Unpack[Listener]
    ) -> Iterator[Event]:
        """As `MemoryClient.events`."""
        return self._follow(self._events(types, **where))

    def _follow(self, stream: Stream) -> Iterator[Event]:
        while not stream.ended:
            request = stream.request()
            try:
                with self._http.stream(
                    "GET", request.path, headers=dict(request.headers)
                ) as response:
                    if response.is_success:
                        for line in sync_event_lines(response.iter_bytes()):
                            if (event := stream.line(line)) is not None:
                                yield event
                        pause_s = stream.closed()
                    else:
                        response.read()
                        pause_s = stream.refused(response)
            except httpx.RequestError:
                pause_s = stream.lost()
            if not stream.ended:
                time.sleep(pause_s)

    def _take(self, step: Step) -> Came:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.request(
                step.method, step.path, content=step.content, headers={**JSON, **step.headers}
            )
        except httpx.RequestError as error:
            return error


class SyncOps(SyncDriver, OpsCalls):
    """`ops` of the sync client."""

    def __init__(self, client: SyncMemoryClient) -> None:
        super().__init__(client)
        self._client = client

    def job_events(self, job_id: str) -> Iterator[Event]:
        """The progress of one job, until it has ended. Raises NotFound."""
        return self._client._follow(self._client._job_events(job_id))

    def _take(self, step: Step) -> Came:
        return self._client._take(step)
