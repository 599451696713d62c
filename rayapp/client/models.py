"""What the client sends and what it reads: the documented fields, others kept as they came."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, model_validator


class Memory(BaseModel):
    """One memory to store; the fields that are not set are left to the server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    tier: str = "working"
    tags: tuple[str, ...] = ()
    importance: float | None = None
    confidence: float | None = None
    always_inject: bool = False
    memory_id: str | None = None
    created_at: datetime | None = None
    source: dict[str, Any] | None = None
    entities: tuple[str, ...] = ()
    summary: str | None = None
    subject_id: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    supersedes: str | None = None

    def body(self) -> dict[str, Any]:
        """JSON body with the unset fields left out."""
        return self.model_dump(mode="json", exclude_defaults=True) | {"text": self.text}


class Answer(BaseModel):
    """Fields that are not named here are kept as they came."""

    model_config = ConfigDict(frozen=True, extra="allow")


class StoreReply(Answer):
    """Answer for one memory of a store or a batch; `rejected` carries `code` and `error`
    and no id."""

    memory_id: str | None
    status: Literal["stored", "duplicate", "rejected"]
    code: str | None = None
    error: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """The answer to a single store says `duplicate` where that of a batch has a status."""
        if isinstance(value, dict) and "status" not in value:
            return {**value, "status": "duplicate" if value.get("duplicate") else "stored"}
        return value


class BatchReply(Answer):
    results: tuple[StoreReply, ...]


class Plain(RootModel[dict[str, Any]]):
    """An answer that is handed on as the API documents it."""

    @property
    def body(self) -> dict[str, Any]:
        return self.root


class DatagovFacts(Answer):
    """What the open-data catalogue says of a hit."""

    kind: str | None = None
    category: str | None = None
    dataset_id: str | None = None
    resource_id: str | None = None
    title: str | None = None
    organization: str | None = None
    format: str | None = None
    total_records: int | None = None
    fields: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    url: str | None = None
    error: str | None = None


class SuccessEstimate(Answer):
    """How often a memory helps: the most likely share, and the 95 % interval it lies in."""

    value: float
    low: float
    high: float


class SearchHit(Answer):
    """One result; `position` starts at 1, `score` is higher for better.

    `datagov` is set on hits of the open-data catalogue.
    """

    position: int
    memory_id: str
    tier: str
    content: str
    score: float | None = None
    success_estimate: SuccessEstimate | None = None
    created_at: datetime | None = None
    score_summary: dict[str, Any] = Field(default_factory=dict)
    datagov: DatagovFacts | None = None


class SearchReply(Answer):
    """Answer of a search. `elapsed_ms` is measured by the client, headers to last byte."""

    results: tuple[SearchHit, ...]
    total: int
    receipt_id: str | None = None
    abstained: bool = False
    confidence: str | float | None = None
    degraded: tuple[str, ...] = ()
    debug: dict[str, Any] = Field(default_factory=dict)
    elapsed_ms: float = 0.0

    @property
    def ids(self) -> tuple[str, ...]:
        """Memory ids, best first."""
        return tuple(hit.memory_id for hit in self.results)

    @property
    def stage_timings_ms(self) -> dict[str, float]:
        """Milliseconds per stage as the server measured them; they add up to `server_ms`."""
        timings = self.debug.get("stage_timings_ms", {})
        return {str(name): float(value) for name, value in timings.items()}

    @property
    def server_ms(self) -> float | None:
        """Milliseconds that the search took on the server; None when it does not say."""
        timings = self.stage_timings_ms
        return sum(timings.values()) if timings else None


class Backlog(Answer):
    """Index counts over all users; `pending` includes claimed and backing-off items."""

    pending: int
    synced: int
    failed: int
    oldest_pending_s: float | None = None


class Ready(Answer):
    ready: bool
    reasons: tuple[str, ...] = ()


class ScoredMemory(Answer):
    """A memory after its outcome."""

    memory_id: str
    tier: str
    uses: int
    success_count: float
    score: float
    success_estimate: SuccessEstimate


class SkippedMemory(Answer):
    """A memory that the outcome left alone, and why."""

    memory_id: str
    reason: str


class OutcomeReply(Answer):
    """`duplicate`: this idempotency key was recorded before; the first result again."""

    updated: tuple[ScoredMemory, ...]
    skipped: tuple[SkippedMemory, ...] = ()
    duplicate: bool = False
    receipt_id: str | None = None


class ResponseReply(OutcomeReply):
    """`memory_id` is the kept takeaway, `scored` how many memories moved."""

    memory_id: str
    scored: int


class FeedbackReply(Answer):
    """`citations_scored`: how many of the cited memories moved."""

    message: str
    score: int
    citations_scored: int = Field(alias="citationsScored")


class PromotionStats(Answer):
    """What one cycle did."""

    examined: int
    promoted: int
    demoted: int
    archived: int
    merged: int
    errors: int


class PromotionReply(Answer):
    stats: PromotionStats


class InsightsReply(Answer):
    """What the graphs say of a question; the experiences keep the server's fields."""

    language: str
    context_type: str
    matched_concepts: tuple[str, ...] = ()
    tier_recommendations: tuple[dict[str, Any], ...] = ()
    relevant_patterns: tuple[dict[str, Any], ...] = ()
    past_failures: tuple[dict[str, Any], ...] = ()
    directives: tuple[str, ...] = ()
    known_solution: dict[str, Any] | None = None


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


class Personality(Answer):
    """How the assistant speaks; `content` is YAML."""

    template_id: str
    name: str
    content: str
    preset: bool = False
    warnings: tuple[str, ...] = ()


class SavedTemplate(Answer):
    template_id: str
    message: str
    activated: bool = True
    warnings: tuple[str, ...] = ()


class Preset(Answer):
    id: str
    name: str
    description: str = ""
    active: bool = False


class PresetsReply(Answer):
    presets: tuple[Preset, ...]


class HiddenMemory(Answer):
    memory_id: str
    tier: str
    reason: str
    hidden_at: datetime = Field(alias="ghostedAt")


class HiddenReply(Answer):
    memories: tuple[HiddenMemory, ...]


class CleanReply(Answer):
    """`remaining`: what this call had no time for."""

    target: str
    deleted_count: int
    remaining: int = 0


# Answers about single memories and the memory bank: the documented fields, others kept.


class MemoryRecord(Answer):
    """One memory as it stands now; `stats` holds its counters."""

    memory_id: str
    tier: str
    status: str
    text: str
    tags: tuple[str, ...] = ()
    always_inject: bool = False
    version: int
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    stats: dict[str, Any] = Field(default_factory=dict)
    source: dict[str, Any] = Field(default_factory=dict)


class ItemReply(Answer):
    memory: MemoryRecord


class ItemPage(Answer):
    """`next_cursor` None: this was the last page."""

    items: tuple[MemoryRecord, ...]
    next_cursor: str | None = None
    total: int | None = None


class Version(Answer):
    """What a memory was before a change."""

    version: int
    text: str
    change_type: str
    at: datetime
    reason: str | None = None


class VersionsReply(Answer):
    memory_id: str
    versions: tuple[Version, ...]


class Stage(Answer):
    """One stage of a search, and whether the memory was still there after it."""

    stage: str
    kept: bool
    detail: str


class ExplainReply(Answer):
    """`lost_at` names the stage where it fell out, None when it was shown."""

    found: bool
    position: int | None = None
    lost_at: str | None = None
    stages: tuple[Stage, ...] = ()


class Done(Answer):
    """A change was made; the message is for people."""

    message: str = ""


class BulkRow(Answer):
    """What became of one id; `not_in_bank`: a memory of another tier, which stays as it is;
    `not_found`: there is none of that id."""

    memory_id: str
    status: str


class BulkReply(Answer):
    """How many of the named memories there were and how many changed, or were removed.

    `success` is false when nothing changed, unless every one was archived already.
    """

    success: bool = True
    matched: int | None = None
    modified: int | None = None
    deleted: int | None = None
    results: tuple[BulkRow, ...] = ()


class RecentMemory(Answer):
    """A row of the list of recent memories."""

    memory_id: str
    content: str
    tier: str
    created_at: datetime
    success_estimate: SuccessEstimate
    tags: tuple[str, ...] = ()
    outcomes: dict[str, int] = Field(default_factory=dict)


class RecentReply(Answer):
    memories: tuple[RecentMemory, ...]


class BankEntry(Answer):
    """A memory as the bank shows it."""

    id: str
    text: str
    status: str
    score: float
    created_at: datetime
    tags: tuple[str, ...] = ()
    archived_at: datetime | None = None
    archived_reason: str | None = None


class BankItemReply(Answer):
    memory: BankEntry


class BankPage(Answer):
    memories: tuple[BankEntry, ...]
    total: int


class BankStats(Answer):
    total_memories: int
    active: int
    archived: int
    unique_tags: int
    tags: tuple[str, ...] = ()


class Listed(Answer):
    """A goal or a value of the user."""

    id: str
    text: str
    created_at: datetime
    importance: float
    status: str


class ListedPage(Answer):
    """The list of goals or of values, whichever was asked for."""

    entries: tuple[Listed, ...] = Field(validation_alias=AliasChoices("goals", "values"))


# Answers about the graphs and what was learned: the documented fields, others kept.


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
