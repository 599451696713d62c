"""Client calls about the service itself: readiness, health, sizes, and the wait for the index."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from rayapp.client.calls import Pause, Request, Talk, asked, call
from rayapp.client.core import Core, json_of, parsed
from rayapp.client.models import Backlog, Growth, HealthReply, Plain, Ready, Stats, StatsReply
from rayapp.core.errors import DeadlineExceeded

MEMORY = "/api/memory"
SYSTEM = "/api/system"
STALL_S = 120.0  # an index backlog that does not move for this long is stuck, not slow
POLL_S = 0.25  # between two looks at the backlog


class SystemCalls(Core):
    """The calls."""

    @call
    def diagnostics(self) -> Talk[dict[str, Any]]:
        """The whole diagnostics body."""
        return (yield from self.reading(Plain, f"{MEMORY}/diagnostics")).body

    @call
    def backlog(self) -> Talk[Backlog]:
        """Index counts out of the diagnostics."""
        return (yield from self._backlog())

    @call
    def ready(self) -> Talk[Ready]:
        """Readiness; a service that is warming up answers `ready=False` with reasons.

        Raises:
            DependencyDown: nothing listens there.
        """
        came = yield Request(method="GET", path="/readyz")
        if not isinstance(came, httpx.Response):
            raise self.unreachable(came)
        return parsed(Ready, json_of(came))

    @call
    def wait_indexed(
        self,
        *,
        stall_s: float = STALL_S,
        poll_s: float = POLL_S,
        on_progress: Callable[[Backlog], None] | None = None,
    ) -> Talk[Backlog]:
        """Wait until nothing is pending in the index, over all users.

        Raises:
            DeadlineExceeded: the backlog did not shrink for `stall_s` seconds.
        """
        lowest: int | None = None
        moved = time.monotonic()
        while True:
            backlog = yield from self._backlog()
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
            yield Pause(poll_s)

    @call
    def stats(self, *, user_id: str | None = None) -> Talk[Stats]:
        """What the user's tiers hold and how they do."""
        return (yield from self.reading(StatsReply, f"{MEMORY}/stats", user_id=user_id)).stats

    @call
    def growth(self, *, days: int | None = None, user_id: str | None = None) -> Talk[Growth]:
        """Memories per day."""
        return (
            yield from self.reading(Growth, asked(f"{MEMORY}/growth", days=days), user_id=user_id)
        )

    @call
    def health(self, *, full: bool = False) -> Talk[HealthReply]:
        """The components; `unhealthy` is an answer here, not an error.

        Raises:
            DependencyDown: nothing listens there.
        """
        came = yield Request(method="GET", path=asked(f"{MEMORY}/health", full=full or None))
        if not isinstance(came, httpx.Response):
            raise self.unreachable(came)
        return parsed(HealthReply, json_of(came))

    @call
    def version(self) -> Talk[str]:
        """The version of the service."""
        return str((yield from self.reading(Plain, f"{SYSTEM}/version")).body["version"])

    @call
    def system_health(self) -> Talk[dict[str, Any]]:
        """Whether the servers behind it answer, and warnings."""
        return (yield from self.reading(Plain, f"{SYSTEM}/health")).body

    @call
    def disk_space(self) -> Talk[dict[str, Any]]:
        """Room on the disk of the data directory."""
        return (yield from self.reading(Plain, f"{SYSTEM}/disk-space")).body

    def _backlog(self) -> Talk[Backlog]:
        found = yield from self.reading(Plain, f"{MEMORY}/diagnostics")
        return parsed(Backlog, found.body.get("index"))
