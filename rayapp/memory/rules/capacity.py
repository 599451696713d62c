"""Who has a place in a memory bank that is full. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from rayapp.memory.item import MemoryItem

NEVER = datetime.min.replace(tzinfo=UTC)
# The lists of a person. The tag `pinned` is none of them: facts without a tag carry it.
WISH_TAGS: tuple[str, ...] = ("goal", "value")


def is_wish(item: MemoryItem) -> bool:
    """A person's explicit wish: pinned, a goal or a value. The bank never drops it by itself."""
    return item.always_inject or not set(WISH_TAGS).isdisjoint(item.tags)


def surplus(
    items: Sequence[MemoryItem],
    count: int,
    *,
    keep: Collection[str] = (),
    newest: Collection[str] = (),
) -> list[MemoryItem]:
    """The `count` items that go first, fewer when only wishes are left; `keep` holds ids that
    stay whatever their value.

    What was replaced goes before what is current, of equals the older one; `newest` holds ids that
    are the newest of all.
    """
    leaving = [item for item in items if item.memory_id not in keep and _may_leave(item)]
    leaving.sort(
        key=lambda item: (*_worth(item), item.memory_id in newest, item.stored_at, item.point_id)
    )
    return leaving[: max(0, count)]


def without_room(
    new: Sequence[MemoryItem], present: Sequence[MemoryItem], over: int
) -> list[MemoryItem]:
    """Those of `new` that must not be stored, in the order of `new`.

    A new fact takes the place of one that is worth no more than it. A wish takes the place of any
    that is not a wish; where only wishes are left, it finds none either.

    Args:
        present: active facts among which the least are; more do not change the answer.
        over: how many facts too many there would be with all of `new`.
    """
    if over <= 0:
        return []
    places = [(*_worth(item), 0, 0) for item in present if _may_leave(item)]
    places += [(*_worth(item), 1, -at) for at, item in enumerate(new)]
    places.sort()
    refused = {-place[-1] for place in places[:over] if place[-2] == 1}
    return [item for at, item in enumerate(new) if at in refused]


def left_for(kept: Sequence[MemoryItem], gone: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Who left for each of `kept`, as if they had been stored one after the other.

    What a fact replaces leaves for it. Free places are taken first; then one leaves for each.
    A bank that was above its capacity before is cleared by the first one.
    """
    if not kept:
        return {}
    found = {item.memory_id: [one for one in gone if one == item.supersedes] for item in kept}
    named = {one for names in found.values() for one in names}
    others = [one for one in gone if one not in named]
    takers = [item.memory_id for item in kept if not found[item.memory_id]] or [kept[0].memory_id]
    for name, one in zip(reversed(takers), reversed(others), strict=False):
        found[name].append(one)
    found[takers[0]][:0] = others[: max(0, len(others) - len(takers))]
    return {name: tuple(names) for name, names in found.items()}


def room_made(archived: Sequence[str]) -> str:
    """What a person or an assistant is told of those that left; at least one did."""
    if len(archived) == 1:
        return f"1 less useful fact was archived to make room ({archived[0]})"
    return f"{len(archived)} less useful facts were archived to make room ({', '.join(archived)})"


def _may_leave(item: MemoryItem) -> bool:
    return item.superseded_by is not None or not is_wish(item)


def _worth(item: MemoryItem) -> tuple[bool, bool, float, float, datetime]:
    """Replaced first, then poor and unproven, wishes last."""
    return (
        item.superseded_by is None,
        is_wish(item),
        item.quality.quality_score,
        item.stats.wilson_score,
        item.stats.last_outcome_at or NEVER,
    )
