"""Bodies, query fields and answers about graphs, insights and patterns."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from rayapp.wire.bases import (
    MAX_CONCEPT_CHARS,
    MAX_PAGE,
    SHOWN_WILSON,
    Answer,
    BuiltIn,
    EstimateView,
    Flag,
    IdempotencyKey,
    Lenient,
    Name,
    Strict,
    TierName,
)
from rayapp.wire.learning import OutcomeName

# Query fields of statistics, health and diagnostics.


class GrowthQuery(Lenient):
    """Query fields of the growth curve."""

    days: int = Field(30, ge=1, le=366, description="UTC days up to today.")


class HealthQuery(Lenient):
    """Query fields of health."""

    full: bool = Field(False, description="Also the metrics snapshot.")


class DiagnosticsQuery(Lenient):
    """Query fields of diagnostics."""

    metrics: bool = Field(False, description="Also the metrics snapshot.")


GRAPH_ALIASES = {"includeDataGov": "include_datagov"}
# Client contract: rollups and backfill.
MAX_BACKFILL = 2_000
BACKFILL = 250

Mode = Annotated[
    Literal["routing", "content", "both"],
    Field(description="Concepts by where they were answered, by what memories say, or both."),
]
ConceptName = Annotated[str, Field(min_length=1, max_length=MAX_CONCEPT_CHARS)]


class GraphQuery(Lenient):
    """Query fields of the picture."""

    mode: Mode = "both"
    include_datagov: bool = Field(
        False, description="Also the catalogue of open data: root, categories, largest datasets."
    )


class KgQuery(Lenient):
    """Query fields of the concept list."""

    mode: Mode = "both"
    time_filter: Literal["all", "today", "week", "session"] = Field(
        "all", description="Last used: today (UTC), in 7 days, or in 24 hours (`session`)."
    )
    sort_by: Literal["hybrid", "recent", "oldest"] = Field(
        "hybrid", description="Best score, last used, or first seen first."
    )
    limit: int = Field(50, ge=1, le=MAX_PAGE, description="Concepts in the answer.")


class KgBody(Lenient):
    """A concept that the first client saw; graphs learn from memories and outcomes alone."""

    concept: ConceptName = Field(description="The concept.")
    tier: TierName
    outcome: OutcomeName | None = None


class RollupQuery(Lenient):
    """Query fields of the action statistics."""

    limit: int = Field(50, ge=1, le=MAX_PAGE, description="Rows in the answer.")
    context_type: Name | None = Field(None, description="Only this context type.")
    include_tiers: bool = Field(True, description="Also one row per tier.")


class PathQuery(Lenient):
    """Two concepts."""

    source: ConceptName = Field(description="Concept or node id to start from.")
    target: ConceptName = Field(description="Concept or node id to reach.")


class BackfillBody(Strict):
    """How many memories to take up again."""

    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_BACKFILL)] = Field(
        BACKFILL, description="Memories at most."
    )
    dry_run: Flag = Field(False, description="Only count.")
    idempotency_key: IdempotencyKey = None


# Shapes of the answers about graphs and patterns.


class NodeView(Answer):
    """A node of the picture; `usage` counts outcomes, of a content node its mentions."""

    id: str
    concept: str
    type: Literal["routing", "content", "action"]
    score: float
    usage: int
    connectionCount: int
    success_rate: float
    best_collection: str | None
    created_at: datetime | None
    last_used: datetime | None


class EdgeView(Answer):
    """A link of the picture."""

    source: str
    target: str
    weight: float


class GraphMeta(BuiltIn):
    """Size of the picture."""

    node_count: int
    edge_count: int


class GraphAnswer(Answer):
    """Nodes of all kinds and the edges between them, heaviest first."""

    success: Literal[True]
    nodes: list[NodeView]
    edges: list[EdgeView]
    meta: GraphMeta
    degraded: list[str]


class CountersView(Answer):
    """Outcomes counted."""

    uses: int
    worked: int
    failed: int
    partial: int
    unknown: int


class TierRateView(CountersView):
    """How well a concept was answered in one tier."""

    success_rate: float
    wilson_score: float


class ConceptOutcomes(Answer):
    """Outcomes under the names of the first client."""

    positive: int
    negative: int
    partial: int
    unknown: int


class KgConceptView(Answer):
    """A concept of either graph; `uses` and `usage_count` are the same."""

    concept_id: str
    concept: str
    label: str
    type: Literal["routing", "content"]
    source: Literal["routing", "content", "both"]
    score: float
    wilson_score: float
    success_rate: float
    uses: int
    usage_count: int
    mentions: int
    best_collection: str | None
    tier_stats: dict[str, TierRateView]
    outcomes: ConceptOutcomes
    related_concepts: list[str]
    created_at: datetime | None
    last_used: datetime | None


class KgActionView(Answer):
    """An action over all tiers."""

    action: str
    context_type: str
    success_rate: float
    wilson_score: float
    uses: int
    last_used: datetime


class KgMeta(BuiltIn):
    """How many concepts there are before the filters."""

    mode: str
    routing_count: int
    content_count: int
    merged_count: int


class KgAnswer(Answer):
    """Concepts and actions."""

    success: Literal[True]
    concepts: list[KgConceptView]
    actionEffectiveness: list[KgActionView]
    meta: KgMeta
    degraded: list[str]


class KgNoteAnswer(Answer):
    """Acknowledged; nothing was stored."""

    success: Literal[True]
    stored: Literal[False]
    message: str
    degraded: list[str]


class RollupView(TierRateView):
    """An action in a context, in one tier or over all (`*`)."""

    label: str
    action: str
    context_type: str
    tier_key: str
    first_used_at: datetime
    last_used_at: datetime


class CountMeta(BuiltIn):
    """Rows in the answer."""

    count: int


class RollupsAnswer(Answer):
    """Best Wilson score first."""

    success: Literal[True]
    rollups: list[RollupView]
    meta: CountMeta
    degraded: list[str]


class ConceptRef(Answer):
    """Which concept this is."""

    id: str
    label: str
    type: Literal["routing", "content", "action"]


class DefinitionStats(Answer):
    """What is known of this kind of concept; the other fields are absent."""

    mentions: int | None = None
    avg_quality: float | None = None
    context_type: str | None = None
    action: str | None = None
    uses: int | None = None
    worked: int | None = None
    failed: int | None = None
    partial: int | None = None
    unknown: int | None = None
    success_rate: float | None = None
    wilson_score: float | None = None
    first_seen_at: datetime | None
    last_seen_at: datetime | None


class RelatedEdge(Answer):
    """A co-occurrence with another concept."""

    source_id: str
    target_id: str
    relation: str
    weight: float


class RelatedMemory(Answer):
    """A memory that carries the concept."""

    memory_id: str
    tier: str
    text_preview: str
    updated_at: datetime


class RelatedView(Answer):
    """Neighbours and memories."""

    edges: list[RelatedEdge]
    memories: list[RelatedMemory]


class DefinitionBody(Answer):
    """`content` is always null: no text is generated."""

    content: None
    stats: DefinitionStats
    related: RelatedView


class OutcomeBreakdown(Answer):
    """Outcomes of a concept."""

    worked: int
    failed: int
    partial: int
    unknown: int


class CollectionBreakdown(Answer):
    """Outcomes of a concept in one tier."""

    successes: int
    failures: int
    total: int


class TogetherView(Answer):
    """A neighbour; the outcomes are those of the shown memories that carry both concepts."""

    concept: str
    concept_id: str
    co_occurrence: float
    success_together: int
    failure_together: int
    success_rate: float


class DefinitionAnswer(Answer):
    """One concept; `total_searches` counts the judged ones."""

    success: Literal[True]
    concept: ConceptRef
    definition: DefinitionBody
    best_collection: str | None
    success_rate: float
    usage_count: int
    total_searches: int
    outcome_breakdown: OutcomeBreakdown
    collections_breakdown: dict[str, CollectionBreakdown]
    related_concepts: list[str]
    related_concepts_with_stats: list[TogetherView]
    created_at: datetime | None
    last_used: datetime | None
    meta: BuiltIn
    degraded: list[str]


class PathNode(Answer):
    """A concept on the way."""

    id: str
    concept: str
    type: str
    mentions: int
    avg_quality: float


class PathAnswer(Answer):
    """The way from source to target; `path` holds the labels."""

    success: Literal[True]
    found: bool
    path: list[str]
    nodes: list[PathNode]
    edges: list[EdgeView]
    meta: BuiltIn
    degraded: list[str]


class ContentStatsBody(Answer):
    """Counts of the content graph."""

    nodes: int
    edges: int
    last_updated_at: datetime | None


class ContentStatsAnswer(Answer):
    """Size of the content graph."""

    success: Literal[True]
    stats: ContentStatsBody
    meta: BuiltIn
    degraded: list[str]


class BackfillBodyView(Answer):
    """Nodes and edges follow in the background, so their counts may be 0 here."""

    dry_run: bool
    processed_memories: int
    node_ops: int
    edge_ops: int
    duration_ms: float


class BackfillAnswer(Answer):
    """What was asked for."""

    success: Literal[True]
    result: BackfillBodyView
    meta: BuiltIn
    degraded: list[str]
    duplicate: bool | None = None


class PatternView(Answer):
    """A pattern and its outcomes."""

    memory_id: str
    summary: str
    text_preview: str
    uses: int
    success_rate: float
    success_estimate: EstimateView
    wilson_score: float = Field(description=SHOWN_WILSON)
    score: float
    worked: int
    failed: int
    partial: int
    unknown: int
    updated_at: datetime


class PatternsAnswer(Answer):
    """Best Wilson score first."""

    success: Literal[True]
    patterns: list[PatternView]
    meta: CountMeta
    degraded: list[str]
