"""Shapes of the answers of the hooks: bare, as the first client reads them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from rayapp.wire.answers import Answer
from rayapp.wire.context_answers import GatingView


class HookContextView(Answer):
    """One memory for a prompt."""

    tier: str
    content: str
    score: float
    memoryId: str
    docId: str | None
    chunkId: str | None
    preview: str
    createdAt: datetime


class ScoringView(Answer):
    """What the conversation owes: `messageId` is the answer that waits for its score."""

    required: bool
    messageId: str | None
    receiptId: str | None = None


class HookContextAnswer(Answer):
    """What memory knows about a question."""

    contexts: list[HookContextView]
    total: int
    query: str
    tiersSearched: list[str]
    latencyMs: float
    confidence: Literal["high", "medium", "low"]
    receipt_id: str | None
    scoring_required: bool
    scoring: ScoringView
    degraded: list[str]


class StoredView(Answer):
    """The turn that was kept."""

    memory_id: str
    duplicate: bool
    scoring_required: bool
    reason: str
    truncated: bool
    attributed: int
    skipped_positions: list[int]


class ExchangeAnswerView(Answer):
    """The messages with their context, and what became of the turn."""

    messages: list[dict[str, Any]]
    memoryMeta: dict[str, Any]
    stored: StoredView | None
    scoring_required: bool
    scoring: ScoringView
    required_scoring: bool
    current_state: Literal["scored", "unscored"]
    gating: GatingView
    latencyMs: float
    degraded: list[str]
    duplicate: bool = Field(False, description="The first answer again, by idempotency key.")


class HookSkippedView(Answer):
    """A memory that the score left alone."""

    memory_id: str
    reason: str


class HookScoreAnswer(Answer):
    """`updated` counts the memories that it moved."""

    success: Literal[True]
    updated: int
    messageId: str
    timestamp: datetime
    skipped: list[HookSkippedView]
    duplicate: bool
    degraded: list[str]


class HookScoreState(Answer):
    """Whether an answer was scored; an unknown one was not."""

    messageId: str
    conversationId: str | None
    scored: bool
    timestamp: datetime | None
    required: bool
    score: int | None
    memoryId: str | None
