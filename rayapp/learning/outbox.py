"""What outcomes and changed items still owe: graph increments, promotion checks, merges."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from rayapp.bulk.ports import Lease
from rayapp.core.runtime import Runtime
from rayapp.graphs.dead_references import forget_dead
from rayapp.graphs.ports import GraphStore
from rayapp.learning.content_outbox import BAD_ROW, OUTAGES, ContentEffects
from rayapp.learning.dedup import DedupService
from rayapp.learning.graph_outbox import GraphSettling
from rayapp.learning.pauses import Pauses
from rayapp.learning.ports import OutcomeStore
from rayapp.learning.promotion import PromotionService
from rayapp.learning.records import Effect, OutcomeEvent
from rayapp.search.texts import Texts

log = logging.getLogger("rayapp.effects")
# Events are due at once. Another process's clock may be ahead: its events are taken all the same.
CLOCK_SKEW = timedelta(seconds=1)
# Pause between two counts of the backlog, seconds: a gauge needs no more.
GAUGE_S = 10.0

Settle = Callable[[Sequence[OutcomeEvent]], Awaitable[int]]


class EffectsService:
    """Drains the outboxes. Any number may run at once: what one settles, another skips."""

    def __init__(
        self,
        outcomes: OutcomeStore,
        graphs: GraphStore,
        promotion: PromotionService,
        dedup: DedupService,
        *,
        texts: Texts,
        runtime: Runtime,
    ) -> None:
        self._outcomes = outcomes
        self._graphs = graphs
        self._promotion = promotion
        self._content = ContentEffects(graphs, dedup, texts.expansions, runtime=runtime)
        self._settling = GraphSettling(graphs, texts.expansions, runtime=runtime)
        self._clock = runtime.clock
        self._metrics = runtime.metrics
        self._batch = runtime.settings.learning.effects_batch
        self._settle_age = timedelta(seconds=runtime.settings.promotion.settle_s)
        self._pauses: dict[Effect, Pauses] = {
            "graph": Pauses(runtime.clock),
            "promotion": Pauses(runtime.clock),
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
        now = self._clock.now() + CLOCK_SKEW
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
        _, cleaned, after = await forget_dead(self._graphs, limit, self._clean_after)
        self._clean_after = after
        return cleaned

    # --- events

    async def _drain(self, effect: Effect, before: datetime, settle: Settle) -> int:
        settled = 0
        for user_id, events in (await self._owing(effect, before)).items():
            settled += await self._drain_user(effect, user_id, events, settle)
        if settled:
            self._metrics.count("effects_settled", settled, kind=effect)
        return settled

    async def _owing(self, effect: Effect, before: datetime) -> dict[str, list[OutcomeEvent]]:
        """The oldest events by user. Those that wait take no place from the others."""
        pauses = self._pauses[effect]
        pauses.forget_old()
        events = await self._outcomes.due(effect, self._batch + len(pauses), before=before)
        by_user: dict[str, list[OutcomeEvent]] = {}
        for event in [event for event in events if not pauses.waits(_key(event))][: self._batch]:
            by_user.setdefault(event.user_id, []).append(event)
        return by_user

    async def _drain_user(
        self, effect: Effect, user_id: str, events: Sequence[OutcomeEvent], settle: Settle
    ) -> int:
        """A batch that was too much for the time limit is tried again in smaller ones."""
        settled = 0
        size = self._sizes.pop(user_id, self._batch)
        for start in range(0, len(events), size):
            some = events[start : start + size]
            try:
                settled += await self._attempt(effect, some, settle)
            except OUTAGES as error:
                self._put_off(effect, some, error)
                self._sizes[user_id] = max(1, len(some) // 2)
                return settled
        if size * 2 < self._batch:
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
        self._metrics.count("effects_failed", len(events), kind=effect)
        keys = ", ".join(event.idempotency_key for event in events[:3])
        log.warning("%d outcomes still owe %s (%s): %r", len(events), effect, keys, error)

    async def _settle_promotion(self, events: Sequence[OutcomeEvent]) -> int:
        """A check that is repeated changes nothing, so the flag is cleared after it."""
        judged = dict.fromkeys(item.memory_id for event in events for item in event.applied)
        if judged:
            await self._promotion.check(events[0].user_id, list(judged), lease=self._lease)
        return await self._outcomes.settle("promotion", events)

    async def _gauge(self) -> None:
        now = self._clock.monotonic()
        if self._gauged_at is None or now - self._gauged_at >= GAUGE_S:
            self._metrics.gauge("effects_backlog", float(await self._outcomes.backlog()))
            self._gauged_at = now


def _key(event: OutcomeEvent) -> tuple[str, str]:
    return event.user_id, event.idempotency_key
