"""What callers ask of the graphs and what they get back: plain values, no HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rayapp.graphs.records import ActionRow, ContentEdge, ContentNode, RoutingRow
from rayapp.memory.item import MemoryItem, Outcome
from rayapp.memory.tiers import Tier
from rayapp.text.concepts import Concept


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNodeView:
    """A node as a picture shows it; `id` starts with routing_, content_ or action_."""

    id: str
    concept: str
    type: str
    score: float
    usage: int
    connections: int
    success_rate: float
    created_at: datetime | None
    last_used: datetime | None
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
class BackfillReport:
    dry_run: bool
    processed: int
    node_ops: int
    edge_ops: int
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightsRequest:
    """`recent` holds the last messages of the conversation, oldest first.

    `message_id`: of the answer that this is for. What was asked for the same one is no repetition.
    """

    query: str
    conversation_id: str | None = None
    recent: tuple[str, ...] = ()
    message_id: str | None = None


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
    action: str
    context_type: str
    uses: int
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
    built_ms: float = 0.0
