"""How long a stored memory waits until it is in the index, from acknowledgements and backlog."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the diagnostics: when it was asked, when it answered, what was pending."""

    asked_at: float
    answered_at: float
    pending: int


def index_delays(acknowledged: Sequence[float], samples: Sequence[Sample]) -> list[float]:
    """Seconds from acknowledgement to indexed, one per memory that was seen indexed.

    The backlog is a count, so the k-th acknowledged memory counts as indexed at the first sample
    with (acknowledged before it was asked) - pending >= k. This is an upper bound: the answer's
    arrival is taken as the moment, memories stored while the sample was on its way count as
    pending but not as acknowledged, and the indexer is assumed to be first in, first out.
    Resolution: the time between two samples. Nothing else may store meanwhile.
    """
    times = sorted(acknowledged)
    delays: list[float] = []
    done = sent = 0
    for sample in sorted(samples, key=lambda one: one.asked_at):
        while sent < len(times) and times[sent] <= sample.asked_at:
            sent += 1
        while done < sent - sample.pending:
            delays.append(max(0.0, sample.answered_at - times[done]))
            done += 1
    return delays
