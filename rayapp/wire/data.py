"""The data pages over HTTP: hidden memories, counts, clearing."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import Field

from rayapp.memory.requests import CLEARED_TIERS, Cleared, HiddenItem, UserCounts
from rayapp.memory.rules.lifecycle import DEFAULT_REASON, PREFIX
from rayapp.memory.tiers import tier_name
from rayapp.wire.bases import (
    MAX_PAGE,
    MAX_REASON_CHARS,
    Answer,
    IdempotencyKey,
    Lenient,
    MemoryId,
    Repeated,
    Success,
    TierName,
    is_none,
)
from rayapp.wire.memories import preview

# With its prefix the reason still fits where reasons of archived memories are kept.
MAX_GHOST_REASON = MAX_REASON_CHARS - len(PREFIX)


class GhostBody(Lenient):
    """A memory to hide."""

    aliases: ClassVar = {"memoryId": "memory_id"}
    memory_id: MemoryId = Field(description="Id of the memory.")
    tier: TierName | None = Field(None, description="Where the caller saw it; not needed.")
    reason: Annotated[str, Field(min_length=1, max_length=MAX_GHOST_REASON)] = Field(
        DEFAULT_REASON, description="Kept with the memory."
    )
    idempotency_key: IdempotencyKey = None


class UnhideBody(Lenient):
    """A hidden memory to show again."""

    aliases: ClassVar = {"memoryId": "memory_id"}
    memory_id: MemoryId = Field(description="Id of the memory.")
    idempotency_key: IdempotencyKey = None


class GhostQuery(Lenient):
    """How many hidden memories to list."""

    limit: int = Field(100, ge=1, le=MAX_PAGE, description="Newest first.")


class GhostView(Answer):
    """A hidden memory. It stays hidden until it is shown again, so nothing expires."""

    memoryId: str
    memory_id: str
    tier: str
    hidden_at: datetime = Field(alias="ghostedAt")
    reason: str
    expires_at: None = Field(None, alias="expiresAt")
    preview: str

    @classmethod
    def from_hidden(cls, hidden: HiddenItem, documents: bool) -> Self:
        """`documents`: the caller's name of the books tier."""
        item = hidden.item
        return cls(
            memoryId=item.memory_id,
            memory_id=item.memory_id,
            tier=tier_name(item.tier, documents),
            hidden_at=item.archived_at or item.updated_at,
            reason=hidden.reason,
            preview=preview(item.text),
        )


class GhostsAnswer(Success):
    """Hidden memories, newest first."""

    memories: tuple[GhostView, ...]
    total: int = Field(description="Of this list.")


class GhostDone(Success):
    """What became of the memory."""

    message: str
    memory_id: str
    memoryId: str
    status: str
    reason: str | None = None
    duplicate: Repeated = None


class TierCounts(Answer):
    """Memories of a tier; `count` is both together."""

    count: int
    active: int
    archived: int


class RowCount(Answer):
    """How many there are."""

    count: int


class GraphCounts(Answer):
    """Rows of the graphs; clearing them deletes the sum."""

    nodes: int = Field(description="Of the content graph.")
    edges: int = Field(description="Of the content graph.")
    learned: int = Field(description="What outcomes taught: routing, actions, known solutions.")


class DataStatsAnswer(Answer):
    """What there is of the user, without a wrapper."""

    memory_bank: TierCounts
    working: TierCounts
    history: TierCounts
    patterns: TierCounts
    books: TierCounts | None = Field(
        None, exclude_if=is_none, description="Books, where they have their own name."
    )
    documents: TierCounts | None = Field(
        None, exclude_if=is_none, description="Books by the first client's name."
    )
    sessions: RowCount
    knowledge_graph: GraphCounts
    degraded: tuple[str, ...] = ()

    @classmethod
    def from_counts(cls, counts: UserCounts, documents: bool) -> Self:
        """`documents`: the caller's name of the books tier."""
        tiers = {tier_name(tier, documents): counts.tiers[tier] for tier in CLEARED_TIERS.values()}
        sessions = {"count": counts.rows.sessions}
        return cls.model_validate({**tiers, "sessions": sessions, "knowledge_graph": counts.rows})


class ClearBody(Lenient):
    """Nothing but a key that makes a retry safe."""

    idempotency_key: IdempotencyKey = None


class ClearAnswer(Success):
    """What was deleted for good; `remaining` says what a further call has to do."""

    deleted_count: int
    target: str
    timestamp: datetime
    remaining: int
    message: str
    duplicate: Repeated = None

    @classmethod
    def from_cleared(cls, cleared: Cleared, documents: bool) -> Self:
        """`documents`: the caller's name of the books tier."""
        tier = CLEARED_TIERS.get(cleared.target)
        message = f"Deleted {cleared.deleted}."
        if cleared.left:
            message = f"{message} {cleared.left} are left; ask again to go on."
        return cls(
            deleted_count=cleared.deleted,
            target=cleared.target.value if tier is None else tier_name(tier, documents),
            timestamp=cleared.at,
            remaining=cleared.left,
            message=message,
        )
