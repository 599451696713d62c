"""When promotion cycles run: those over all users, and a user's own between them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# Whoever holds this lease runs the cycles.
OWNER_LEASE = "maintenance"


@dataclass(frozen=True, slots=True)
class Activity:
    """What a user stored since the last cycle over all users."""

    stored: int = 0
    conversations: int = 0


def cycle_due(now: Activity, seen: Activity, exchanges: int) -> bool:
    """After every `exchanges` stored exchanges, and on a change of conversation.

    `seen` is the activity at the user's own last cycle, so nobody's cycle counts for another.
    """
    switched = now.conversations > max(1, seen.conversations)
    return switched or now.stored - seen.stored >= exchanges


def is_scheduled(
    *, owned: bool, last_cycle: datetime | None, interval: timedelta, now: datetime
) -> bool:
    """Whether the next cycle over all users will come by itself.

    It does while somebody owns them. Between two owners it does too, until a cycle is overdue;
    before the first cycle an owner is still to come.
    """
    return owned or last_cycle is None or now - last_cycle <= interval
