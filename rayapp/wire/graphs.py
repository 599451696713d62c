"""Graphs and patterns over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from rayapp.graphs.ports import GraphMode
from rayapp.graphs.records import ActionRow, ConceptDefinition, Counters, PathView
from rayapp.graphs.rules import views
from rayapp.graphs.rules.listing import ListedConcept
from rayapp.graphs.rules.routing import action_success_rate, success_rate, wilson_of
from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import tier_name
from rayapp.wire import bases
from rayapp.wire.learning import OutcomeName

# Client contract: backfill, previews, rollups.
MAX_BACKFILL = 2_000
BACKFILL = 250
PREVIEW_CHARS = 220
ALL_TIERS = "*"  # the row of an action over all tiers

Mode = Annotated[
    GraphMode,
    Field(description="Concepts by where they were answered, by what memories say, or both."),
]
Kind = Literal["routing", "content", "action"]
ConceptName = Annotated[str, Field(min_length=1, max_length=bases.MAX_CONCEPT_CHARS)]


def _shortened(text: str) -> str:
    return bases.preview(text, PREVIEW_CHARS)


Preview = Annotated[str, BeforeValidator(_shortened)]


def _at_most_a_page(value: int) -> int:
    return min(value, bases.MAX_PAGE)


class GraphQuery(bases.Lenient):
    """Query fields of the picture."""

    aliases: ClassVar = {"includeDataGov": "include_datagov"}
    mode: Mode = "both"
    include_datagov: bool = Field(
        False, description="Also the catalogue of open data: root, categories, largest datasets."
    )


class KgQuery(bases.Lenient):
    """Query fields of the concept list."""

    mode: Mode = "both"
    time_filter: Literal["all", "today", "week", "session"] = Field(
        "all", description="Last used: today (UTC), in 7 days, or in 24 hours (`session`)."
    )
    sort_by: Literal["hybrid", "recent", "oldest"] = Field(
        "hybrid", description="Best score, last used, or first seen first."
    )
    limit: Annotated[int, Field(ge=1), AfterValidator(_at_most_a_page)] = Field(
        50, description=f"Concepts in the answer, {bases.MAX_PAGE} at most."
    )


class KgBody(bases.Lenient):
    """A concept that the first client saw; graphs learn from memories and outcomes alone."""

    concept: ConceptName = Field(description="The concept.")
    tier: bases.TierName
    outcome: OutcomeName | None = None


class RollupQuery(bases.Lenient):
    """Query fields of the action statistics."""

    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description="Rows in the answer.")
    context_type: bases.Name | None = bases.optional("Only this context type.")
    include_tiers: bool = Field(True, description="Also one row per tier.")


class PathQuery(bases.Lenient):
    """Two concepts."""

    source: ConceptName = Field(description="Concept or node id to start from.")
    target: ConceptName = Field(description="Concept or node id to reach.")


class BackfillBody(bases.Strict, bases.Keyed):
    """How many memories to take up again."""

    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_BACKFILL)] = Field(
        BACKFILL, description="Memories at most."
    )
    dry_run: bases.Flag = Field(False, description="Only count.")


class NodeView(bases.Answer):
    """A node of the picture.

    `usage` counts outcomes, one for each tier of the memories that it judged; of a content node its
    mentions.
    """

    id: str
    concept: str
    type: Kind
    score: float
    usage: int
    connection_count: int = bases.path("connections", alias="connectionCount")
    success_rate: float
    best_collection: bases.TierWord | None = bases.path("best_tier")
    created_at: datetime | None
    last_used: datetime | None


class EdgeView(bases.Answer):
    """A link of the picture."""

    source: str
    target: str
    weight: float


class GraphMeta(bases.BuiltIn):
    """Size of the picture."""

    node_count: int
    edge_count: int


class GraphAnswer(bases.Success):
    """Nodes of all kinds and the edges between them, heaviest first."""

    nodes: tuple[NodeView, ...]
    edges: tuple[EdgeView, ...]
    meta: GraphMeta


class OutcomeBreakdown(bases.Outcomes):
    """Outcomes of a concept."""


class CountersView(OutcomeBreakdown):
    """Outcomes counted; a total has one for each tier of the memories that an outcome judged."""

    uses: int


class TierRateView(CountersView):
    """How well a concept was answered in one tier."""

    success_rate: float
    wilson_score: float

    @classmethod
    def from_counters(cls, counters: Counters, rate: float, **others: Any) -> Self:
        return cls.of(counters, success_rate=rate, wilson_score=wilson_of(counters), **others)


class ConceptOutcomes(bases.Answer):
    """Outcomes under the names of the first client."""

    positive: int = bases.path("worked")
    negative: int = bases.path("failed")
    partial: int
    unknown: int


class KgConceptView(bases.Answer):
    """A concept of either graph; `uses` and `usage_count` are the same."""

    concept_id: str = bases.path("key")
    concept: str = bases.path("label")
    label: str
    type: Literal["routing", "content"]
    source: GraphMode
    score: float
    wilson_score: float
    success_rate: float
    uses: int
    usage_count: int
    mentions: int
    best_collection: bases.TierWord | None
    tier_stats: dict[str, TierRateView]
    outcomes: ConceptOutcomes
    related_concepts: tuple[str, ...] = bases.path("related")
    created_at: datetime | None
    last_used: datetime | None

    @classmethod
    def from_listed(cls, one: ListedConcept, documents: bool) -> Self:
        counters, tiers = one.counters, one.row.tiers if one.row else {}
        uses = counters.uses if one.row else one.mentions
        best = next(iter(views.best_tiers(one.row)), None) if one.row else None
        return cls.of(
            one,
            documents,
            type="routing" if one.source == "routing" else "content",
            wilson_score=wilson_of(counters),
            success_rate=success_rate(counters),
            uses=uses,
            usage_count=uses,
            best_collection=best,
            tier_stats={
                tier_name(tier, documents): TierRateView.from_counters(found, success_rate(found))
                for tier, found in tiers.items()
            },
            outcomes=counters,
        )


class KgActionView(bases.Answer):
    """An action over all tiers."""

    action: str
    context_type: str
    success_rate: float
    wilson_score: float
    uses: int = bases.path("counters.uses")
    last_used: datetime = bases.path("last_used_at")

    @classmethod
    def from_total(cls, one: views.ActionTotal) -> Self:
        rate = action_success_rate(one.counters)
        return cls.of(one, success_rate=rate, wilson_score=wilson_of(one.counters))


class KgMeta(bases.BuiltIn):
    """How many of the concepts used last (at most 200 of each graph) there are before the
    filters."""

    mode: str
    routing_count: int
    content_count: int
    merged_count: int


class KgAnswer(bases.Success):
    """Concepts and actions."""

    concepts: tuple[KgConceptView, ...]
    action_effectiveness: tuple[KgActionView, ...] = Field(alias="actionEffectiveness")
    meta: KgMeta


class KgNoteAnswer(bases.Success):
    """Acknowledged; nothing was stored."""

    stored: Literal[False] = False
    message: str = (
        "Nothing was stored: the graphs learn from memories and outcomes. "
        "Send POST /api/memory/outcomes."
    )


class RollupView(TierRateView):
    """An action in a context, in one tier or over all (`*`)."""

    label: str
    action: str
    context_type: str
    tier_key: str
    first_used_at: datetime
    last_used_at: datetime

    @classmethod
    def from_row(cls, row: ActionRow | views.ActionTotal, tier: str) -> Self:
        name = f"{row.action}@{row.context_type}"
        return cls.from_counters(
            row.counters,
            action_success_rate(row.counters),
            label=name if tier == ALL_TIERS else f"{name}->{tier}",
            action=row.action,
            context_type=row.context_type,
            tier_key=tier,
            first_used_at=row.first_used_at,
            last_used_at=row.last_used_at,
        )


def rollups(rows: Sequence[ActionRow], *, tiers: bool, documents: bool) -> tuple[RollupView, ...]:
    """One row per action and context, and with `tiers` one more per tier; best first."""
    found = [RollupView.from_row(one, ALL_TIERS) for one in views.action_totals(rows)]
    if tiers:
        found += [
            RollupView.from_row(row, tier_name(row.tier, documents)) for row in rows if row.tier
        ]
    return tuple(sorted(found, key=lambda one: (-one.wilson_score, -one.uses, one.label)))


class CountMeta(bases.BuiltIn):
    """Rows in the answer."""

    count: int


class RollupsAnswer(bases.Success):
    """Best Wilson score first."""

    rollups: tuple[RollupView, ...]
    meta: CountMeta


class ConceptRef(bases.Answer):
    """Which concept this is."""

    id: str
    label: str
    type: Kind


class DefinitionStats(bases.Answer):
    """What is known of this kind of concept; the other fields are absent."""

    mentions: int | None = bases.Absent
    avg_quality: float | None = bases.Absent
    context_type: str | None = bases.Absent
    action: str | None = bases.Absent
    uses: int | None = bases.Absent
    worked: int | None = bases.Absent
    failed: int | None = bases.Absent
    partial: int | None = bases.Absent
    unknown: int | None = bases.Absent
    success_rate: float | None = bases.Absent
    wilson_score: float | None = bases.Absent
    first_seen_at: datetime | None
    last_seen_at: datetime | None


class RelatedEdge(bases.Answer):
    """A co-occurrence with another concept."""

    source_id: str = bases.path("source")
    target_id: str = bases.path("target")
    relation: str
    weight: float


class RelatedMemory(bases.Answer):
    """A memory that carries the concept."""

    memory_id: str
    tier: bases.TierWord
    text_preview: Preview = bases.path("text")
    updated_at: datetime


class RelatedView(bases.Answer):
    """Neighbours and memories."""

    edges: tuple[RelatedEdge, ...]
    memories: tuple[RelatedMemory, ...]


class DefinitionBody(bases.Answer):
    """`content` is always null: no text is generated."""

    content: None = None
    stats: DefinitionStats
    related: RelatedView


class CollectionBreakdown(bases.Answer):
    """Outcomes of a concept in one tier."""

    successes: int = bases.path("worked")
    failures: int = bases.path("failed")
    total: int = bases.path("uses")


class TogetherView(bases.Answer):
    """A neighbour; the outcomes are those of the shown memories that carry both concepts."""

    concept: str
    concept_id: str
    co_occurrence: float
    success_together: int
    failure_together: int
    success_rate: float


class DefinitionAnswer(bases.Success):
    """One concept; `total_searches` counts the judged ones."""

    concept: ConceptRef
    definition: DefinitionBody
    best_collection: bases.TierWord | None = bases.path("best_tier")
    success_rate: float
    usage_count: int
    total_searches: int = bases.path("counters.uses")
    outcome_breakdown: OutcomeBreakdown = bases.path("counters")
    collections_breakdown: dict[str, CollectionBreakdown]
    related_concepts: tuple[str, ...]
    related_concepts_with_stats: tuple[TogetherView, ...]
    created_at: datetime | None = bases.path("first_seen_at")
    last_used: datetime | None = bases.path("last_seen_at")
    meta: bases.BuiltIn

    @classmethod
    def from_definition(cls, found: ConceptDefinition, documents: bool, built_ms: float) -> Self:
        """The contract's nested shape, and beside it what the first client's picture looks for."""
        whole, together = views.concept_total(found), _together(found)
        related = RelatedView.of(found, documents)
        return cls.of(
            whole,
            documents,
            concept=ConceptRef(id=found.concept.key, label=found.concept.label, type=whole.kind),
            definition=DefinitionBody(stats=_definition_stats(found, whole), related=related),
            usage_count=whole.counters.uses or (found.node.mentions if found.node else 0),
            collections_breakdown={
                tier_name(tier, documents): one for tier, one in whole.tiers.items()
            },
            related_concepts=tuple(one.concept for one in together),
            related_concepts_with_stats=together,
            meta=bases.BuiltIn(built_ms=built_ms),
        )


def _definition_stats(found: ConceptDefinition, whole: views.ConceptTotal) -> DefinitionStats:
    """What is known of this kind of concept; nothing is made up for the other kinds."""
    stats: dict[str, Any] = {}
    if found.node is not None:
        stats |= {"mentions": found.node.mentions, "avg_quality": found.node.avg_quality}
    if found.actions:
        first = found.actions[0]
        stats |= {"context_type": first.context_type, "action": first.action}
    if found.routing is not None or found.actions:
        rated = TierRateView.from_counters(whole.counters, whole.success_rate)
        stats |= dict(rated)
    return DefinitionStats(
        first_seen_at=whole.first_seen_at, last_seen_at=whole.last_seen_at, **stats
    )


def _together(found: ConceptDefinition) -> tuple[TogetherView, ...]:
    """Neighbours, heaviest first, with the outcomes of the shown memories that carry both."""
    nodes = {node.node_id: node for node in found.neighbours}
    here = set(found.node.memory_ids) if found.node else set()
    rows = []
    for edge in found.edges:
        key = edge.target if edge.source == found.concept.key else edge.source
        node = nodes.get(key)
        shared = here.intersection(node.memory_ids) if node else set()
        both = [item.stats for item in found.memories if item.memory_id in shared]
        worked = sum(stats.worked_count for stats in both)
        failed = sum(stats.failed_count for stats in both)
        rows.append(
            TogetherView(
                concept=node.label if node else key,
                concept_id=key,
                co_occurrence=edge.weight,
                success_together=worked,
                failure_together=failed,
                success_rate=success_rate(Counters(worked=worked, failed=failed)),
            )
        )
    return tuple(rows)


class PathNode(bases.Answer):
    """A concept on the way."""

    id: str
    concept: str
    type: str
    mentions: int
    avg_quality: float


class PathAnswer(bases.Success):
    """The way from source to target; `path` holds the labels."""

    found: bool
    path: tuple[str, ...]
    nodes: tuple[PathNode, ...]
    edges: tuple[EdgeView, ...]
    meta: bases.BuiltIn

    @classmethod
    def from_path(cls, found: PathView, built_ms: float) -> Self:
        """The ends of its edges are ids of its nodes."""
        return cls(
            found=bool(found.nodes),
            path=tuple(one.label for one in found.nodes),
            nodes=tuple(
                PathNode.of(one, id=views.CONTENT_PREFIX + one.node_id, concept=one.label)
                for one in found.nodes
            ),
            edges=tuple(
                EdgeView.of(
                    one,
                    source=views.CONTENT_PREFIX + one.source,
                    target=views.CONTENT_PREFIX + one.target,
                )
                for one in found.edges
            ),
            meta=bases.BuiltIn(built_ms=built_ms),
        )


class ContentStatsBody(bases.Answer):
    """Counts of the content graph."""

    nodes: int
    edges: int
    last_updated_at: datetime | None


class ContentStatsAnswer(bases.Success):
    """Size of the content graph."""

    stats: ContentStatsBody
    meta: bases.BuiltIn


class BackfillBodyView(bases.Answer):
    """Nodes and edges follow in the background, so their counts may be 0 here."""

    dry_run: bool
    processed_memories: int
    node_ops: int = 0
    edge_ops: int = 0
    duration_ms: float


class BackfillAnswer(bases.Written):
    """What was asked for."""

    result: BackfillBodyView
    meta: bases.BuiltIn


class PatternView(bases.Outcomes):
    """A pattern and its outcomes."""

    memory_id: str
    summary: str
    text_preview: Preview
    uses: int
    success_rate: float
    success_estimate: bases.Estimate
    wilson_score: bases.ShownWilson = Field(description=bases.SHOWN_WILSON)
    score: float
    updated_at: datetime

    @classmethod
    def from_item(cls, item: MemoryItem) -> Self:
        return cls.of(
            item.stats,
            memory_id=item.memory_id,
            summary=item.summary or _shortened(item.text),
            text_preview=item.text,
            success_estimate=item.stats,
            wilson_score=item.stats,
            updated_at=item.updated_at,
        )


class PatternsAnswer(bases.Success):
    """Best Wilson score first."""

    patterns: tuple[PatternView, ...]
    meta: CountMeta
