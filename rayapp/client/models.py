"""What the client sends and what it reads: the documented fields, others kept as they came."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, RootModel


class Answer(BaseModel):
    """Fields that are not named here are kept as they came."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Plain(RootModel[dict[str, Any]]):
    """An answer that is handed on as the API documents it."""

    @property
    def body(self) -> dict[str, Any]:
        return self.root


class SuccessEstimate(Answer):
    """How often a memory helps: the most likely share, and the 95 % interval it lies in."""

    value: float
    low: float
    high: float


class Backlog(Answer):
    """Index counts over all users; `pending` includes claimed and backing-off items."""

    pending: int
    synced: int
    failed: int
    oldest_pending_s: float | None = None


class GraphNode(Answer):
    """A node of the picture; `best_collection` is the tier where it did best."""

    id: str
    concept: str
    type: str
    score: float
    usage: int
    success_rate: float
    best_collection: str | None = None


class GraphEdge(Answer):
    source: str
    target: str
    weight: float


class GraphReply(Answer):
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


class ConceptReply(Answer):
    """One concept; `definition` holds its statistics, neighbours and memories."""

    concept: dict[str, str]
    definition: dict[str, Any]
    success_rate: float
    usage_count: int
    best_collection: str | None = None
    related_concepts: tuple[str, ...] = ()


class PathReply(Answer):
    """The labels on the way, empty when there is none."""

    found: bool
    path: tuple[str, ...]


class TierStats(Answer):
    active_count: int
    archived_count: int
    deleted_count: int
    uses_total: int
    success_rate: float


class Stats(Answer):
    """`tiers` holds every tier, also the empty ones."""

    user_id: str
    as_of: datetime
    tiers: dict[str, TierStats]
    cache_hit_rate: float | None = None
    promotion_rate: float | None = None
    demotion_rate: float | None = None


class StatsReply(Answer):
    stats: Stats


class GrowthDay(Answer):
    """`total_memories` counts all up to that day; `by_source` those of the day."""

    date: str
    total_memories: int = Field(alias="totalMemories")
    by_source: dict[str, int] = Field(alias="bySource")


class Growth(RootModel[tuple[GrowthDay, ...]]):
    """One row per day, oldest first."""

    @property
    def days(self) -> tuple[GrowthDay, ...]:
        return self.root


class HealthComponent(Answer):
    name: str
    healthy: bool
    message: str = ""


class HealthReply(Answer):
    """`status`: healthy, degraded or unhealthy."""

    status: str
    components: tuple[HealthComponent, ...]


# Answers about single memories and the memory bank: the documented fields, others kept.


# Answers about the graphs and what was learned: the documented fields, others kept.


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
