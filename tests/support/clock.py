"""A clock that moves only when a test moves it."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


class FakeClock:
    """Implements `Clock`; wall time and monotonic time advance together."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._elapsed_s = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed_s

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._elapsed_s += seconds

    async def elapse(self, seconds: float) -> None:
        """`advance`, where a contract waits."""
        self.advance(seconds)
