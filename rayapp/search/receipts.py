"""Receipts written in groups: the answer does not wait for its own.

What a crash may lose is the receipts of the last window, 20 ms; an outcome that names one of them
is refused as unknown (decision 0055). Whoever reads a user's receipts in this process writes those
of that user first.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import uuid6

from rayapp.core.errors import RayappError
from rayapp.core.pending_writes import PendingWrites
from rayapp.core.runtime import Clock, Metrics
from rayapp.memory.scope import ReadScope
from rayapp.search.ports import Receipt, ReceiptStore

log = logging.getLogger("rayapp.search")
# A group is written when it has so many, however short it waited.
MOST = 64
# A receipt that is not there may wait in the group of another replica: looked for this often, while
# it is so young.
LOOKS, LOOK_S = 4, 0.05
YOUNG_S = 2.0


@dataclass(eq=False)
class GroupedReceipts:
    """`Receipts` over a store. `window_s` 0: each is written at once, and waited for."""

    store: ReceiptStore
    window_s: float
    clock: Clock
    metrics: Metrics
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._waiting: list[Receipt] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing = PendingWrites()

    async def put(self, receipt: Receipt) -> None:
        if self.window_s <= 0.0:
            await self.store.put_many([receipt])
            return
        self._waiting.append(receipt)
        if len(self._waiting) >= MOST:
            self._begin()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.window_s, self._begin)

    async def flush(self) -> None:
        """Until what was put is written, or given up and counted."""
        self._begin()
        await self._writing.all()

    async def settle(self, user_id: str) -> None:
        """The same for one user: who reads theirs does not wait for the receipts of others."""
        if any(one.user_id == user_id for one in self._waiting):
            self._begin()
        await self._writing.of(user_id)

    async def get(self, scope: ReadScope, receipt_id: str) -> Receipt | None:
        await self.settle(scope.user_id)
        found = await self.store.get(scope, receipt_id)
        looks = 0 if found or not self._is_young(receipt_id) else LOOKS
        while found is None and looks:
            looks -= 1
            await self.sleep(LOOK_S)
            found = await self.store.get(scope, receipt_id)
        return found

    async def latest(
        self, scope: ReadScope, conversation_id: str, limit: int, *, unscored: bool = False
    ) -> list[Receipt]:
        await self.settle(scope.user_id)
        return await self.store.latest(scope, conversation_id, limit, unscored=unscored)

    async def questions(
        self, scope: ReadScope, conversation_id: str, limit: int, *, besides_turn: str | None = None
    ) -> list[tuple[str, tuple[str, ...], datetime]]:
        await self.settle(scope.user_id)
        return await self.store.questions(scope, conversation_id, limit, besides_turn=besides_turn)

    async def recent(self, limit: int) -> list[Receipt]:
        await self.flush()
        return await self.store.recent(limit)

    def _is_young(self, receipt_id: str) -> bool:
        """Whether its id (UUIDv7) was made just now; one of another form is nobody's."""
        try:
            made_ms = uuid6.UUID(receipt_id).time
        except ValueError:
            return False
        age = self.clock.now().timestamp() - made_ms / 1_000.0
        return abs(age) < YOUNG_S

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            group, self._waiting = self._waiting, []
            self._writing.begin(self._write(group), (one.user_id for one in group))

    async def _write(self, group: list[Receipt]) -> None:
        try:
            await self.store.put_many(group)
        except RayappError as error:
            self.metrics.count("degraded", len(group), reason="receipt")
            log.warning("%d receipts were not written: %s", len(group), error.message)
