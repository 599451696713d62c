"""What every capability is given by its process: a clock, metrics, circuit breakers."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from rayapp.core.breaker import BreakerSnapshot


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, tz-aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class Metrics(Protocol):
    """Names come from `rayapp.core.metrics`; an unknown name raises."""

    def count(self, name: str, value: float = 1.0, **labels: str) -> None: ...
    def observe(self, name: str, value: float, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


# --- truth ---------------------------------------------------------------------------------


# --- index ---------------------------------------------------------------------------------


# --- models and cache ----------------------------------------------------------------------


class BreakerOwner(Protocol):
    """Has circuit breakers: of this process, or of the replicas behind a handle."""

    async def breakers(self) -> list[BreakerSnapshot]:
        """One per breaker and replica; equal names are replicas. DependencyDown."""
        ...

    async def reset_breakers(self) -> list[str]:
        """Close all of them in every replica, then ask what is behind them once.

        Returns the names of those that were not closed. Whether it answers now is in the
        `last_error` of `breakers`. DependencyDown.
        """
        ...
