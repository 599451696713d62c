"""Hidden memories ("ghosts"): archived ones whose reason says that a person hid them.

There is no second list of them (decision 0031): the truth alone says what is shown.
"""

from rayapp.memory.item import MemoryItem, Status

PREFIX = "ghost:"
# The first text after every one that starts with the prefix: bounds a range in an index.
PREFIX_END = "ghost;"
DEFAULT_REASON = "user_action"  # client contract


def archived_reason(reason: str) -> str:
    """What is kept as the reason of the archived memory."""
    return f"{PREFIX}{reason.strip() or DEFAULT_REASON}"


def hidden_reason(item: MemoryItem) -> str | None:
    """Why a person hid the memory; None when nobody did, or it was shown again."""
    reason = item.archived_reason or ""
    if item.status is not Status.ARCHIVED or not reason.startswith(PREFIX):
        return None
    return reason.removeprefix(PREFIX)
