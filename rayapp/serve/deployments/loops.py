"""The loops of a background owner: started once, watched by Serve's health check, drained."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

# Time for the work in hand when a replica is drained, seconds.
STOP_TIMEOUT_S = 8.0
# Pause between two cancels, seconds: one may be swallowed (`core/cancelling.py`).
CANCEL_EVERY_S = 0.25
# After a minute without work a look costs more than it finds: the pauses grow this many times, but
# not beyond the longest, because the first work after the quiet waits for it.
QUIET_S, QUIET_TIMES, LONGEST_S = 60.0, 4, 1.5


class Pause:
    """Between two looks for work, of one loop."""

    def __init__(self, pause_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause_s = pause_s
        self._quiet_s = max(pause_s, min(QUIET_TIMES * pause_s, LONGEST_S))
        self._clock = clock
        self._worked_at = clock()

    async def after(self, worked: int) -> None:
        """None at all where there was work: more may be due."""
        if worked:
            self._worked_at = self._clock()
        else:
            await asyncio.sleep(self.length_s)

    @property
    def length_s(self) -> float:
        quiet = self._clock() - self._worked_at >= QUIET_S
        return self._quiet_s if quiet else self._pause_s


class Loops:
    """`stopping` tells a loop to end by itself after the work in hand: every loop looks at it."""

    def __init__(self) -> None:
        self.stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, *loops: Coroutine[Any, Any, None]) -> None:
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    def check(self) -> None:
        """Raises RuntimeError when a loop has ended by itself: Serve replaces the replica."""
        for task in self._tasks:
            if task.done() and not self.stopping:
                raise RuntimeError(f"a background loop ended: {task}")

    async def stop(self) -> None:
        """Let the first loop finish what it has in hand; cancel the others, until they end."""
        self.stopping = True
        for _ in range(round(STOP_TIMEOUT_S / CANCEL_EVERY_S)):
            for task in self._tasks[1:]:
                task.cancel()
            if not self._tasks:
                return
            _, running = await asyncio.wait(self._tasks, timeout=CANCEL_EVERY_S)
            if not running:
                return
