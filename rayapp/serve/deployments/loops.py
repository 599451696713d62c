"""The loops of a background owner: started once, watched by Serve's health check, drained."""

import asyncio
from collections.abc import Coroutine
from typing import Any

# Time for the work in hand when a replica is drained, seconds.
STOP_TIMEOUT_S = 8.0
# Pause between two cancels, seconds: one may be swallowed (`core/cancelling.py`).
CANCEL_EVERY_S = 0.25


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
