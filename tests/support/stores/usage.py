"""The ledger of model calls in memory, for tests."""

from dataclasses import replace
from datetime import datetime, timedelta

from rayapp.core.errors import InvalidInput
from rayapp.core.runtime import Clock
from rayapp.inference.ports import CallSeen, UsageRow, UsageTotal
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope
from tests.support.stores.rows import to_ms

LIFETIME = timedelta(days=90)


class InMemoryUsageStore:
    """Implements `UsageStore`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.rows: list[UsageRow] = []

    async def add(self, row: UsageRow) -> None:
        self.rows.append(replace(row, at=to_ms(_zoned(row.at))))

    async def total(self, scope: ReadScope, since: datetime) -> UsageTotal:
        user_id, oldest = checked_user(scope.user_id), self._clock.now() - LIFETIME
        _zoned(since)
        by_helper: dict[str, tuple[int, int, float]] = {}
        for row in self.rows:
            if row.user_id != user_id or row.at < since or row.at <= oldest:
                continue
            calls, tokens, cost = by_helper.get(row.helper, (0, 0, 0.0))
            used = row.usage.prompt_tokens + row.usage.completion_tokens
            by_helper[row.helper] = (calls + 1, tokens + used, cost + row.cost)
        sums = list(by_helper.values())
        return UsageTotal(
            calls=sum(one[0] for one in sums),
            tokens=sum(one[1] for one in sums),
            cost=sum(one[2] for one in sums),
            by_helper=dict(sorted(by_helper.items())),
        )

    async def recent(self, since: datetime, limit: int) -> list[CallSeen]:
        since, oldest = _zoned(since), self._clock.now() - LIFETIME
        rows = [row for row in self.rows if row.at >= since and row.at > oldest]
        rows.sort(key=lambda row: row.at)
        return [
            CallSeen(row.helper, row.ok, row.user_id, row.ask_id, row.answered, row.left)
            for row in rows[::-1][: max(0, limit)]
        ]


def _zoned(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise InvalidInput("A time has no zone: send it with an offset.")
    return at
