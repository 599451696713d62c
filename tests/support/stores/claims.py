"""A working `ClaimQueue` in process memory."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from rayapp.core.claims import Claim, Queued, WorkState
from rayapp.core.runtime import Clock
from tests.support.stores.rows import to_ms

Row = TypeVar("Row")


@dataclass(slots=True)
class _Kept(Generic[Row]):
    row: Row
    priority: int
    due: datetime
    fence: int
    state: WorkState = WorkState.WAITING
    tries: int = 0
    error: str | None = None


class InMemoryClaimQueue(Generic[Row]):
    """Implements `ClaimQueue`."""

    def __init__(self, clock: Clock, key: Callable[[Row], Hashable]) -> None:
        self._clock = clock
        self._key = key
        self._rows: dict[Hashable, _Kept[Row]] = {}

    async def offer(self, row: Row, *, priority: int = 0, delay_s: float = 0.0) -> None:
        known = self._rows.get(self._key(row))
        fence = known.fence + 1 if known else 1
        self._rows[self._key(row)] = _Kept(row, priority, self._at(delay_s), fence)

    async def offer_all(self, rows: Sequence[Row], *, priority: int = 0) -> None:
        for row in rows:
            await self.offer(row, priority=priority)

    async def claim(self, owner: str, limit: int, claim_s: float) -> list[Claim[Row]]:
        now = to_ms(self._clock.now())
        ready = [one for one in self._rows.values() if self._waits(one) and one.due <= now]
        ready.sort(key=lambda one: (one.priority, one.due))
        taken = ready[: max(0, limit)]
        for one in taken:
            one.fence += 1
            one.due = self._at(claim_s)
        return [Claim(one.row, one.fence, one.tries) for one in taken]

    async def beat(self, claim: Claim[Row], claim_s: float) -> bool:
        held = self._held(claim)
        if held is not None:
            held.due = self._at(claim_s)
        return held is not None

    async def keep(self, claim: Claim[Row], row: Row) -> bool:
        held = self._held(claim)
        if held is not None:
            held.row = row
        return held is not None

    async def finish(self, claim: Claim[Row], row: Row | None) -> bool:
        held = self._held(claim)
        if held is None:
            return False
        if row is None:
            del self._rows[self._key(claim.row)]
        else:
            held.row, held.state, held.error = row, WorkState.DONE, None
        return True

    async def retry(self, claim: Claim[Row], *, delay_s: float, error: str, counts: bool) -> bool:
        held = self._held(claim)
        if held is not None:
            held.due, held.error = self._at(delay_s), error
            held.tries = claim.tries + counts
        return held is not None

    async def bury(self, claim: Claim[Row], error: str) -> bool:
        held = self._held(claim)
        if held is not None:
            held.state, held.error, held.tries = WorkState.DEAD, error, claim.tries + 1
        return held is not None

    async def count(self, state: WorkState) -> int:
        return sum(one.state is state for one in self._rows.values())

    def queued(self, key: Hashable) -> Queued[Row] | None:
        one = self._rows.get(key)
        return None if one is None else Queued(one.row, one.state, one.tries, one.error)

    def rows(self) -> list[Row]:
        return [one.row for one in self._rows.values()]

    def remove(self, wanted: Callable[[Row], bool]) -> int:
        """What an erasure takes away; how many."""
        gone = [key for key, one in self._rows.items() if wanted(one.row)]
        for key in gone:
            del self._rows[key]
        return len(gone)

    def _held(self, claim: Claim[Row]) -> _Kept[Row] | None:
        one = self._rows.get(self._key(claim.row))
        return one if one and self._waits(one) and one.fence == claim.fence else None

    def _waits(self, one: _Kept[Row]) -> bool:
        return one.state is WorkState.WAITING

    def _at(self, seconds: float) -> datetime:
        return to_ms(self._clock.now() + timedelta(seconds=seconds))
