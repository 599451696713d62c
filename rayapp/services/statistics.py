"""Counts a person looks at."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, time, timedelta

from rayapp.domain.requests import GrowthDay, TierStats
from rayapp.domain.scope import ReadScope
from rayapp.domain.tiers import Tier
from rayapp.protocols import Clock, MemoryStore, TierCount


class StatisticsService:
    """Implements `service_protocols.Statistics`."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def tiers(self, scope: ReadScope) -> list[TierStats]:
        counts = {count.tier: count for count in await self._store.tier_counts(scope)}
        return [_stats(tier, counts.get(tier)) for tier in Tier]

    async def growth(self, scope: ReadScope, days: int) -> list[GrowthDay]:
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
        return rows


def _stats(tier: Tier, count: TierCount | None) -> TierStats:
    if count is None:
        return TierStats(tier=tier)
    judged = count.worked + count.failed
    return TierStats(
        tier=tier,
        active=count.active,
        archived=count.archived,
        deleted=count.deleted,
        uses_total=count.uses_total,
        success_rate=count.worked / judged if judged else 0.5,
    )
