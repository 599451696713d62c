"""What outcomes and changed items still owe: graph increments, promotion checks, merges."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta

from rayapp.bulk.ports import Lease
from rayapp.core.errors import DeadlineExceeded, DependencyDown, Overloaded, RayappError
from rayapp.core.runtime import Runtime
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import FollowUp
from rayapp.graphs.rules.content import content_changes, contribution_of
from rayapp.graphs.service import forget_dead
from rayapp.learning.dedup import DedupService
from rayapp.learning.ports import OutcomeStore
from rayapp.learning.promotion import Pauses, PromotionService
from rayapp.learning.records import Effect, OutcomeEvent
from rayapp.learning.rules.dedup import DEDUP_TIERS
from rayapp.learning.rules.graph_effects import outcome_changes
from rayapp.memory.item import MemoryItem, Status, SyncState
from rayapp.search.rules.recipes import Texts
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


@dataclass(eq=False)
class FollowUps:
    """One batch of due items at a time."""

    graphs: GraphStore
    dedup: DedupService
    expansions: Expansions
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._pauses = Pauses(self.runtime.clock)

    async def run_once(self) -> int:
        """How many items were merged or settled. A bad one is put off and stops no other."""
        self._pauses.forget_old()
        settled = 0
        for due in await self.graphs.follow_ups(self.runtime.settings.learning.effects_batch):
            try:
                settled += await self._follow(due)
            except BAD_ROW as error:
                await self._put_off(due.item, error)
        if settled:
            self.runtime.metrics.count("effects_settled", settled, kind="content")
        return settled

    async def _follow(self, due: FollowUp) -> bool:
        item = due.item
        if self._is_compared(item):
            waits = await self._wait_for_index(item)
            if waits or await self._merge(item):
                return not waits  # a merged item changed: it is due again
        after = contribution_of(item, self.expansions)
        changes = content_changes(due.contributed, after, item.memory_id)
        settled = await self.graphs.settle_content(due, after, changes)
        if settled:
            self._pauses.forget(item.point_id)
        return settled

    def _is_compared(self, item: MemoryItem) -> bool:
        """Whether near-duplicates of the item are looked for."""
        if item.status is not Status.ACTIVE or item.tier not in DEDUP_TIERS:
            return False
        state = item.index.sync_state
        hopeful = state is SyncState.PENDING and self._age_s(item) < INDEX_PATIENCE_S
        return self.dedup.enabled and (state is SyncState.SYNCED or hopeful)

    async def _wait_for_index(self, item: MemoryItem) -> bool:
        if item.index.sync_state is SyncState.SYNCED:
            return False
        pause_s = max(INDEX_WAIT_S, INDEX_WAIT_SHARE * self._age_s(item))
        await self.graphs.postpone(item.point_id, self._later(pause_s))
        return True

    async def _merge(self, item: MemoryItem) -> bool:
        try:
            return await self.dedup.merge(item)
        except OUTAGES:
            if self._age_s(item) < INDEX_PATIENCE_S:
                raise
            return False

    async def _put_off(self, item: MemoryItem, error: Exception) -> None:
        pause_s = self._pauses.failed(item.point_id, outage=isinstance(error, OUTAGES))
        self.runtime.metrics.count("effects_failed", kind="content")
        log.warning("item %s waits %.0f s: %r", item.memory_id, pause_s, error)
        await self.graphs.postpone(item.point_id, self._later(pause_s))

    def _age_s(self, item: MemoryItem) -> float:
        """Time since the change that is followed up."""
        return (self.runtime.clock.now() - item.updated_at).total_seconds()

    def _later(self, seconds: float) -> datetime:
        return self.runtime.clock.now() + timedelta(seconds=seconds)


# What outcomes owe the graphs: paid at once by who recorded one, else by who drains the outbox.

# An outcome's answer waits so long for the graphs, seconds: some milliseconds are usual.
AT_ONCE_S = 1.0
# Users whose outcomes one process settles at the same time; the others are left to the outbox.
MAX_AT_ONCE = 8


@dataclass(eq=False)
class GraphEffects:
    """Any number may run at once: what one settles, another skips."""

    graphs: GraphStore
    expansions: Expansions
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._going: dict[str, asyncio.Task[None]] = {}

    async def settle(self, events: Sequence[OutcomeEvent]) -> int:
        """Settle one user's events; how many another process had not settled before."""
        changes = outcome_changes(events, self.expansions)
        if await self.graphs.settle_outcomes(events, changes):
            return len(events)
        # Another process settled some of them: what is left is settled one by one.
        if len(events) == 1:
            return 0
        return sum([await self.settle([event]) for event in events])

    async def at_once(self, event: OutcomeEvent) -> None:
        """Settle an outcome before it is answered, so that the user's next question knows of it.

        What is late goes on without being waited for; what fails is left to the outbox. Outcomes
        of one user that come together would only fight for the same rows: one goes, the others
        are left to the outbox too.
        """
        user_id = event.user_id
        if user_id in self._going or len(self._going) >= MAX_AT_ONCE:
            return
        task = asyncio.get_running_loop().create_task(self._try(event))
        self._going[user_id] = task
        task.add_done_callback(lambda _: self._going.pop(user_id))
        await asyncio.wait({task}, timeout=AT_ONCE_S)

    async def _try(self, event: OutcomeEvent) -> None:
        try:
            settled = await self.settle([event])
        except BAD_ROW as error:
            log.info("outcome %s is left to the outbox: %r", event.idempotency_key, error)
        else:
            if settled:
                self.runtime.metrics.count("effects_settled", settled, kind="graph")


# Events are due at once. Another process's clock may be ahead: its events are taken all the same.
CLOCK_SKEW = timedelta(seconds=1)
# Pause between two counts of the backlog, seconds: a gauge needs no more.
GAUGE_S = 10.0

Settle = Callable[[Sequence[OutcomeEvent]], Awaitable[int]]


@dataclass(eq=False)
class OutboxService:
    """Drains the outboxes. Any number may run at once: what one settles, another skips."""

    outcomes: OutcomeStore
    graphs: GraphStore
    promotion: PromotionService
    dedup: DedupService
    _: KW_ONLY
    texts: Texts
    runtime: Runtime

    def __post_init__(self) -> None:
        self._content = FollowUps(
            self.graphs, self.dedup, self.texts.expansions, runtime=self.runtime
        )
        self._settling = GraphEffects(self.graphs, self.texts.expansions, runtime=self.runtime)
        self._settle_age = timedelta(seconds=self.runtime.settings.promotion.settle_s)
        self._pauses: dict[Effect, Pauses] = {
            "graph": Pauses(self.runtime.clock),
            "promotion": Pauses(self.runtime.clock),
        }
        self._sizes: dict[str, int] = {}
        self._lease: Lease | None = None
        self._gauged_at: float | None = None
        self._clean_after: str | None = None

    async def run_once(self, lease: Lease | None = None, *, promotes: bool = True) -> int:
        """Settle one batch of every kind; how many events and items were settled.

        Args:
            lease: the owner's; a tier changes only while it holds.
            promotes: False in a process that does not own the tiers: it leaves them alone.
        """
        now = self.runtime.clock.now() + CLOCK_SKEW
        settled = await self._drain("graph", now, self._settling.settle)
        settled += await self._content.run_once()
        if promotes:
            self._lease = lease
            old = now - self._settle_age
            settled += await self._drain("promotion", old, self._settle_promotion)
        await self._gauge()
        return settled

    async def clean(self, limit: int) -> int:
        """Look at the next `limit` rows for references to dead items; how many rows lost some."""
        _, cleaned, after = await forget_dead(self.graphs, limit, self._clean_after)
        self._clean_after = after
        return cleaned

    # --- events

    async def _drain(self, effect: Effect, before: datetime, settle: Settle) -> int:
        settled = 0
        for user_id, events in (await self._owing(effect, before)).items():
            settled += await self._drain_user(effect, user_id, events, settle)
        if settled:
            self.runtime.metrics.count("effects_settled", settled, kind=effect)
        return settled

    async def _owing(self, effect: Effect, before: datetime) -> dict[str, list[OutcomeEvent]]:
        """The oldest events by user. Those that wait take no place from the others."""
        pauses = self._pauses[effect]
        pauses.forget_old()
        events = await self.outcomes.due(
            effect, self.runtime.settings.learning.effects_batch + len(pauses), before=before
        )
        by_user: dict[str, list[OutcomeEvent]] = {}
        for event in [event for event in events if not pauses.waits(_key(event))][
            : self.runtime.settings.learning.effects_batch
        ]:
            by_user.setdefault(event.user_id, []).append(event)
        return by_user

    async def _drain_user(
        self, effect: Effect, user_id: str, events: Sequence[OutcomeEvent], settle: Settle
    ) -> int:
        """A batch that was too much for the time limit is tried again in smaller ones."""
        settled = 0
        size = self._sizes.pop(user_id, self.runtime.settings.learning.effects_batch)
        for start in range(0, len(events), size):
            some = events[start : start + size]
            try:
                settled += await self._attempt(effect, some, settle)
            except OUTAGES as error:
                self._put_off(effect, some, error)
                self._sizes[user_id] = max(1, len(some) // 2)
                return settled
        if size * 2 < self.runtime.settings.learning.effects_batch:
            self._sizes[user_id] = size * 2
        return settled

    async def _attempt(self, effect: Effect, events: Sequence[OutcomeEvent], settle: Settle) -> int:
        """Settle one user's events; when one is bad, each by itself. Raises OUTAGES."""
        try:
            settled = await settle(events)
        except OUTAGES:
            raise
        except BAD_ROW as error:
            if len(events) > 1:
                return sum([await self._attempt(effect, [event], settle) for event in events])
            self._put_off(effect, events, error)
            return 0
        for event in events:
            self._pauses[effect].forget(_key(event))
        return settled

    def _put_off(self, effect: Effect, events: Sequence[OutcomeEvent], error: Exception) -> None:
        outage = isinstance(error, OUTAGES)
        for event in events:
            self._pauses[effect].failed(_key(event), outage=outage)
        self.runtime.metrics.count("effects_failed", len(events), kind=effect)
        keys = ", ".join(event.idempotency_key for event in events[:3])
        log.warning("%d outcomes still owe %s (%s): %r", len(events), effect, keys, error)

    async def _settle_promotion(self, events: Sequence[OutcomeEvent]) -> int:
        """A check that is repeated changes nothing, so the flag is cleared after it."""
        judged = dict.fromkeys(item.memory_id for event in events for item in event.applied)
        if judged:
            await self.promotion.check(events[0].user_id, list(judged), lease=self._lease)
        return await self.outcomes.settle("promotion", events)

    async def _gauge(self) -> None:
        now = self.runtime.clock.monotonic()
        if self._gauged_at is None or now - self._gauged_at >= GAUGE_S:
            self.runtime.metrics.gauge("effects_backlog", float(await self.outcomes.backlog()))
            self._gauged_at = now


def _key(event: OutcomeEvent) -> tuple[str, str]:
    return event.user_id, event.idempotency_key
