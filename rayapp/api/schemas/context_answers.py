"""Shapes of the answers that prepare an assistant."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from rayapp.api.schemas.answers import Answer
from rayapp.api.schemas.client_answers import BuiltIn


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
