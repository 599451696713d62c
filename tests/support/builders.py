"""Valid values with readable defaults; a test names only what it is about."""

import hashlib
import itertools
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rayapp.memory.item import ChangeType, MemoryItem, MemoryVersion, point_id_of
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.tiers import Tier

STORED_AT = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
_numbers = itertools.count(1)


def an_item(**changes: Any) -> MemoryItem:
    """A pending working item of user `dana` with its own id and text, but for `changes`.

    `point_id` and `content_hash` follow from the ids and the text, times from `stored_at`.
    """
    number = next(_numbers)
    user_id = changes.pop("user_id", "dana")
    memory_id = changes.pop("memory_id", f"m-{number}")
    text = changes.pop("text", f"note number {number}")
    stored_at = changes.pop("stored_at", STORED_AT)
    item = MemoryItem(
        memory_id=memory_id,
        point_id=point_id_of(user_id, memory_id),
        user_id=user_id,
        tier=Tier.WORKING,
        text=text,
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        created_at=stored_at,
        stored_at=stored_at,
        updated_at=stored_at,
        tier_entered_at=stored_at,
    )
    return replace(item, **changes)


def a_version(item: MemoryItem, **changes: Any) -> MemoryVersion:
    """The row that an edit of `item` leaves behind."""
    return replace(replaced_state(item, ChangeType.UPDATE, None, item.updated_at), **changes)
