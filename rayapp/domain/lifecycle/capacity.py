"""Which facts leave the memory bank when it is full. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from rayapp.domain.memory import MemoryItem

NEVER = datetime.min.replace(tzinfo=UTC)


def surplus(
    items: Sequence[MemoryItem], count: int, *, keep: Collection[str] = ()
) -> list[MemoryItem]:
    """The `count` items that go first; `keep` holds ids that stay whatever their value.

    What was replaced goes before what is current. What a person pinned (`always_inject`) goes only
    when nothing else is left: it was asked to be at hand always.
    """
    leaving = sorted((item for item in items if item.memory_id not in keep), key=_value)
    return leaving[: max(0, count)]


def _value(item: MemoryItem) -> tuple[object, ...]:
    """Replaced first, then poor and unproven, pinned last; the id makes it the same everywhere."""
    return (
        item.superseded_by is None,
        item.always_inject,
        item.quality.quality_score,
        item.stats.wilson_score,
        item.stats.last_outcome_at or NEVER,
        item.point_id,
    )
