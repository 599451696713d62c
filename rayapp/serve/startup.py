"""Opening the dependencies of a process, again and again until they answer.

A constructor must not fail because a server is away: the replica starts, says why it is not ready,
and becomes ready by itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rayapp.core.errors import ConfigError, DependencyDown, IndexDown, RayappError, SchemaMismatch
from rayapp.index.write_barrier import IndexMonitor

log = logging.getLogger("rayapp.startup")
T = TypeVar("T")

STARTING = "starting"
# Pause between two tries, seconds: short, because a user waits for `rayapp up`.
RETRY_S = 0.25
# A mismatch or a wrong setting needs a person: look again, but seldom.
BLOCKED_RETRY_S = 5.0


class Startup:
    """Implements `api.services.Starting`; `problems` are sentences for a person."""

    def __init__(self) -> None:
        self.problems: list[str] = [STARTING]
        self.blocked = False

    @property
    def hindered(self) -> bool:
        """Something is away or does not fit: it is not only slow."""
        return any(one != STARTING for one in self.problems)

    async def until_open(self, opened: Callable[[], Awaitable[T]]) -> T:
        """Call `opened` until it succeeds; what it raises becomes `problems`."""
        while True:
            try:
                result = await opened()
            except RayappError as error:
                pause_s = self._blocked(error)
                await asyncio.sleep(pause_s)
            else:
                self._clear()
                return result

    def _blocked(self, error: RayappError) -> float:
        if error.message not in self.problems:
            log.warning("not ready: %s", error.message)
        self.problems[:] = [error.message]
        self.blocked = isinstance(error, (SchemaMismatch, ConfigError))
        return BLOCKED_RETRY_S if self.blocked else RETRY_S

    def _clear(self) -> None:
        self.problems.clear()
        self.blocked = False

    def failed(self, error: BaseException) -> None:
        """A background task ended by a bug: say so instead of starting for ever."""
        self.problems[:] = [f"The replica failed ({type(error).__name__}); see its log."]

    async def index_opened(self, open_index: Callable[[], Awaitable[None]]) -> bool:
        """Open the index; False when it is away, and the caller goes on without it.

        Search has a rung for a missing index, so it does not hold back readiness. A wrong schema
        does: vectors of another model must never be served.
        """
        try:
            await open_index()
        except IndexDown as error:
            log.warning("the index is away, reads use the truth: %s", error.message)
            return False
        return True

    async def reopen(self, open_index: Callable[[], Awaitable[None]], watch: IndexMonitor) -> None:
        """Try again in the background until the index is open; searches know when it must not."""
        while True:
            await asyncio.sleep(RETRY_S)
            try:
                await open_index()
            except DependencyDown:
                continue
            except SchemaMismatch as error:
                self.problems[:] = [error.message]
                self.blocked = watch.refused = True
                log.error("the index does not fit: %s", error.message)
                await asyncio.sleep(BLOCKED_RETRY_S)
            else:
                watch.refused = False
                self._clear()
                return
