"""A store of which each change, and each look, holds its rows."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from rayapp.core.scope import ReadScope, WriteScope


@dataclass
class HeldStore:
    """What it does not hold is answered by `inner`. `hold`: what holds rows."""

    inner: Any
    hold: Callable[[Any], Any]

    def reads(self, scope: ReadScope) -> Any:
        return self.hold(self.inner.reads(scope))

    async def change(self, scope: WriteScope, work: Callable[[Any], Awaitable[Any]]) -> Any:
        async def run(rows: Any) -> Any:
            held = self.hold(rows)
            done = await work(held)
            await held.write()
            return done

        return await self.inner.change(scope, run)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
