"""What every service is given by the process it runs in: clock, metrics, breakers, settings."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from rayapp.core.breaker import BreakerSnapshot
from rayapp.core.disk_space import ELSEWHERE, DiskSpace
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import Settings

# Share of a request's time limit that such work may use; the rest is for counting and answering.
TIME_SHARE = 0.6


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, tz-aware UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""


class Metrics(Protocol):
    """Names come from `rayapp.core.metrics`; an unknown name raises."""

    def count(self, name: str, value: float = 1.0, **labels: str) -> None: ...
    def observe(self, name: str, value: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


class BreakerOwner(Protocol):
    """Has circuit breakers: of this process, or of the replicas behind a handle."""

    async def breakers(self) -> list[BreakerSnapshot]:
        """One per breaker and replica; equal names are replicas. DependencyDown."""

    async def reset_breakers(self) -> list[str]:
        """Close all of them in every replica, then ask what is behind them once.

        Returns the names of those that were not closed. Whether it answers now is in the
        `last_error` of `breakers`. DependencyDown.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One per process.

    Attributes:
        new_id: makes a UUIDv7.
        random: 0..1, spreads retries.
        process: names this process in claims and leases.
        disk: of the data directory; `check` it before anything is stored.
        problems: reasons found while starting (a schema mismatch), which block readiness; it grows.
    """

    settings: Settings
    clock: Clock
    metrics: InMemoryMetrics
    new_id: Callable[[], str]
    random: Callable[[], float]
    process: str
    disk: DiskSpace = ELSEWHERE
    problems: Sequence[str] = ()

    @property
    def budget_s(self) -> float:
        """What a request may spend on work that a repeat goes on with, seconds."""
        return TIME_SHARE * self.settings.serve.request_timeout_s

    @property
    def stream_budget_s(self) -> float:
        """The same where the answer may take as long as a stream."""
        return TIME_SHARE * self.settings.stream_limit_s
