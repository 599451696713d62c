"""Writes that an answer does not wait for, by the users whose rows they write."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any

log = logging.getLogger("rayapp.core")


class PendingWrites:
    """Of one event loop. Whoever begins a write looks after its errors; others are logged."""

    def __init__(self) -> None:
        self._users: dict[asyncio.Task[object], frozenset[str]] = {}

    def begin(self, write: Coroutine[Any, Any, object], users: Iterable[str]) -> None:
        task = asyncio.create_task(write)
        self._users[task] = frozenset(users)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[object]) -> None:
        del self._users[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a write beside an answer failed", exc_info=error)

    async def of(self, user_id: str) -> None:
        """Until those of the user that have begun are done."""
        await _done([task for task, users in self._users.items() if user_id in users])

    async def all(self) -> None:
        await _done(list(self._users))


async def _done(tasks: list[asyncio.Task[object]]) -> None:
    if tasks:
        await asyncio.wait(tasks)
