"""How old a memory is, in words."""

from __future__ import annotations

from datetime import datetime

# Largest unit first: seconds of one unit, and its short name.
_UNITS = ((31_557_600, "y"), (2_629_800, "mo"), (86_400, "d"), (3_600, "h"), (60, "min"))


def age(created_at: datetime, now: datetime) -> str:
    """Age in its largest whole unit, for example `3 d`; below a minute and in the future `now`."""
    seconds = (now - created_at).total_seconds()
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"
