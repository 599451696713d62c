"""Finds what is derived from memories that are not there any more.

A deletion takes it back in its own time, so there is none but by a restored backup or a bug.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from rayapp.core.claims import WorkState
from rayapp.core.runtime import Clock
from rayapp.memory.item import point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ReadScope
from rayapp.understanding.derived.ports import DerivedStore
from rayapp.understanding.ports import SourcePage, UnderstandingStore
from rayapp.understanding.records import TAKE_BACK_FIRST
from rayapp.understanding.rules.sources import gone_row, stands
from rayapp.understanding.statements.ports import KnowledgeStore

# Rows looked at in one read.
PAGE = 500


@dataclass(eq=False)
class Orphans:
    """Looks at all users; what it finds is taken back by the queue of understanding."""

    knowledge: KnowledgeStore
    derived: DerivedStore
    items: MemoryStore
    sources: UnderstandingStore
    clock: Clock

    async def look(self, *, repair: bool) -> Mapping[str, int]:
        """How many sources are not there, and how many are taken back."""
        found: set[tuple[str, str]] = set()
        for store in (self.knowledge, self.derived):
            after: tuple[str, str] | None = None
            while True:
                page: SourcePage = await store.sources_after(after, PAGE)
                found |= await self._gone(page.sources)
                if page.after is None:
                    break
                after = page.after
        if repair:
            for user_id, source_id in sorted(found):
                await self._take_back(user_id, source_id)
        return {"orphans": len(found), "taken_back": len(found) if repair else 0}

    async def _gone(self, sources: frozenset[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those whose memory does not stand; what waits in the queue is seen to already."""
        by_user: dict[str, list[str]] = defaultdict(list)
        for user_id, source_id in sources:
            by_user[user_id].append(source_id)
        gone, now = set(), self.clock.now()
        for user_id, ids in by_user.items():
            scope = ReadScope(user_id, include_shared=False)
            found = await self.items.by_points(scope, [point_id_of(user_id, one) for one in ids])
            there = {one.memory_id for one in found if stands(one, now)}
            for source_id in sorted(set(ids) - there):
                queued = await self.sources.find(scope, source_id)
                if queued is None or queued.state is not WorkState.WAITING:
                    gone.add((user_id, source_id))
        return gone

    async def _take_back(self, user_id: str, source_id: str) -> None:
        row = gone_row(user_id, source_id, self.clock.now())
        await self.sources.offer(row, priority=TAKE_BACK_FIRST)
