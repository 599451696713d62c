"""Shapes of the answers that prepare an assistant."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from rayapp.wire.answers import Answer, EstimateView
from rayapp.wire.client_answers import BuiltIn


class InsightConcept(Answer):
    """A concept of the question."""

    concept_id: str
    label: str
    type: str


class TierAdviceView(Answer):
    """How well these concepts were answered in a tier; every tier is searched all the same."""

    tier: str
    wilson_score: float
    uses: int
    advised: bool


class ExperienceView(Answer):
    """A memory that helped or failed before, and what is known of why."""

    memory_id: str
    tier: str
    content: str
    text_preview: str
    outcome: str
    concept: str
    reason: str
    uses: int
    success_rate: float
    wilson_score: float
    success_estimate: EstimateView
    at: datetime


class ActionAdviceView(Answer):
    """How an action did in this kind of context."""

    action: str
    context_type: str
    uses: int
    success_rate: float
    wilson_score: float
    advice: str


class SolutionView(Answer):
    """The memory that solved this problem before."""

    memory_id: str
    tier: str
    content: str
    wilson_score: float


class InsightsAnswer(Answer):
    """What the graphs know of a question."""

    success: Literal[True]
    query: str
    language: str
    context_type: str
    concepts: list[InsightConcept]
    active_concepts: list[str]
    matched_concepts: list[str] = Field(description="Those that a graph knows.")
    tier_recommendations: list[TierAdviceView]
    relevant_patterns: list[ExperienceView]
    past_failures: list[ExperienceView]
    action_stats: list[ActionAdviceView]
    topic_continuity: list[str]
    repeated_question: str | None
    known_solution: SolutionView | None
    directives: list[str]
    meta: BuiltIn
    degraded: list[str]


class TraceView(Answer):
    """The reason as a sentence in both languages."""

    he: str
    en: str


class GatingView(Answer):
    """Which of the offered tools may be called, and why."""

    allowed_tools: list[str] | None = Field(
        description="Of the tools that the request names; null: it names none."
    )
    reduced_count: int
    reason_code: str
    trace_explanation: TraceView


class TaskView(Answer):
    """What kind of turn the question is."""

    complexity: str
    context_type: str
    language: str
    intent: str
    limit: int


class _BesideText(Answer):
    """What the context of a question says beside its text.

    `receipt_id` is what outcomes and MEM marks refer to.
    """

    success: Literal[True]
    etag: str = Field(description="Of the stable part; also the header `ETag`.")
    receipt_id: str | None
    tokens: int
    left_out: list[str] = Field(description="Memories that did not fit into the budget.")
    task: TaskView
    gating: GatingView
    degraded: list[str]


class ContextAnswer(_BesideText):
    """The context of one question. Stable and volatile text are one block, in this order."""

    latency_ms: float
    confidence: str
    stable_text: str | None = Field(
        description="Equal until one of its memories changes; null unless include_context."
    )
    volatile_text: str | None = Field(description="The rest of the block.")
    memory_meta: dict[str, Any] = Field(
        description="MemoryMetaV1, to be kept with the message: lines, citations, debug. A "
        "conversation or a message that was not named is null."
    )


class PrefetchAnswer(_BesideText):
    """The same in the first client's names."""

    latencyMs: float
    retrievalConfidence: str
    retrievalDebug: dict[str, Any]
    memoryContextInjection: str | None = Field(
        description="The whole block; null unless includeContext, or when nothing is known."
    )
    memoryMeta: dict[str, Any] = Field(description="MemoryMetaV1.")


class ColdMemory(Answer):
    """One memory of a cold start."""

    position: int
    memory_id: str
    tier: str
    content: str


class ColdStartAnswer(Answer):
    """What is known of the user. `text` is empty when nothing is."""

    success: Literal[True]
    text: str
    memories: list[ColdMemory]
    count: int
    receipt_id: str | None
    meta: BuiltIn
    degraded: list[str]
