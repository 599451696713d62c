"""The seams of understanding.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rayapp.core.claims import ClaimQueue, Queued
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.understanding.records import Mention, Understanding


@dataclass(frozen=True, slots=True)
class SourceText:
    """One text that passed the gate, as it is understood."""

    user_id: str  # owner
    source_id: str  # memory_id
    text: str
    said_at: datetime
    conversation_id: str | None
    subject_id: str | None
    perspective_owner_id: str | None
    topics: tuple[str, ...]
    doc_id: str | None = None


@dataclass(frozen=True, slots=True)
class SourcePage:
    """Whose rows rest on which sources, a page of rows. `after`: its last row, None: there are no
    more."""

    sources: frozenset[tuple[str, str]]
    after: tuple[str, str] | None


class Understander(Protocol):
    async def understand(self, source: SourceText) -> None:
        """Derive from it; what the same source gave before is replaced by difference."""

    async def take_back(self, user_id: str, source_id: str) -> None:
        """What only this source gave goes."""


class UnderstandingStore(ClaimQueue[Understanding], Protocol):
    """`understandings`, a row per source, and the marks of memories that were written since.

    A write of a memory marks it in the same write; a deletion marks the tombstone.
    """

    async def marked(self, limit: int, settle_s: float) -> list[MemoryItem]:
        """What was written, of all users, oldest first; nothing until the oldest waits so long, so
        that what comes within that time is taken together. Tombstones too."""

    async def unmark(self, items: Sequence[MemoryItem]) -> int:
        """They are in the queue, or need nothing; how many. What was written again stays marked."""

    async def find(self, scope: ReadScope, memory_id: str) -> Queued[Understanding] | None:
        """The row of a source."""

    async def rows_of(self, items: Sequence[MemoryItem]) -> list[Understanding]:
        """The rows that these memories have, of all users. For the worker alone."""

    async def same(self, scope: ReadScope, source_hash: str) -> Understanding | None:
        """A source that says the same, the newest first."""

    async def speaking_of(
        self, scope: ReadScope, topics: Sequence[str], since: datetime
    ) -> list[Understanding]:
        """Rows of the user since then of one of these topics, the newest first, at most
        `MOST_MENTIONS`."""

    async def hear(self, scope: WriteScope, memory_id: str, again: Mention) -> None:
        """The same text came again; the last times are kept."""

    async def settle(self, row: Understanding) -> bool:
        """Keep a row that was worked on outside the queue. False: one of a newer version is there,
        and it is due again."""

    async def users_after(self, user_id: str, limit: int) -> list[str]:
        """Whose memories there are, in order. For jobs alone."""

    async def memories_after(
        self, scope: ReadScope, memory_id: str, limit: int
    ) -> list[MemoryItem]:
        """Active memories of the user, by id."""

    async def stored(self, scope: ReadScope) -> int:
        """How many these are."""
