"""Values about the data of one user as a whole: what is hidden, counted and cleared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier


class ClearTarget(StrEnum):
    """What a user may clear, by the client contract's names."""

    MEMORY_BANK = "memory_bank"
    WORKING = "working"
    HISTORY = "history"
    PATTERNS = "patterns"
    DOCUMENTS = "documents"
    SESSIONS = "sessions"
    KNOWLEDGE_GRAPH = "knowledge-graph"


CLEARED_TIERS: Mapping[ClearTarget, Tier] = {
    ClearTarget.MEMORY_BANK: Tier.MEMORY_BANK,
    ClearTarget.WORKING: Tier.WORKING,
    ClearTarget.HISTORY: Tier.HISTORY,
    ClearTarget.PATTERNS: Tier.PATTERNS,
    ClearTarget.DOCUMENTS: Tier.BOOKS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenItem:
    """A memory that a person hid, and why."""

    item: MemoryItem
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of one user beside the memories. `nodes`, `edges`: of the content graph; `learned`: what
    outcomes taught (routing, actions, known solutions). Clearing the graph deletes all three."""

    sessions: int = 0
    nodes: int = 0
    edges: int = 0
    learned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TierTotal:
    active: int = 0
    archived: int = 0

    @property
    def count(self) -> int:
        return self.active + self.archived


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCounts:
    """Everything that the data page shows of a user."""

    tiers: Mapping[Tier, TierTotal]
    rows: RowCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """`left`: what the time limit of the call did not reach; asking again goes on with it."""

    target: ClearTarget
    deleted: int
    left: int
    at: datetime
