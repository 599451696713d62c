"""Waiting for the service's indexer, as several jobs do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from rayapp.client.progress import Bar
from rayapp.errors import DependencyDown

POLL_S = 0.3
# Without any progress for this long nobody is working: the service is down or blocked.
STALL_S = 120.0


async def until_full(left: Callable[[], Awaitable[int]], total: int, bar: Bar) -> None:
    """Poll `left` until it is 0, showing progress; DependencyDown when it stops moving."""
    best, moved_at = total + 1, time.monotonic()
    while (now := await left()) > 0:
        if now < best:
            best, moved_at = now, time.monotonic()
        if time.monotonic() - moved_at > STALL_S:
            raise DependencyDown(
                f"Nothing was indexed for {STALL_S:.0f} s: see `rayapp status` and its logs."
            )
        bar.at(max(0, total - now))
        await asyncio.sleep(POLL_S)
    bar.at(total)
