"""Where the time of a request went: every instant is of one stage, so stages add up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
