"""Rows of sources, and marks of memories, in process memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rayapp.core.claims import Claim, Queued
from rayapp.core.runtime import Clock
from rayapp.memory.item import MemoryItem, Status, point_id_of
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.understanding.records import (
    MOST_HEARD,
    MOST_MENTIONS,
    TAKE_BACK_FIRST,
    Mention,
    Understanding,
)
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.claims import InMemoryClaimQueue


class InMemoryUnderstandingStore(InMemoryClaimQueue[Understanding]):
    """Implements `UnderstandingStore`."""

    def __init__(self, clock: Clock, items: InMemoryMemoryStore) -> None:
        super().__init__(clock, lambda row: (row.user_id, row.memory_id))
        self._items = items

    async def claim(self, owner: str, limit: int, claim_s: float) -> list[Claim[Understanding]]:
        await self._hear_of_deletions()
        return await super().claim(owner, limit, claim_s)

    async def _hear_of_deletions(self) -> None:
        """Finds out by looking: a transaction that deletes says so where there is one."""
        for row in self.rows():
            place = self._items._rows.get(point_id_of(row.user_id, row.memory_id))
            dead = place is None or place.item.status is Status.DELETED
            if dead and not row.gone:
                await self.offer(replace(row, gone=True), priority=TAKE_BACK_FIRST)

    async def marked(self, limit: int, settle_s: float) -> list[MemoryItem]:
        now = self._clock.now()
        places = self._items._rows.values()
        found = [(one.understand_at, one.item) for one in places if one.understand_at is not None]
        found = [(at, item) for at, item in found if at <= now]
        found.sort(key=lambda one: one[0])
        if not found or found[0][0] > now - timedelta(seconds=settle_s):
            return []
        return [item for _, item in found[:limit]]

    async def unmark(self, items: Sequence[MemoryItem]) -> int:
        done = 0
        for item in items:
            place = self._items._rows.get(item.point_id)
            as_read = item.version, item.status
            if place is not None and (place.item.version, place.item.status) == as_read:
                place.understand_at = None
                done += 1
        return done

    async def find(self, scope: ReadScope, memory_id: str) -> Queued[Understanding] | None:
        return self.queued((checked_user(scope.user_id), memory_id))

    async def rows_of(self, items: Sequence[MemoryItem]) -> list[Understanding]:
        wanted = {(item.user_id, item.memory_id) for item in items}
        return [row for row in self.rows() if (row.user_id, row.memory_id) in wanted]

    async def same(self, scope: ReadScope, source_hash: str) -> Understanding | None:
        found = [row for row in self._own(scope) if row.source_hash == source_hash]
        return max(found, key=lambda row: row.said_at, default=None)

    async def speaking_of(
        self, scope: ReadScope, topics: Sequence[str], since: datetime
    ) -> list[Understanding]:
        wanted = set(topics)
        found = [
            row
            for row in self._own(scope)
            if row.said_at >= since and not wanted.isdisjoint(row.topics)
        ]
        return sorted(found, key=lambda row: row.said_at, reverse=True)[:MOST_MENTIONS]

    async def hear(self, scope: WriteScope, memory_id: str, again: Mention) -> None:
        kept = self._rows.get((checked_user(scope.user_id), memory_id))
        if kept is not None:
            heard = (*kept.row.heard, again)[-MOST_HEARD:]
            kept.row = replace(kept.row, heard=heard)

    def _own(self, scope: ReadScope) -> list[Understanding]:
        user_id = checked_user(scope.user_id)
        return [row for row in self.rows() if row.user_id == user_id and not row.gone]

    async def settle(self, row: Understanding) -> bool:
        kept = self._rows.get((row.user_id, row.memory_id))
        if kept is not None and kept.row.version > row.version:
            await self.offer(kept.row)
            return False
        await self.offer(row)
        (claim,) = [
            Claim(one.row, one.fence) for key, one in self._rows.items()
            if key == (row.user_id, row.memory_id)
        ]  # fmt: skip
        return await self.finish(claim, row)

    async def users_after(self, user_id: str, limit: int) -> list[str]:
        every = {place.item.user_id for place in self._items._rows.values()}
        return sorted(one for one in every if one > user_id)[:limit]

    async def memories_after(
        self, scope: ReadScope, memory_id: str, limit: int
    ) -> list[MemoryItem]:
        found = [one for one in self._active(scope) if one.memory_id > memory_id]
        return sorted(found, key=lambda one: one.memory_id)[:limit]

    async def stored(self, scope: ReadScope) -> int:
        return len(self._active(scope))

    def _active(self, scope: ReadScope) -> list[MemoryItem]:
        user_id = checked_user(scope.user_id)
        every = (place.item for place in self._items._rows.values())
        return [one for one in every if one.user_id == user_id and one.status is Status.ACTIVE]
