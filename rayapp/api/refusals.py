"""When a request that is too much is refused: soon, but not so often that those in work wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from rayapp.core.settings.model import Settings
from rayapp.core.token_bucket import TokenBucket

# Refused at once, per second. A refusal costs .6 ms: 250 clients that asked again after 50 ms got
# 1,600 of them a second and left 5 of 80 searches (decision 0036).
AT_ONCE_PER_S = 50.0
# The others are refused after this, seconds: what their Retry-After asks for anyway.
HOLD_S = 1.0


class Refusals:
    """Those of one replica. `held` of them are waiting for their refusal."""

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sleep, self._now = sleep, now
        self._at_once = TokenBucket(AT_ONCE_PER_S, AT_ONCE_PER_S)
        self.held = 0

    async def due(self, room: int) -> None:
        """Return when the request is to be refused; at most `room` are held at a time."""
        if self._at_once.take(self._now()) == 0.0 or self.held >= room:
            return
        self.held += 1
        try:
            await self._sleep(HOLD_S)
        finally:
            self.held -= 1


def room_of(settings: Settings) -> int:
    """How many refusals may be held: most of what Serve admits above our own limit. Above its limit
    Serve refuses by itself, with an answer that is not ours."""
    spare = settings.serve.search.max_ongoing_requests - settings.http.max_in_flight
    return 3 * spare // 4
