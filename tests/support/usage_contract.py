"""What every ledger of model calls must do."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.inference.ports import CallSeen, ChatUsage, UsageRow, UsageStore, UsageTotal
from rayapp.memory.scope import ReadScope

DANA, NOA = ReadScope("dana"), ReadScope("noa")


def a_row(at: datetime, helper: str = "fact_extraction", **changes: Any) -> UsageRow:
    """A call of `dana`: 10 tokens asked, 5 answered, at a cost of 0.25."""
    values: dict[str, Any] = {
        "user_id": "dana",
        "model": "scripted",
        "prompt_version": "fact_extraction.he@1",
        "usage": ChatUsage(prompt_tokens=10, completion_tokens=5),
        "cost": 0.25,
        "duration_ms": 12.5,
    }
    return UsageRow(helper=helper, at=at, **(values | changes))


class UsageContract:
    """`usage` is an empty ledger, `now` the time of its clock."""

    async def test_an_empty_ledger_sums_to_nothing(self, usage: UsageStore, now: datetime) -> None:
        assert await usage.total(DANA, now - timedelta(days=1)) == UsageTotal()

    async def test_calls_are_summed_by_helper(self, usage: UsageStore, now: datetime) -> None:
        for helper in ("fact_extraction", "outcome_detection", "fact_extraction"):
            await usage.add(a_row(now, helper))
        total = await usage.total(DANA, now - timedelta(hours=1))
        assert (total.calls, total.tokens, total.cost) == (3, 45, 0.75)
        assert total.by_helper == {
            "fact_extraction": (2, 30, 0.5),
            "outcome_detection": (1, 15, 0.25),
        }

    async def test_a_failed_call_counts_too(self, usage: UsageStore, now: datetime) -> None:
        await usage.add(a_row(now, ok=False, usage=ChatUsage(estimated=True), cost=0.0))
        total = await usage.total(DANA, now - timedelta(hours=1))
        assert (total.calls, total.tokens) == (1, 0)

    async def test_equal_calls_are_two_calls(self, usage: UsageStore, now: datetime) -> None:
        await usage.add(a_row(now))
        await usage.add(a_row(now))
        assert (await usage.total(DANA, now - timedelta(hours=1))).calls == 2

    async def test_a_user_sees_only_their_own(self, usage: UsageStore, now: datetime) -> None:
        await usage.add(a_row(now, user_id="noa"))
        assert (await usage.total(DANA, now - timedelta(hours=1))).calls == 0
        assert (await usage.total(NOA, now - timedelta(hours=1))).calls == 1

    async def test_the_first_moment_counts(self, usage: UsageStore, now: datetime) -> None:
        """Times are kept in milliseconds."""
        at = now.replace(microsecond=250_900)
        await usage.add(a_row(at))
        assert (await usage.total(DANA, now.replace(microsecond=250_000))).calls == 1
        assert (await usage.total(DANA, now.replace(microsecond=251_000))).calls == 0

    async def test_the_last_calls_are_those_of_everybody(
        self, usage: UsageStore, now: datetime
    ) -> None:
        minute = timedelta(minutes=1)
        await usage.add(
            a_row(now - 2 * minute, "fact_extraction", ok=False, ask_id="a", answered=False)
        )
        await usage.add(a_row(now, "contextual_prefix", user_id="noa"))
        await usage.add(a_row(now - minute, "contextual_prefix", left=True))
        newest = [
            CallSeen("contextual_prefix", True, "noa"),
            CallSeen("contextual_prefix", True, "dana", left=True),
            CallSeen("fact_extraction", False, "dana", "a", answered=False),
        ]
        assert await usage.recent(now - timedelta(hours=1), 9) == newest
        assert await usage.recent(now - timedelta(hours=1), 1) == newest[:1]
        assert await usage.recent(now - minute, 9) == newest[:2]
        assert await usage.recent(now - timedelta(hours=1), 0) == []

    async def test_a_row_is_gone_after_ninety_days(self, usage: UsageStore, now: datetime) -> None:
        await usage.add(a_row(now - timedelta(days=90, minutes=1)))
        await usage.add(a_row(now - timedelta(days=89)))
        assert (await usage.total(DANA, datetime(2000, 1, 1, tzinfo=UTC))).calls == 1

    async def test_a_time_without_a_zone_is_refused(self, usage: UsageStore, now: datetime) -> None:
        with pytest.raises(InvalidInput):
            await usage.add(a_row(now.replace(tzinfo=None)))
        with pytest.raises(InvalidInput):
            await usage.total(DANA, now.replace(tzinfo=None))
        with pytest.raises(InvalidInput):
            await usage.recent(now.replace(tzinfo=None), 1)
