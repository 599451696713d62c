"""Shapes of the answers, for the API document and the tests that hold real answers against it.

They do not run on requests: answers are built by hand in `rayapp.wire.views.memories`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """An undocumented field in an answer fails the tests."""

    model_config = ConfigDict(extra="forbid")


class ErrorAnswer(Answer):
    """Every error. `error` and `message` hold the same sentence."""

    success: Literal[False]
    error: str = Field(description="One sentence that says what to do.")
    message: str
    code: str = Field(description="Stable name; the table of codes is in the description.")
    details: dict[str, Any] = Field(description="For example the field that was refused.")
    duplicate: bool = Field(False, description="The first answer again, by idempotency key.")


class SourceView(Answer):
    """Where a memory came from; `category` is its DataGov category."""

    type: str
    conversation_id: str | None
    message_id: str | None
    tool_name: str | None
    tool_run_id: str | None
    doc_id: str | None
    chunk_id: str | None
    category: str | None
    book: dict[str, Any] | None
    datagov: dict[str, Any] | None


class StatsView(Answer):
    """Outcome counters."""

    uses: int
    success_count: float
    worked_count: int
    partial_count: int
    unknown_count: int
    failed_count: int
    success_rate: float
    wilson_score: float
    score: float
    last_outcome: str | None
    last_outcome_at: datetime | None
    tier_uses: int
    tier_success: float


# Where only the first client reads `wilson_score`, as a percentage (decision 0049).
SHOWN_WILSON = "For the first client, which shows it to people: `value` of `success_estimate`."


class EstimateView(Answer):
    """How often the memory helps: the most likely share, and the 95 % interval it lies in."""

    value: float = Field(ge=0, le=1, description="No success lowers it, no failure raises it.")
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)


class IndexView(Answer):
    """Where the memory stands between truth and index."""

    sync_state: Literal["pending", "synced", "failed"]
    op: Literal["vector", "payload", "delete"]
    attempts: int
    last_error: str | None
    indexed_at: datetime | None


class MemoryView(Answer):
    """A memory; `text` and `content` are the same."""

    memory_id: str
    user_id: str
    tier: str
    status: str
    text: str
    content: str
    summary: str | None
    tags: list[str]
    entities: list[str]
    always_inject: bool
    lang: str
    source: SourceView
    subject_id: str | None
    trust: float
    importance: float
    confidence: float
    quality_score: float
    mentioned_count: int
    stats: StatsView
    success_estimate: EstimateView
    created_at: datetime
    stored_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    archived_reason: str | None
    expires_at: datetime | None
    version: int
    supersedes: str | None
    superseded_by: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    indexed: bool
    index: IndexView


class StoreAnswer(Answer):
    """`indexed` is false: the index follows within a second or so; search sees the memory now."""

    success: Literal[True]
    memory_id: str
    indexed: bool
    duplicate: bool
    archived: list[str] = Field(description="What capacity archived to make room.")
    degraded: list[str]


class BatchResult(Answer):
    """One line per memory sent, in order."""

    memory_id: str | None
    status: Literal["stored", "duplicate", "rejected"]
    code: str | None = None
    error: str | None = None
    archived: list[str] | None = None


class BatchAnswer(Answer):
    """Results in the order of the items; no `success` when every one was rejected."""

    success: bool
    results: list[BatchResult]
    degraded: list[str]
    duplicate: bool | None = None


class ItemsAnswer(Answer):
    """A page of memories; `next_cursor` null ends the list."""

    success: Literal[True]
    items: list[MemoryView]
    next_cursor: str | None
    total: int | None = Field(description="Only with `with_total`.")
    degraded: list[str]


class ItemAnswer(Answer):
    """One memory."""

    success: Literal[True]
    memory: MemoryView
    degraded: list[str]
    duplicate: bool | None = None


class DoneAnswer(Answer):
    """A change was made."""

    success: Literal[True]
    memory_id: str
    message: str
    degraded: list[str]
    duplicate: bool | None = None


class QualityView(Answer):
    """importance x confidence = quality_score."""

    importance: float
    confidence: float
    quality_score: float
    mentioned_count: int


class VersionView(Answer):
    """The state that a change replaced."""

    version: int
    text: str
    tags: list[str]
    quality: QualityView
    stats: StatsView
    change_type: str
    reason: str | None
    at: datetime


class VersionsAnswer(Answer):
    """Newest first."""

    success: Literal[True]
    memory_id: str
    versions: list[VersionView]
    degraded: list[str]


class ExplainStageView(Answer):
    """One stage: kept, or lost and by how much."""

    stage: str
    kept: bool
    detail: str
    values: dict[str, float]


class ExplainAnswer(Answer):
    """Why a question found a memory, or at which stage it was lost."""

    success: Literal[True]
    memory_id: str
    query: str
    found: bool
    position: int | None
    lost_at: str | None
    stages: list[ExplainStageView]
    degraded: list[str]
