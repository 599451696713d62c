"""What a changed item owes: near-duplicates are merged, and the content graph follows."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from rayapp.core.errors import DeadlineExceeded, DependencyDown, Overloaded, RayappError
from rayapp.core.runtime import Runtime
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import FollowUp
from rayapp.graphs.rules.content import content_changes, contribution_of
from rayapp.learning.dedup import DedupService
from rayapp.learning.pauses import Pauses
from rayapp.learning.rules.dedup import DEDUP_TIERS
from rayapp.memory.item import MemoryItem, Status, SyncState
from rayapp.text.expansions import Expansions

log = logging.getLogger("rayapp.effects")
# What one bad row can raise: our errors, and what a malformed value makes of the code that reads
# it. Anything else is a defect that must be seen.
BAD_ROW = (RayappError, ValueError, TypeError, AttributeError, KeyError)
OUTAGES = (DependencyDown, Overloaded, DeadlineExceeded)

# Neighbours are compared by vector, so a fresh item waits for its own: a second is what indexing
# takes when nothing is wrong; then a tenth of what it waited already.
INDEX_WAIT_S = 1.0
INDEX_WAIT_SHARE = 0.1
# After ten minutes without an index the content graph goes on without looking for duplicates.
INDEX_PATIENCE_S = 600.0


class ContentEffects:
    """One batch of due items at a time."""

    def __init__(
        self, graphs: GraphStore, dedup: DedupService, expansions: Expansions, *, runtime: Runtime
    ) -> None:
        self._graphs = graphs
        self._dedup = dedup
        self._expansions = expansions
        self._clock = runtime.clock
        self._metrics = runtime.metrics
        self._batch = runtime.settings.learning.effects_batch
        self._pauses = Pauses(runtime.clock)

    async def run_once(self) -> int:
        """How many items were merged or settled. A bad one is put off and stops no other."""
        self._pauses.forget_old()
        settled = 0
        for due in await self._graphs.follow_ups(self._batch):
            try:
                settled += await self._follow(due)
            except BAD_ROW as error:
                await self._put_off(due.item, error)
        if settled:
            self._metrics.count("effects_settled", settled, kind="content")
        return settled

    async def _follow(self, due: FollowUp) -> bool:
        item = due.item
        if self._compared(item):
            waits = await self._wait_for_index(item)
            if waits or await self._merged(item):
                return not waits  # a merged item changed: it is due again
        after = contribution_of(item, self._expansions)
        changes = content_changes(due.contributed, after, item.memory_id)
        settled = await self._graphs.settle_content(due, after, changes)
        if settled:
            self._pauses.forget(item.point_id)
        return settled

    def _compared(self, item: MemoryItem) -> bool:
        """Whether near-duplicates of the item are looked for."""
        if item.status is not Status.ACTIVE or item.tier not in DEDUP_TIERS:
            return False
        state = item.index.sync_state
        hopeful = state is SyncState.PENDING and self._age_s(item) < INDEX_PATIENCE_S
        return self._dedup.enabled and (state is SyncState.SYNCED or hopeful)

    async def _wait_for_index(self, item: MemoryItem) -> bool:
        if item.index.sync_state is SyncState.SYNCED:
            return False
        pause_s = max(INDEX_WAIT_S, INDEX_WAIT_SHARE * self._age_s(item))
        await self._graphs.postpone(item.point_id, self._later(pause_s))
        return True

    async def _merged(self, item: MemoryItem) -> bool:
        try:
            return await self._dedup.merge(item)
        except OUTAGES:
            if self._age_s(item) < INDEX_PATIENCE_S:
                raise
            return False

    async def _put_off(self, item: MemoryItem, error: Exception) -> None:
        pause_s = self._pauses.failed(item.point_id, outage=isinstance(error, OUTAGES))
        self._metrics.count("effects_failed", kind="content")
        log.warning("item %s waits %.0f s: %r", item.memory_id, pause_s, error)
        await self._graphs.postpone(item.point_id, self._later(pause_s))

    def _age_s(self, item: MemoryItem) -> float:
        """Time since the change that is followed up."""
        return (self._clock.now() - item.updated_at).total_seconds()

    def _later(self, seconds: float) -> datetime:
        return self._clock.now() + timedelta(seconds=seconds)
