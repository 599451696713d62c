"""The event stream of tests: a log that every feed reads at its own place."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rayapp.admin.ports import StreamEvent, StreamKind
from rayapp.core.errors import NotFound
from rayapp.core.runtime import Clock

_POSITION = re.compile(r"[0-9a-f]{8}")


class InMemoryEventStream:
    """Implements `EventStream`. `tell` is what a change of the truth does.

    Args:
        longest_poll_s: real seconds that one question of a feed waits at most.
    """

    def __init__(self, clock: Clock, longest_poll_s: float = math.inf) -> None:
        self._clock = clock
        self._longest_poll_s = longest_poll_s
        self.log: list[tuple[str | None, StreamEvent]] = []
        self.oldest = 0
        self.open_feeds = 0
        self.told = asyncio.Condition()

    async def tell(
        self, user_id: str | None, kind: StreamKind, data: Mapping[str, Any]
    ) -> StreamEvent:
        """`user_id` is None for a job."""
        event = StreamEvent(
            position=position(len(self.log) + 1),
            kind=kind,
            at=self._clock.now(),
            user_id=user_id,
            data=dict(data),
        )
        async with self.told:
            self.log.append((user_id, event))
            self.told.notify_all()
        return event

    async def open(
        self,
        users: Collection[str],
        *,
        after: str | None,
        kinds: frozenset[StreamKind],
        poll_s: float,
    ) -> InMemoryEventFeed:
        at = len(self.log)
        if after is not None:
            at = int(after, 16) if _POSITION.fullmatch(after) else -1
            if not self.oldest <= at <= len(self.log):
                raise NotFound(
                    "This event id cannot be gone on from: it is unknown or too old. Read again "
                    "what you show.",
                    code="position_lost",
                )
        self.open_feeds += 1
        return InMemoryEventFeed(
            self, frozenset(users), kinds, min(poll_s, self._longest_poll_s), at
        )


@dataclass(eq=False)
class InMemoryEventFeed:
    """Implements `EventFeed`."""

    stream: InMemoryEventStream
    users: frozenset[str]
    kinds: frozenset[StreamKind]
    poll_s: float
    at: int

    def __post_init__(self) -> None:
        self._closed = False

    @property
    def position(self) -> str:
        return position(self.at)

    async def next(self) -> StreamEvent | None:
        found = self._found()
        if found is None:
            try:
                async with asyncio.timeout(self.poll_s), self.stream.told:
                    await self.stream.told.wait()
            except TimeoutError:
                return None
            found = self._found()
        return found

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.stream.open_feeds -= 1

    def _found(self) -> StreamEvent | None:
        while self.at < len(self.stream.log):
            owner, event = self.stream.log[self.at]
            self.at += 1
            mine = event.kind is StreamKind.JOB or owner in self.users
            if mine and event.kind in self.kinds:
                return replace(event)
        return None


def position(at: int) -> str:
    return f"{at:08x}"
