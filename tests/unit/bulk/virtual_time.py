"""Time that passes only while nothing else can go on: minutes of waiting in milliseconds."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.support.clock import START

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Waits for nothing, and counts the seconds it was asked to wait."""

    elapsed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits, and nothing can ever go on"
        self.elapsed_s += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer when nothing is ready."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.elapsed_s


class LoopClock:
    """Implements `Clock` on the loop that runs."""

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def run_virtually(main: Coroutine[Any, Any, T], limit_s: float) -> T:
    """`asyncio.run` in virtual time; TimeoutError when it takes more than `limit_s` of it."""

    async def limited() -> T:
        async with asyncio.timeout(limit_s):
            return await main

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(limited())
