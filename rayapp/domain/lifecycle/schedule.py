"""When a user's own promotion cycle is due, between the cycles over all users. Pure."""

from __future__ import annotations

from dataclasses import dataclass


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
