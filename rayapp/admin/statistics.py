"""Counts a person looks at."""

from collections import defaultdict
from datetime import UTC, datetime, time, timedelta

from rayapp.admin.ports import GrowthDay, Rates
from rayapp.core.runtime import Runtime
from rayapp.memory.ports import EventStore, MemoryStore, TierCount
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier

# Kinds of the events that transitions leave behind.
PROMOTED, DEMOTED = "promoted", "demoted"
# Events read for a rate. More moves than this within minutes count as this many.
MAX_MOVES = 1_000


class StatisticsService:
    """Counts over one user's memories. Raises StoreDown."""

    def __init__(self, store: MemoryStore, events: EventStore, *, runtime: Runtime) -> None:
        self._store = store
        self._events = events
        self._clock = runtime.clock
        self._metrics = runtime.metrics

    async def tiers(self, scope: ReadScope) -> list[TierCount]:
        """All seven tiers, empty ones included."""
        counts = {count.tier: count for count in await self._store.tier_counts(scope)}
        return [counts.get(tier) or TierCount(tier=tier) for tier in Tier]

    async def rates(self, scope: ReadScope, active: int, window: timedelta) -> Rates:
        """`active`: items of working and history, as `tiers` counts them."""
        return Rates(
            promotion=await self._moved(scope, PROMOTED, active, window),
            demotion=await self._moved(scope, DEMOTED, active, window),
            cache_hit=self._metrics.cache_hit_rate(),
        )

    async def _moved(
        self, scope: ReadScope, kind: str, active: int, window: timedelta
    ) -> float | None:
        """A share above 1 would be a rate of nothing: what moved last is gone already."""
        if active < 1:
            return None
        since = self._clock.now() - window
        events = await self._events.recent(scope, kind, MAX_MOVES)
        return min(1.0, sum(event.at >= since for event in events) / active)

    async def growth(self, scope: ReadScope, days: int) -> list[GrowthDay]:
        """One row per UTC day, gaps filled, oldest first; none where nothing was ever stored, so
        that a chart can say so."""
        today = self._clock.now().date()
        first = today - timedelta(days=days - 1)
        since = datetime.combine(first, time(), UTC)
        total = 0
        by_day: dict[str, dict[str, int]] = defaultdict(dict)
        for date, source, count in await self._store.growth(scope, since):
            if date == "":
                total += count
            else:
                by_day[date][source] = by_day[date].get(source, 0) + count
        rows = []
        for offset in range(days):
            date = (first + timedelta(days=offset)).isoformat()
            total += sum(by_day[date].values())
            rows.append(GrowthDay(date=date, total=total, by_source=dict(by_day[date])))
        return rows if total else []
