"""Time limits of a request that are passed down, and the clock of its stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rayapp.core.errors import DeadlineExceeded

# Where the time of a request went: every instant is of one stage, so stages add up.

# The time in which no stage was running.
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Span:
    """A stage and when it ran, seconds of one monotonic clock."""

    stage: str
    begun: float
    ended: float


def exclusive_ms(spans: Sequence[Span], begun: float, ended: float) -> dict[str, float]:
    """Milliseconds of each stage (`<stage>_ms`) between `begun` and `ended`; they add up to it.

    Stages run side by side and within each other. An instant is of the stage that began last among
    those that run, so a stage within another one has its own time, and what runs beside a longer
    one does not count twice. A stage that had no instant for itself is there with 0.
    """
    inside = [span for span in spans if begun <= span.begun and span.ended <= ended]
    edges = sorted({begun, ended, *(at for one in inside for at in (one.begun, one.ended))})
    taken = dict.fromkeys([*(span.stage for span in inside), OTHER], 0.0)
    for start, end in pairwise(edges):
        running = [one for one in inside if one.begun <= start and one.ended >= end]
        last = max(running, key=lambda one: (one.begun, -one.ended), default=None)
        taken[last.stage if last else OTHER] += end - start
    return {f"{stage}_ms": round(seconds * 1000, 3) for stage, seconds in taken.items()}


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

        Raises DeadlineExceeded: nothing is left.
        """
        left = self.remaining()
        if left <= 0:
            raise DeadlineExceeded("The time budget of the request is used up; retry later.")
        return min(cap_s, left)
