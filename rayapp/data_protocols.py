"""The seams of the data pages: hidden memories, rows of a user, sizes, and personalities.

Errors: an implementation raises only classes of `rayapp.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rayapp.domain.data.records import (
    CollectionSize,
    Compaction,
    LegacyFact,
    RowCounts,
    SessionUser,
)
from rayapp.domain.memory import MemoryItem
from rayapp.domain.personality.records import Shelf, Template
from rayapp.domain.scope import ReadScope, WriteScope
from rayapp.domain.tiers import Tier


class UserRows(Protocol):
    """What the truth keeps of one user, beyond the reads of `MemoryStore`."""

    async def hidden(self, scope: ReadScope, limit: int) -> list[MemoryItem]:
        """Memories archived with a reason of `domain.data.ghosts`, newest first."""
        ...

    async def counts(self, scope: ReadScope) -> RowCounts: ...
    async def delete_page(self, scope: WriteScope, tier: Tier, limit: int, at: datetime) -> int:
        """Delete up to `limit` memories of a tier in one transaction, each as `MemoryStore.replace`
        deletes one: a tombstone for the indexer, versions gone, what was merged into it too.

        How many, merged ones included; 0 when none is left. A memory that is part of one in
        another tier goes too, for its text stands in this one; the other stays.
        """
        ...

    async def clear_sessions(self, scope: WriteScope) -> int:
        """Forget the user's conversations and what was shown in them; how many there were."""
        ...

    async def clear_graph(self, scope: WriteScope) -> int:
        """Empty all graphs of the user, so that a backfill builds the content graph anew; how
        many rows there were."""
        ...

    async def clear_documents(self, scope: WriteScope) -> int:
        """Forget the rows of the user's books, not their memories; how many there were."""
        ...


class Housekeeping(Protocol):
    """The truth as its administrator sees it: all users, nothing that says what they keep."""

    async def sizes(self) -> list[CollectionSize]:
        """Of every collection of this service that exists, by name."""
        ...

    async def compact(self, collection: str, timeout_s: float) -> Compaction:
        """Give the free space of one collection's file back, as far as the server can."""
        ...

    async def session_users(self) -> list[SessionUser]:
        """Users whose id is 64 hexadecimal digits, the longest unchanged first."""
        ...

    async def forget_rows(self, user_id: str) -> int:
        """Remove what is kept of a user beside the memories; how many rows."""
        ...

    async def remove_points(self, point_ids: Sequence[str]) -> int:
        """Remove rows of memories, whatever their state, for a reset; how many there were."""
        ...

    async def empty(self, collection: str) -> int:
        """Remove all rows of a collection that a reset empties; how many there were."""
        ...


class LegacyBank(Protocol):
    """The first client's old collection of facts. Its rows only get a mark that they were moved."""

    async def total(self, scope: ReadScope) -> int:
        """Rows of the user; 0 when there is no such collection."""
        ...

    def rows(self, scope: ReadScope) -> AsyncIterator[LegacyFact]:
        """All rows of the user, in the order of their ids."""
        ...

    async def mark_moved(self, scope: WriteScope, raw_id: str, at: datetime) -> None:
        """`rows` gives the row with `moved` from now on; nothing when it is gone."""
        ...

    async def everybody(self) -> int:
        """Rows of all users, for a reset."""
        ...

    async def empty(self) -> int:
        """Remove the rows of all users, for a reset; how many there were."""
        ...


class PersonalityStore(Protocol):
    """`personality`: one row per user, with the templates it wrote and the one in use."""

    async def shelf(self, scope: ReadScope) -> Shelf:
        """Empty, with nothing in use, for a user who never chose."""
        ...

    async def put(self, scope: WriteScope, template: Template, *, activate: bool) -> bool:
        """Save a template under its id, and use it when `activate`; whether it replaced one.

        Conflict, code `personality_full`, when it would be one more than a user may keep.
        """
        ...

    async def activate(self, scope: WriteScope, template_id: str, at: datetime) -> None:
        """Use a template. The caller knows that it exists."""
        ...

    async def delete(self, scope: WriteScope, template_id: str) -> bool:
        """Forget a template, unless it is in use or not there; whether it was."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DataStores:
    """The stores that only personalities and the data pages use."""

    rows: UserRows
    housekeeping: Housekeeping
    legacy: LegacyBank
    personality: PersonalityStore
