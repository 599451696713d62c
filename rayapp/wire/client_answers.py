"""Shapes that the first client reads: statistics, health."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from rayapp.wire.bases import Answer, BuiltIn


class TierStatsView(Answer):
    """Counts of one tier; success_rate = worked / (worked + failed), 0.5 when there are none."""

    active_count: int
    archived_count: int
    deleted_count: int
    uses_total: int
    success_rate: float
    memoryBank: int | None = Field(
        None, description="Of memory_bank: memories in a store of older clients, always 0."
    )


class ActionExample(Answer):
    """One outcome of an action; `doc_id` is the memory it was about."""

    timestamp: datetime
    outcome: str
    doc_id: str


class ActionStatsView(Answer):
    """How an action did in a kind of context, over all tiers."""

    context_type: str
    action_type: str
    success_rate: float
    total_uses: int
    examples: list[ActionExample]


class StatsBody(Answer):
    """All seven tiers; a rate of nothing is null. `cache_hit_rate` is of this replica."""

    user_id: str
    as_of: datetime
    cache_hit_rate: float | None
    promotion_rate: float | None
    demotion_rate: float | None
    derived_window_ms: int
    tiers: dict[str, TierStatsView]
    action_effectiveness: list[ActionStatsView]


class StatsAnswer(Answer):
    """Statistics of one user."""

    success: Literal[True]
    stats: StatsBody
    meta: BuiltIn
    degraded: list[str]


class GrowthRow(Answer):
    """One UTC day; `totalMemories` is cumulative, `bySource` counts that day."""

    date: str
    totalMemories: int
    bySource: dict[str, int]


class GrowthAnswer(RootModel[list[GrowthRow]]):
    """A bare array, oldest day first, gaps filled."""


class ComponentView(Answer):
    """Health of one dependency."""

    name: str
    healthy: bool
    latencyMs: float
    message: str
    details: dict[str, Any]


class HealthSummary(Answer):
    """Counts of components."""

    total: int
    healthy: int
    unhealthy: int


class HealthAnswer(Answer):
    """`unhealthy` (503): a dependency without which nothing works is away."""

    status: Literal["healthy", "degraded", "unhealthy"]
    timestamp: datetime
    components: list[ComponentView]
    summary: HealthSummary
    metrics: dict[str, Any] | None = Field(None, description="Only with `full=true`.")
    checkDurationMs: float


class BacklogView(BaseModel):
    """Counts over all users; claimed and backing-off memories are pending."""

    pending: int
    synced: int
    failed: int
    oldest_pending_s: float


class DiagnosticsAnswer(BaseModel):
    """More fields than these, for people and for the first client."""

    model_config = ConfigDict(extra="allow")
    success: Literal[True]
    index: BacklogView
