"""Rows of the in-memory store, and values in the form in which a database gives them back."""

import copy
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from rayapp.core.errors import InvalidInput
from rayapp.graphs.records import Contribution
from rayapp.memory.item import IndexState, MemoryItem, MemoryVersion, Stats, SyncState
from rayapp.memory.rules.filtering import is_followed, is_understood

Timed = TypeVar("Timed", MemoryItem, MemoryVersion, Stats, IndexState)


@dataclass(slots=True)
class Row:
    """`contributed` and `follow_up_at` belong to the graphs, `understand_at` to what is derived;
    they are not part of the item."""

    item: MemoryItem
    pending_since: datetime | None
    follow_up_at: datetime | None = None
    contributed: Contribution | None = None
    understand_at: datetime | None = None

    def hold(self, item: MemoryItem, since: datetime) -> None:
        """Keep `item`; `since` starts the wait of an item that was not waiting."""
        pending = item.index.sync_state is SyncState.PENDING
        self.pending_since = (self.pending_since or since) if pending else None
        self.item = item

    def revise(self, item: MemoryItem) -> None:
        """Keep what an edit made of the item; what the graphs know of it stays, and is due."""
        self.hold(item, item.updated_at)
        followed = self.contributed is not None or is_followed(item)
        self.follow_up_at = item.updated_at if followed else None
        self.understand_at = item.updated_at if is_understood(item) else None

    @property
    def due_at(self) -> datetime | None:
        state = self.item.index
        return state.next_attempt_at if state.sync_state is SyncState.PENDING else None


def stored_form(item: MemoryItem) -> MemoryItem:
    """`item` as a read gives it back: UTC milliseconds, and its own copies of plain JSON."""
    source = replace(
        item.source,
        book=copy.deepcopy(item.source.book),
        datagov=copy.deepcopy(item.source.datagov),
    )
    return replace(
        _each_time(item), stats=_each_time(item.stats), index=_each_time(item.index), source=source
    )


def version_form(row: MemoryVersion) -> MemoryVersion:
    return replace(_each_time(row), stats=_each_time(row.stats))


def _each_time(value: Timed) -> Timed:
    times = {
        f.name: to_ms(getattr(value, f.name))
        for f in fields(value)
        if isinstance(getattr(value, f.name), datetime)
    }
    return cast(Timed, replace(cast(Any, value), **times))


def to_ms(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise InvalidInput("A time has no zone: send it with an offset, such as 2026-01-01T00:00Z.")
    return at.astimezone(UTC).replace(microsecond=at.microsecond // 1000 * 1000)
