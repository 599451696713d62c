"""Statistics, growth and the health of the service over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel

from rayapp.graphs.records import ActionRow
from rayapp.graphs.rules.routing import action_success_rate
from rayapp.graphs.rules.views import ActionTotal, examples_of
from rayapp.memory.tiers import Tier
from rayapp.wire.bases import Answer, BuiltIn, Camel, Lenient, PlainUser, Success, absent, path

if TYPE_CHECKING:  # its module needs numpy, which a client does without
    from rayapp.memory.ports import TierCount

# Of the growth curve, which has a row for each: ten years.
MAX_DAYS = 3_653
# Of one action in the statistics.
MAX_EXAMPLES = 5


class GrowthQuery(Lenient):
    """Query fields of the growth curve."""

    days: int = Field(30, ge=1, le=MAX_DAYS, description="UTC days up to today.")


class HealthQuery(Lenient):
    """Query fields of health."""

    full: bool = Field(False, description="Also the metrics snapshot.")


class DiagnosticsQuery(Lenient):
    """Query fields of diagnostics."""

    metrics: bool = Field(False, description="Also the metrics snapshot.")


class TierStatsView(Answer):
    """Counts of one tier; success_rate = worked / (worked + failed), 0.5 when there are none."""

    active_count: int = path("active")
    archived_count: int = path("archived")
    hidden_count: int = path("hidden")
    deleted_count: int = path("deleted")
    uses_total: int
    success_rate: float
    legacy_count: int | None = absent(
        "Of memory_bank: memories in a store of older clients, always 0.", alias="memoryBank"
    )

    @classmethod
    def from_stats(cls, row: TierCount) -> Self:
        return cls.of(row, legacy_count=0 if row.tier is Tier.MEMORY_BANK else None)


class ActionExample(Answer):
    """One outcome of an action; `doc_id` is the memory it was about."""

    timestamp: datetime = path("at")
    outcome: str
    doc_id: str = path("memory_id")


class ActionStatsView(Answer):
    """How an action did in a kind of context, over all tiers."""

    context_type: str
    action_type: str = path("action")
    success_rate: float
    total_uses: int = path("counters.uses")
    examples: tuple[ActionExample, ...]

    @classmethod
    def from_total(cls, one: ActionTotal, rows: Sequence[ActionRow]) -> Self:
        """`rows`: of all actions; the newest examples are shown."""
        key = (one.context_type, one.action)
        own = [row for row in rows if (row.context_type, row.action) == key]
        rate, examples = action_success_rate(one.counters), examples_of(own)[:MAX_EXAMPLES]
        return cls.of(one, success_rate=rate, examples=examples)


class StatsBody(Answer):
    """All seven tiers; a rate of nothing is null. `cache_hit_rate` is of this replica."""

    user_id: PlainUser
    as_of: datetime
    cache_hit_rate: float | None
    promotion_rate: float | None
    demotion_rate: float | None
    derived_window_ms: int
    tiers: dict[str, TierStatsView]
    action_effectiveness: tuple[ActionStatsView, ...]


class StatsAnswer(Success):
    """Statistics of one user."""

    stats: StatsBody
    meta: BuiltIn


class GrowthRow(Camel):
    """One UTC day; `totalMemories` is cumulative, `bySource` counts that day."""

    date: str
    total_memories: int = path("total", alias="totalMemories")
    by_source: dict[str, int]


class GrowthAnswer(RootModel[tuple[GrowthRow, ...]]):
    """A bare array, oldest day first, gaps filled."""

    @property
    def days(self) -> tuple[GrowthRow, ...]:
        return self.root


class ComponentView(Camel):
    """Health of one dependency."""

    name: str
    healthy: bool
    latency_ms: float
    message: str
    details: dict[str, Any]


class HealthSummary(Answer):
    """Counts of components."""

    total: int
    healthy: int
    unhealthy: int


class HealthAnswer(Camel):
    """`unhealthy` (503): a dependency without which nothing works is away."""

    status: Literal["healthy", "degraded", "unhealthy"]
    timestamp: datetime
    components: tuple[ComponentView, ...]
    summary: HealthSummary
    metrics: dict[str, Any] | None = absent("Only with `full=true`.")
    check_duration_ms: float


class BacklogView(Answer):
    """Counts over all users; claimed and backing-off memories are pending."""

    pending: int
    synced: int
    failed: int
    oldest_pending_s: float
    unencoded: int | None = Field(
        description="Indexed memories that the encoder has not read yet; null while the index does "
        "not answer."
    )

    def waiting(self, *, encoded: bool) -> int | None:
        """How many are not yet indexed; with `encoded`, or not read by the encoder; None: unknown
        yet."""
        if not encoded:
            return self.pending
        return None if self.unencoded is None else self.pending + self.unencoded


class DiagnosticsAnswer(BaseModel):
    """More fields than these, for people and for the first client."""

    model_config = ConfigDict(extra="allow")
    success: Literal[True]
    index: BacklogView
