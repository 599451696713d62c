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


class Backlog(Answer):
    """Index counts over all users; `pending` includes claimed and backing-off items."""

    pending: int
    synced: int
    failed: int
    oldest_pending_s: float | None = None


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
