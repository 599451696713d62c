"""Circuit breaker, one per dependency.

closed → open after N failures in a row → half-open after `open_s`, one probe at a time →
closed after M successful probes. A failed probe opens it again. Pattern: M. Nygard, Release It!
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.errors import BadVector, DependencyDown

T = TypeVar("T")


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy:
    """`failures` in a row open it, `open_s` seconds until a probe, `successes` close it.

    Calls that wait in one stall fail together: of failures that overlap in time, one counts.
    """

    failures: int
    open_s: float
    successes: int


@dataclass(frozen=True, slots=True)
class Ticket:
    """Leave to make one call, given `at`; hand it back with `succeed`, `fail` or `release`."""

    generation: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSnapshot:
    """What diagnostics show; `next_probe_s` is 0 when a probe may go now, None when closed."""

    name: str
    state: BreakerState
    failures: int
    successes: int
    last_error: str | None
    next_probe_s: float | None


# Which of several breakers of one name is shown first.
_SEVERITY = (BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN)


def worst_by_name(snapshots: Iterable[BreakerSnapshot]) -> Mapping[str, list[BreakerSnapshot]]:
    """The breakers of each name, the worst first: every replica of a model has its own."""
    found: dict[str, list[BreakerSnapshot]] = {}
    for snapshot in snapshots:
        found.setdefault(snapshot.name, []).append(snapshot)
    for rows in found.values():
        rows.sort(
            key=lambda row: (_SEVERITY.index(row.state), row.last_error is not None, row.failures),
            reverse=True,
        )
    return found


class Breaker:
    """`now` is monotonic seconds everywhere. Not thread-safe: one event loop owns it."""

    def __init__(self, name: str, policy: BreakerPolicy) -> None:
        self.name = name
        self._policy = policy
        self._state = BreakerState.CLOSED
        # Results of calls that started in an earlier state say nothing about this one.
        self._generation = 0
        self._failures = 0
        self._successes = 0
        self._opened_at = 0.0
        self._failed_at = -math.inf
        self._probing = False
        self._last_error: str | None = None

    def admit(self, now: float) -> Ticket | None:
        """A ticket for one call, or None when the call must not be made."""
        if self._state is BreakerState.OPEN and self._wait_s(now) <= 0:
            self._enter(BreakerState.HALF_OPEN)
        if self._state is BreakerState.CLOSED:
            return Ticket(self._generation, now)
        if self._state is BreakerState.HALF_OPEN and not self._probing:
            self._probing = True
            return Ticket(self._generation, now)
        return None

    def succeed(self, ticket: Ticket) -> None:
        if ticket.generation != self._generation:
            return
        self._failures = 0
        if self._state is BreakerState.HALF_OPEN:
            self._probing = False
            self._successes += 1
            if self._successes >= self._policy.successes:
                self._enter(BreakerState.CLOSED)

    def fail(self, ticket: Ticket, error: str, now: float) -> None:
        if ticket.generation != self._generation:
            return
        self._last_error = error
        if self._state is BreakerState.CLOSED and ticket.at < self._failed_at:
            return  # it was on its way when the last failure came: the same stall
        self._failed_at = now
        self._failures += 1
        if self._state is BreakerState.HALF_OPEN or self._failures >= self._policy.failures:
            self._opened_at = now
            self._enter(BreakerState.OPEN)

    def release(self, ticket: Ticket) -> None:
        """The call ended without telling anything about the dependency (it was cancelled)."""
        if ticket.generation == self._generation:
            self._probing = False

    def reset(self) -> bool:
        """Close it by hand and forget the past; False when it was closed."""
        tripped = self._state is not BreakerState.CLOSED
        self._last_error = None
        self._enter(BreakerState.CLOSED)
        return tripped

    def retry_after_s(self, now: float) -> float:
        """Seconds until a call may be admitted; 0 unless open."""
        return self._wait_s(now) if self._state is BreakerState.OPEN else 0.0

    def snapshot(self, now: float) -> BreakerSnapshot:
        closed = self._state is BreakerState.CLOSED
        return BreakerSnapshot(
            name=self.name,
            state=self._state,
            failures=self._failures,
            successes=self._successes,
            last_error=self._last_error,
            next_probe_s=None if closed else self.retry_after_s(now),
        )

    async def call(
        self,
        make_call: Callable[[], Awaitable[T]],
        monotonic: Callable[[], float],
        down: type[DependencyDown],
    ) -> T:
        """Run one call through the breaker.

        DependencyDown, BadVector and TimeoutError count as failures of the dependency; any other
        error was caused by the request (its deadline, its text, a batch that does not fit in
        memory) and only frees the probe.
        Raises DependencyDown: as `down`, without calling, while the breaker is open.
        """
        ticket = self.admit(monotonic())
        if ticket is None:
            raise down(
                f"The breaker of {self.name} is open after: {self._last_error}; retry later.",
                code="breaker_open",
                retry_after_s=round(self.retry_after_s(monotonic()), 1),
            )
        try:
            result = await make_call()
        except (DependencyDown, BadVector, TimeoutError) as error:
            if getattr(error, "code", None) == OUT_OF_MEMORY:
                self.release(ticket)
            else:
                self.fail(ticket, f"{type(error).__name__}: {error}", monotonic())
            raise
        except BaseException:
            self.release(ticket)
            raise
        self.succeed(ticket)
        return result

    def _wait_s(self, now: float) -> float:
        return max(0.0, self._opened_at + self._policy.open_s - now)

    def _enter(self, state: BreakerState) -> None:
        self._state = state
        self._generation += 1
        self._successes = 0
        self._probing = False
        if state is BreakerState.CLOSED:
            self._failures = 0
