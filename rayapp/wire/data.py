"""Bodies, query fields and answers of the data pages: hidden memories, counts, clearing."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from rayapp.memory.requests import ClearTarget
from rayapp.memory.rules.lifecycle import DEFAULT_REASON, PREFIX
from rayapp.wire.bases import (
    MAX_PAGE,
    MAX_REASON_CHARS,
    Answer,
    IdempotencyKey,
    Lenient,
    MemoryId,
    TierName,
)

GHOST_ALIASES = {"memoryId": "memory_id"}
# With its prefix the reason still fits where reasons of archived memories are kept.
MAX_GHOST_REASON = MAX_REASON_CHARS - len(PREFIX)
# Other names of what may be cleared.
TARGET_ALIASES = {
    "books": ClearTarget.DOCUMENTS,
    "knowledge_graph": ClearTarget.KNOWLEDGE_GRAPH,
    "memory-bank": ClearTarget.MEMORY_BANK,
}


class GhostBody(Lenient):
    """A memory to hide."""

    memory_id: MemoryId = Field(description="Id of the memory.")
    tier: TierName | None = Field(None, description="Where the caller saw it; not needed.")
    reason: Annotated[str, Field(min_length=1, max_length=MAX_GHOST_REASON)] = Field(
        DEFAULT_REASON, description="Kept with the memory."
    )
    idempotency_key: IdempotencyKey = None


class UnhideBody(Lenient):
    """A hidden memory to show again."""

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
    ghostedAt: datetime
    reason: str
    expiresAt: None
    preview: str


class GhostsAnswer(Answer):
    """Hidden memories, newest first."""

    success: Literal[True]
    memories: list[GhostView]
    total: int = Field(description="Of this list.")
    degraded: list[str]


class GhostDone(Answer):
    """What became of the memory."""

    success: Literal[True]
    message: str
    memory_id: str
    memoryId: str
    status: str
    reason: str | None
    degraded: list[str]
    duplicate: bool = False


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
    books: TierCounts | None = Field(None, description="Books, where they have their own name.")
    documents: TierCounts | None = Field(None, description="Books by the first client's name.")
    sessions: RowCount
    knowledge_graph: GraphCounts
    degraded: list[str]


class ClearBody(Lenient):
    """Nothing but a key that makes a retry safe."""

    idempotency_key: IdempotencyKey = None


class ClearAnswer(Answer):
    """What was deleted for good; `remaining` says what a further call has to do."""

    success: Literal[True]
    deleted_count: int
    target: str
    timestamp: datetime
    remaining: int
    message: str
    degraded: list[str]
    duplicate: bool = False
