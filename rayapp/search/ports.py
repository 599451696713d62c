"""The seam of the search: receipts.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One line of a receipt, position from 1; 0 where it has no number."""

    position: int
    memory_id: str
    tier: Tier
    final: float
    ranks: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    receipt_id: str
    user_id: str
    query: str
    recipe: str
    shown: tuple[Shown, ...]
    at: datetime
    expires_at: datetime
    conversation_id: str | None = None
    turn_id: str | None = None
    concepts: tuple[str, ...] = ()
    context_type: str | None = None
    timings: dict[str, float] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    principal: str = ""
    scored_at: datetime | None = None


class ReceiptReads(Protocol):
    async def get(self, scope: ReadScope, receipt_id: str) -> Receipt | None: ...
    async def latest(
        self, scope: ReadScope, conversation_id: str, limit: int, *, unscored: bool = False
    ) -> list[Receipt]:
        """The living receipts of a conversation, newest first."""

    async def questions(
        self, scope: ReadScope, conversation_id: str, limit: int, *, besides_turn: str | None = None
    ) -> list[tuple[str, tuple[str, ...], datetime]]:
        """(query, concepts, at) of the same receipts, without what they showed.

        Those of the turn `besides_turn` are left out.
        """

    async def recent(self, limit: int) -> list[Receipt]:
        """The last living receipts of all users, newest first. For maintenance only: nothing of
        this may reach an answer to a user."""


class ReceiptStore(ReceiptReads, Protocol):
    async def put_many(self, receipts: Sequence[Receipt]) -> None: ...


class Receipts(ReceiptReads, Protocol):
    """What services are given; see `GroupedReceipts`."""

    async def put(self, receipt: Receipt) -> None: ...


# Among the ranks of a shown memory: it stood there, no question brought it.
STANDING = "standing"
