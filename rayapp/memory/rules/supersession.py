"""A newer memory replaces an older one: the older is closed, hidden by default, and kept. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from rayapp.core.errors import Conflict, InvalidInput
from rayapp.memory.item import IndexOp, MemoryItem, Status
from rayapp.memory.rules.creation import check_validity
from rayapp.memory.rules.revision import requeued


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

    Raises:
        InvalidInput: it would end before it begins.
    """
    check_validity(change_time(new), new.valid_to)
    return replace(new, supersedes=old.memory_id, valid_from=change_time(new))


def superseded(
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
    return replace(
        old,
        superseded_by=by.memory_id,
        valid_to=ends if old.valid_to is None else min(old.valid_to, ends),
        updated_at=now,
        index=requeued(old.index, IndexOp.PAYLOAD, now),
    )


def reopened(item: MemoryItem) -> MemoryItem:
    """What was superseded is current again, without an end."""
    if item.superseded_by is None:
        return item
    return replace(item, superseded_by=None, valid_to=None)
