"""Life of a memory: age, success, its place in a full bank, hidden, superseded. Pure."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rayapp.core.errors import Conflict, InvalidInput
from rayapp.memory.item import (
    NEUTRAL_SCORE,
    SCORE_DECIMALS,
    IndexOp,
    MemoryItem,
    Outcome,
    Stats,
    Status,
    subject_of,
)
from rayapp.memory.rules.creation import check_validity, open_scope, period_scope, restored
from rayapp.memory.rules.filtering import is_expired
from rayapp.memory.rules.revision import touch

# Largest unit first: seconds of one unit, and its short name.
_UNITS = ((31_557_600, "y"), (2_629_800, "mo"), (86_400, "d"), (3_600, "h"), (60, "min"))


def age(created_at: datetime, now: datetime) -> str:
    """Age in its largest whole unit, for example `3 d`; below a minute and in the future `now`."""
    seconds = (now - created_at).total_seconds()
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


# What one outcome adds to `success_count`. It always adds 1 to `uses`, a failure too: otherwise bad
# items would never look worse than new ones.
SUCCESS_VALUE: Mapping[Outcome, float] = {
    Outcome.WORKED: 1.0,
    Outcome.PARTIAL: 0.5,
    Outcome.UNKNOWN: 0.25,
    Outcome.FAILED: 0.0,
}


# Quantile of the normal distribution for 95 % confidence.
WILSON_Z = 1.96


def wilson_lower_bound(success: float, uses: int) -> float:
    """Lower bound of the success rate (Wilson 1927), 4 decimals; 0.5 when never used.

    `success` may be fractional; it counts as `uses` at most.
    """
    return NEUTRAL_SCORE if uses <= 0 else success_estimate(success, uses).low


@dataclass(frozen=True, slots=True)
class SuccessEstimate:
    """How often a memory helps: what is most likely, and between what it lies (95 %); each 0..1."""

    value: float
    low: float
    high: float


def success_estimate(success: float, uses: int) -> SuccessEstimate:
    """The Wilson interval and its centre, 4 decimals: what people are shown (decision 0049).

    The lower bound alone falls from 0.5 to 0.2 with the first success, because it also says how
    little is known. Here no success lowers any of the three numbers, and no failure raises one.
    """
    if uses <= 0:
        return UNJUDGED
    share = min(1.0, max(0.0, success / uses))
    square = WILSON_Z * WILSON_Z
    scale = 1 + square / uses
    centre = share + square / (2 * uses)
    spread = WILSON_Z * math.sqrt((share * (1 - share) + square / (4 * uses)) / uses)
    return SuccessEstimate(
        value=round_stored(centre / scale),
        low=round_stored(max(0.0, (centre - spread) / scale)),
        high=round_stored(min(1.0, (centre + spread) / scale)),
    )


# Nothing is known: what the formula tends to.
UNJUDGED = SuccessEstimate(value=NEUTRAL_SCORE, low=0.0, high=1.0)


def shown_share(stats: Stats) -> float:
    """The one number that people are shown of it."""
    return success_estimate(stats.success_count, stats.uses).value


def rate(uses: int, success: float) -> dict[str, Any]:
    """The counters and what follows from them, as fields of `Stats`."""
    success = round_stored(success)
    return {
        "uses": uses,
        "success_count": success,
        "success_rate": round_stored(success / uses) if uses else NEUTRAL_SCORE,
        "wilson_score": wilson_lower_bound(success, uses),
    }


def round_stored(value: float) -> float:
    """Every stored number has 4 decimals, so that stores and domain code agree exactly."""
    return round(value, SCORE_DECIMALS)


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
        return "1 less useful fact was archived to make room"
    return f"{len(archived)} less useful facts were archived to make room"


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


# A newer memory replaces an older one: the older is closed, hidden by default, and kept.


def check_supersedes(old: MemoryItem | None, named: str, new: MemoryItem, now: datetime) -> None:
    """Raise unless `new` may replace `old`, which the caller called `named`.

    An id of another user and an id that never was answer alike.
    """
    if new.memory_id in (named, old and old.memory_id):
        raise InvalidInput(
            "A memory cannot supersede itself; edit it instead.", code="bad_supersedes"
        )
    if old is None:
        raise InvalidInput(
            f"supersedes names {named}, which is no memory of yours; send the id of the memory "
            "that is replaced, or leave it out.",
            code="bad_supersedes",
        )
    if old.status is not Status.ACTIVE:
        raise InvalidInput(
            f"supersedes names {named}, which is {old.status.value}; restore it first, or leave "
            "supersedes out.",
            code="bad_supersedes",
        )
    if old.superseded_by not in (None, new.memory_id):
        raise Conflict(
            f"Memory {old.memory_id} is already superseded by {old.superseded_by}; supersede "
            "that one.",
            code="already_superseded",
            details={"memory_id": old.superseded_by},
        )
    if subject_of(old) != subject_of(new):
        raise InvalidInput(
            f"supersedes names {named}, which is about somebody else; send the same subject_id, or "
            "leave supersedes out.",
            code="bad_supersedes",
        )
    _check_time(old, new, now)


def _check_time(old: MemoryItem, new: MemoryItem, now: datetime) -> None:
    """The change lies between the beginning of `old` and `now`: closing hides `old` at once."""
    if change_time(new) > now:
        raise InvalidInput(
            f"The memory that replaces {old.memory_id} takes over in the future; send a valid_from "
            "that is not later than now, or send it when the change has come.",
            code="bad_supersedes",
        )
    if old.valid_from is not None and change_time(new) < old.valid_from:
        raise InvalidInput(
            f"Memory {old.memory_id} is valid from a later time than the one that replaces it; "
            "send a later valid_from.",
            code="bad_validity",
        )


def change_time(new: MemoryItem) -> datetime:
    """When `new` took over: what it says itself, else when it happened, by our clock at the latest:
    a client's may be ahead."""
    return new.valid_from or min(new.created_at, new.stored_at)


def superseding(new: MemoryItem, old: MemoryItem) -> MemoryItem:
    """`new` as it is stored.

    It is valid from the change on: without that, a question about the time before would show both.
    Raises InvalidInput: it would end before it begins.
    """
    check_validity(change_time(new), new.valid_to)
    return replace(new, supersedes=old.memory_id, valid_from=change_time(new))


def supersede(
    old: MemoryItem, by: MemoryItem, now: datetime, *, vanished: str | None = None
) -> MemoryItem:
    """`old`, closed by `by`; the same object when another one, or nothing active, is in its place.

    An end that `old` had before the change stays. What is `vanished` holds no place.
    """
    if old.superseded_by not in (None, vanished) or old.status is not Status.ACTIVE:
        return old
    ends = change_time(by) if by.valid_from or by.supersedes else now
    if old.valid_from is not None:
        ends = max(ends, old.valid_from)
    ends = ends if old.valid_to is None else min(old.valid_to, ends)
    return touch(old, IndexOp.PAYLOAD, now, superseded_by=by.memory_id, valid_to=ends)


def has_ended(item: MemoryItem, now: datetime) -> bool:
    """Whether what it says held until a moment that has passed."""
    return item.valid_to is not None and item.valid_to <= now


def reopen(item: MemoryItem) -> MemoryItem:
    """What was superseded is current again, without an end."""
    if item.superseded_by is None:
        return item
    return replace(item, superseded_by=None, valid_to=None, dedup_scope=open_scope(item))


# What is said again after it had ended is true in two periods: two memories, of which the earlier
# has a dedup scope of its own. Why the stored one of them changed:
ANOTHER_PERIOD = "another period"


def earlier_period(one: MemoryItem, other: MemoryItem) -> MemoryItem | None:
    """Of two that say the same, the one that ended before the other began; None: one period."""
    if (one.valid_from, one.valid_to) == (other.valid_from, other.valid_to):
        return None
    for earlier, later in ((one, other), (other, one)):
        begins = _beginning(later)
        if earlier.valid_to is not None and begins is not None and earlier.valid_to <= begins:
            return earlier
    return None


def _beginning(item: MemoryItem) -> datetime | None:
    """None: it was over when it was said, so that its beginning is not known."""
    said = change_time(item)
    over = item.valid_from is None and item.valid_to is not None and item.valid_to <= said
    return None if over else said


def as_period(item: MemoryItem, earlier: bool) -> MemoryItem:
    """`item` beside the same text of another period: each holds within its own time alone."""
    if earlier:
        return replace(item, dedup_scope=period_scope(item))
    return replace(item, valid_from=change_time(item))


def as_periods(item: MemoryItem, other: MemoryItem) -> tuple[MemoryItem, MemoryItem] | None:
    """`item` and `other`, two active ones that say the same, each within its own time alone; None:
    they are one period."""
    earlier = earlier_period(item, other)
    if item.dedup_scope == other.dedup_scope:
        if earlier is None:
            return None
        return as_period(item, earlier is item), as_period(other, earlier is other)
    if (item.valid_from, item.valid_to) == (other.valid_from, other.valid_to):
        return None
    if earlier is None:
        return item, other
    # Told apart before: the later one may not know yet when it begins.
    return (item, as_period(other, False)) if earlier is item else (as_period(item, False), other)


def brought_back(item: MemoryItem, now: datetime, until: datetime | None = None) -> MemoryItem:
    """What a person wants back: current, whatever had hidden it; `until`: to when it holds now.

    An archived one that held for a time of its own keeps that: it is what it was.
    """
    hidden = item.superseded_by is not None or has_ended(item, now)
    if item.status is Status.ACTIVE and not hidden and not is_expired(item, now):
        return item
    back = reopen(restored(item, now))
    if not hidden or item.status is not Status.ACTIVE:
        return back
    return replace(back, valid_to=until, dedup_scope=open_scope(back))
