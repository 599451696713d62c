"""The three graphs as values: what is asked, stored and read, and increments between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rayapp.memory.item import MemoryItem, Outcome
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept, NodeType
from rayapp.text.utterance import Utterance

CO_OCCURS = "co_occurs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Outcome counters of a graph row."""

    uses: int = 0
    worked: int = 0
    partial: int = 0
    unknown: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One outcome that a row remembers; rows keep the newest few."""

    memory_id: str
    point_id: str
    tier: Tier
    outcome: Outcome
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingRow:
    """One concept of `kg_routing`: in which tiers it was answered, and how well."""

    concept: str
    label: str
    first_seen_at: datetime
    last_seen_at: datetime
    tiers: dict[Tier, Counters] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentNode:
    """One concept of `kg_nodes`. `memory_ids` is bounded, `mentions` counts them all."""

    node_id: str
    label: str
    type: NodeType
    mentions: int
    quality_sum: float
    first_seen_at: datetime
    last_seen_at: datetime
    memory_ids: tuple[str, ...] = ()

    @property
    def avg_quality(self) -> float:
        return self.quality_sum / self.mentions if self.mentions else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentEdge:
    """`source` < `target`: co-occurrence has no direction."""

    source: str
    target: str
    weight: float
    first_seen_at: datetime
    last_seen_at: datetime
    relation: str = CO_OCCURS


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRow:
    """One row of `kg_actions`: how an action did in a context with memories of a tier.

    `tier` None: a tool, which brought something else than memories.
    """

    context_type: str
    action: str
    tier: Tier | None
    counters: Counters
    first_used_at: datetime
    last_used_at: datetime
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSolution:
    """A memory that solved this problem before."""

    problem_hash: str
    memory_id: str
    point_id: str
    success_count: int
    last_used_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentEffect:
    """Outcome counters of one book: items of books carry no score of their own."""

    doc_id: str
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion:
    """A question as the graphs know it: concept keys, kind of work, problem fingerprint."""

    concepts: tuple[str, ...] = ()
    context_type: str = "general"
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPriors:
    """Everything that a search or an insight asks of the graphs, read in one round trip."""

    routing: tuple[RoutingRow, ...] = ()
    nodes: tuple[ContentNode, ...] = ()
    actions: tuple[ActionRow, ...] = ()
    solutions: tuple[KnownSolution, ...] = ()
    documents: tuple[DocumentEffect, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.routing or self.nodes or self.actions or self.solutions or self.documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingIncrement:
    concept: Concept
    tier: Tier
    counters: Counters
    at: datetime
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionIncrement:
    context_type: str
    action: str
    tier: Tier | None
    counters: Counters
    at: datetime
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionIncrement:
    problem_hash: str
    memory_id: str
    point_id: str
    at: datetime
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentIncrement:
    doc_id: str
    counters: Counters
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeChanges:
    """What the outcomes of one user add to the graphs, in this order.

    Counters without a positive `uses` take back: such a row is never created, never goes below
    zero, loses its `examples` instead of gaining them, and goes with its last use.
    """

    routing: tuple[RoutingIncrement, ...] = ()
    actions: tuple[ActionIncrement, ...] = ()
    solutions: tuple[SolutionIncrement, ...] = ()
    documents: tuple[DocumentIncrement, ...] = ()


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one item adds to the content graph; the empty one adds nothing.

    It is stored with the item, so that what was added can be taken back exactly.
    """

    concepts: tuple[Concept, ...] = ()
    quality: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """An item whose graph contribution, or near-duplicates, must be looked at again."""

    item: MemoryItem
    contributed: Contribution = field(default_factory=Contribution)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIncrement:
    """`mentions` is +1, 0 or -1; `memory_id` joins or leaves the node's list with it."""

    concept: Concept
    mentions: int
    quality: float
    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeIncrement:
    source: str
    target: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentChanges:
    nodes: tuple[NodeIncrement, ...] = ()
    edges: tuple[EdgeIncrement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentStats:
    nodes: int
    edges: int
    last_updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNodeView:
    """A node as a picture shows it; `id` starts with routing_, content_ or action_."""

    id: str
    concept: str
    type: str
    score: float
    usage: int
    success_rate: float
    created_at: datetime | None
    last_used: datetime | None
    connections: int = 0
    best_tier: Tier | None = None


@dataclass(frozen=True, slots=True)
class GraphEdgeView:
    source: str
    target: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphView:
    nodes: tuple[GraphNodeView, ...]
    edges: tuple[GraphEdgeView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphListing:
    """What a list of concepts is made of: their rows, the picture of them, and actions."""

    concepts: tuple[RoutingRow, ...]
    picture: GraphView
    actions: tuple[ActionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptDefinition:
    """Everything the graphs know of one concept; `neighbours` are the other ends of `edges`."""

    concept: Concept
    routing: RoutingRow | None
    node: ContentNode | None
    actions: tuple[ActionRow, ...]
    edges: tuple[ContentEdge, ...]
    memories: tuple[MemoryItem, ...]
    neighbours: tuple[ContentNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathView:
    """The shortest way between two concepts; empty `nodes` = there is none."""

    nodes: tuple[ContentNode, ...]
    edges: tuple[ContentEdge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightsRequest:
    """`recent` holds the last messages of the conversation, oldest first.

    `message_id`: of the answer that this is for. What was asked for the same one is no repetition.
    """

    query: str
    conversation_id: str | None = None
    recent: tuple[str, ...] = ()
    message_id: str | None = None

    def __post_init__(self) -> None:
        """Whoever asks, the question carries what is read of it from here on."""
        object.__setattr__(self, "query", Utterance(self.query))


@dataclass(frozen=True, slots=True, kw_only=True)
class TierAdvice:
    """`advised` False: known to be poor here; it is searched all the same."""

    tier: Tier
    wilson: float
    uses: int
    advised: bool
    success_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PastExperience:
    """A memory that helped or failed with these concepts; `reason` says what is known of why."""

    item: MemoryItem
    outcome: Outcome
    concept: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionAdvice:
    """`uses` are those that were judged."""

    action: str
    context_type: str
    uses: int
    worked: int
    failed: int
    success_rate: float
    wilson: float
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextInsights:
    """What the graphs say before any search: no embedding is computed for it.

    Attributes:
        directives: short sentences for the assistant, in `language`, most important first.
        continuity: concepts that this question shares with the conversation so far.
        repeated: an earlier question of this conversation that asked the same, if there is one.
        best_tiers: by concept key, the tier that answered it best, for those that were judged.
    """

    query: str
    language: str
    context_type: str
    concepts: tuple[Concept, ...]
    matched: tuple[Concept, ...]
    tiers: tuple[TierAdvice, ...]
    patterns: tuple[PastExperience, ...]
    failures: tuple[PastExperience, ...]
    actions: tuple[ActionAdvice, ...]
    continuity: tuple[str, ...] = ()
    repeated: str | None = None
    directives: tuple[str, ...] = ()
    known_solution: MemoryItem | None = None
    best_tiers: Mapping[str, TierAdvice] = field(default_factory=dict)
    built_ms: float = 0.0
