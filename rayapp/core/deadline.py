"""The time budget of one request, handed down as what is left of it."""

from __future__ import annotations

from collections.abc import Callable

from rayapp.core.errors import DeadlineExceeded


class Deadline:
    """`timeout_s` seconds from now; `monotonic` is the clock, in seconds."""

    __slots__ = ("_at", "_monotonic")

    def __init__(self, timeout_s: float, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._at = monotonic() + timeout_s

    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._at - self._monotonic())

    @property
    def expired(self) -> bool:
        return self.remaining() <= 0

    def limit(self, cap_s: float) -> float:
        """Seconds a stage may take: its own cap or what is left, whichever is less.

        Raises:
            DeadlineExceeded: nothing is left.
        """
        left = self.remaining()
        if left <= 0:
            raise DeadlineExceeded("The time budget of the request is used up; retry later.")
        return min(cap_s, left)
