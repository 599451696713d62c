"""Follows the events of one user for a while: a bounded number of streams, none for ever."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from rayapp.admin.ports import EventFeed, EventStream, Frame, MarkKind, StreamMark, StreamRequest
from rayapp.core.errors import NotFound, Overloaded, RayappError
from rayapp.core.runtime import Runtime
from rayapp.memory.scope import ReadScope

log = logging.getLogger(__name__)

# How long the server waits inside one question, seconds: how late the end of a stream may come,
# and below the socket's limit of an operation (5 s).
POLL_S = 1.0
# A follower who was refused for want of a place asks again after this time, seconds.
FULL_RETRY_S = 5.0
# Events that a look without waiting answers at most: about a megabyte.
MAX_AT_ONCE = 5_000


class EventStreamService:
    """What changed, to whoever follows. Raises Overloaded, StoreDown, InvalidInput."""

    def __init__(self, stream: EventStream, *, runtime: Runtime) -> None:
        self._stream = stream
        self._clock = runtime.clock
        self._metrics = runtime.metrics
        self._settings = runtime.settings.events
        self._open = 0

    async def follow(self, scope: ReadScope, request: StreamRequest) -> Following:
        """An open stream, which the caller closes.

        Raises Overloaded: as many streams are open as may be; StoreDown.
        """
        if self._open >= self._settings.max_streams:
            raise Overloaded(
                "Too many event streams are open here; try again, or read the lists instead.",
                retry_after_s=FULL_RETRY_S,
            )
        self._count(1)
        try:
            feed, first = await self._opened(scope, request)
        except BaseException:
            self._count(-1)
            raise
        return Following(self, feed, first, request.follow)

    async def _opened(self, scope: ReadScope, request: StreamRequest) -> tuple[EventFeed, MarkKind]:
        """A follower who cannot go on hears so once, and then what happens from now on."""
        poll_s = min(POLL_S, self._settings.heartbeat_s)
        try:
            feed = await self._stream.open(
                [scope.user_id], after=request.after, kinds=request.kinds, poll_s=poll_s
            )
            return feed, MarkKind.READY
        except NotFound:
            feed = await self._stream.open(
                [scope.user_id], after=None, kinds=request.kinds, poll_s=poll_s
            )
            return feed, MarkKind.RESET

    async def frames(
        self, feed: EventFeed, first: MarkKind, *, follow: bool
    ) -> AsyncIterator[Frame]:
        """Marks and events until the time is up, or nothing is left for one who does not wait; the
        last mark moves the position past what others did. A failure ends the stream: the follower
        comes back with its last position and is told then what is wrong."""
        yield StreamMark(position=feed.position, kind=first)
        ends = self._clock.monotonic() + self._settings.stream_s
        spoken = self._clock.monotonic()
        told = 0
        try:
            while (now := self._clock.monotonic()) < ends:
                event = await feed.next()
                if event is not None:
                    self._metrics.count("events_told", kind=event.kind.value)
                    spoken, told = now, told + 1
                    yield event
                elif not follow:
                    break
                elif self._clock.monotonic() - spoken >= self._settings.heartbeat_s:
                    spoken = self._clock.monotonic()
                    yield StreamMark(position=feed.position, kind=MarkKind.ALIVE)
                if not follow and told >= MAX_AT_ONCE:
                    break
        except RayappError as error:
            log.info("an event stream ended early: %s", error.code)
            return
        yield StreamMark(position=feed.position, kind=MarkKind.ALIVE)

    async def leave(self, feed: EventFeed) -> None:
        self._count(-1)
        await feed.close()

    def _count(self, change: int) -> None:
        self._open += change
        self._metrics.gauge("event_streams", float(self._open))


class Following:
    """One open stream. `close` gives its place and its connection back, once."""

    def __init__(
        self, service: EventStreamService, feed: EventFeed, first: MarkKind, follow: bool
    ) -> None:
        self._service = service
        self._feed = feed
        self._closed = False
        self.frames = service.frames(feed, first, follow=follow)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._service.leave(self._feed)
