"""What a stored item becomes when a transition meets it. Pure; all stores apply the same rule."""

from __future__ import annotations

from collections.abc import Iterable

from rayapp.core.errors import NotFound, VersionConflict
from rayapp.learning.records import Move
from rayapp.memory.item import ChangeType, MemoryItem
from rayapp.memory.rules.revision import revised


def after_move(stored: MemoryItem, move: Move) -> MemoryItem:
    """`stored` after `move`, which was decided on the state in `move.row`.

    Outcomes do not raise the version, but they are what the decision rests on: when one came
    between, nothing is moved and the caller decides again. So no counter is lost, and no item
    leaves that was just found helpful. A merge adds mentions too, so these must be the same. An id
    that was deleted and stored again is another item: the time it was stored tells them apart.
    """
    read = move.row
    same = stored.version == move.expected_version and stored.stats == read.stats
    same = same and stored.stored_at == move.item.stored_at
    if read.change_type is ChangeType.MERGE:
        same = same and stored.quality == read.quality
    if not same:
        raise VersionConflict(
            f"{stored.memory_id} changed meanwhile: read it again and decide again.",
            details={"memory_id": stored.memory_id, "version": stored.version},
        )
    return revised(stored, move.item, read)


def gone(move: Move) -> NotFound:
    """The item of `move` is not there any more."""
    return NotFound(
        f"No memory {move.item.memory_id}: check the id, it may have been deleted.",
        details={"memory_id": move.item.memory_id},
    )


def winner_of(loser: MemoryItem, items: Iterable[MemoryItem]) -> MemoryItem | None:
    """The one of `items` that `loser` was merged into."""
    wanted = (loser.user_id, loser.merged_into)
    return next((item for item in items if (item.user_id, item.memory_id) == wanted), None)
