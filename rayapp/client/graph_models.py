"""Answers about the graphs and what was learned: the documented fields, others kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from rayapp.client.models import Answer, PromotionStats, SuccessEstimate


class DecayReply(Answer):
    result: PromotionStats


class Schedule(Answer):
    """When the promotion cycle runs; `last_run_at` None: not since the start."""

    kind: str
    interval_ms: int
    running: bool
    last_run_at: datetime | None = None


class ScheduleReply(Answer):
    schedule: Schedule


class Pattern(Answer):
    """A proven memory and how it does."""

    memory_id: str
    summary: str
    text_preview: str
    uses: int
    success_rate: float
    success_estimate: SuccessEstimate


class PatternsReply(Answer):
    patterns: tuple[Pattern, ...]


class KgReply(Answer):
    """Concepts and actions keep the server's fields."""

    concepts: tuple[dict[str, Any], ...]
    action_effectiveness: tuple[dict[str, Any], ...] = Field((), alias="actionEffectiveness")
    meta: dict[str, Any] = Field(default_factory=dict)


class ActionRollup(Answer):
    """How one action did in one kind of context; `tier_key` `*`: in all tiers."""

    label: str
    action: str
    context_type: str
    tier_key: str
    uses: int
    success_rate: float
    wilson_score: float


class RollupsReply(Answer):
    rollups: tuple[ActionRollup, ...]


class ContentStats(Answer):
    nodes: int
    edges: int
    last_updated_at: datetime | None = None


class ContentStatsReply(Answer):
    stats: ContentStats


class BackfillReply(Answer):
    result: dict[str, Any]
