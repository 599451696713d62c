"""Which tool results leave a conversation that holds too many. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rayapp.memory.item import MemoryItem

# The oldest so many are compared: all of a full conversation would be read for one newcomer.
LOOKED_AT = 50


def surplus_results(oldest: Sequence[MemoryItem], count: int, *, keep: str) -> list[MemoryItem]:
    """The `count` of `oldest` that go: what was replaced, then what helped least, then the oldest.

    `keep`: the newcomer, which stays.
    """
    leaving = sorted((item for item in oldest if item.memory_id != keep), key=_value)
    return leaving[: max(0, count)]


def _value(item: MemoryItem) -> tuple[object, ...]:
    return (
        item.superseded_by is None,
        item.stats.score,
        item.stats.uses,
        item.stored_at,
        item.point_id,
    )
