"""Whether what the graphs remember under an id happened to the memory that has the id now. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from rayapp.memory.item import MemoryItem

# An outcome and a memory may be timed by two processes whose clocks differ by this much.
CLOCK_SKEW = timedelta(seconds=1)


def happened_to(item: MemoryItem, at: datetime) -> bool:
    """True unless it happened before `item` was stored.

    An id may be used again after its memory was deleted, and the graphs remember the deleted one
    for a while: what it did is not the new memory's doing.
    """
    return at >= item.stored_at - CLOCK_SKEW


def inherited_at(winner: MemoryItem, at: datetime) -> datetime:
    """When an outcome of a memory that was merged into `winner` counts for it.

    The copy that is kept may be the later one: older outcomes count from when it was stored.
    """
    return max(at, winner.stored_at)
