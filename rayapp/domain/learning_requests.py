"""What callers ask of learning and what they get back: plain values, no HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rayapp.domain.graphs.records import (
    ActionRow,
    Concept,
    ContentEdge,
    ContentNode,
    RoutingRow,
)
from rayapp.domain.learning import AppliedOutcome, Signal, Skipped
from rayapp.domain.memory import MemoryItem, Outcome
from rayapp.domain.tiers import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Who records outcomes. `owner` False limits them to what this principal was shown."""

    principal: str = "local"
    owner: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRequest:
    """About `memory_ids`, or `positions` (from 1) of a receipt, or all that the receipt shows.

    A receipt is named, or found as the newest unscored one of `conversation_id`. `request_hash`
    is the fingerprint of the larger request that this one is a part of; empty when it is whole.
    """

    outcome: Outcome
    memory_ids: tuple[str, ...] | None = None
    positions: tuple[int, ...] | None = None
    receipt_id: str | None = None
    conversation_id: str | None = None
    idempotency_key: str | None = None
    signal: Signal = field(default_factory=Signal)
    recorder: Recorder = field(default_factory=Recorder)
    action: str = "search_memory"
    request_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeAnswer:
    updated: tuple[AppliedOutcome, ...]
    skipped: tuple[Skipped, ...]
    duplicate: bool
    receipt_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    """record_response. `related` None = everything that the receipt shows.

    `related` holds positions of the receipt (int) and memory ids (str), mixed.
    """

    key_takeaway: str
    outcome: Outcome = Outcome.UNKNOWN
    related: tuple[int | str, ...] | None = None
    receipt_id: str | None = None
    conversation_id: str | None = None
    idempotency_key: str | None = None
    recorder: Recorder = field(default_factory=Recorder)


# Why a response scored nothing. already_scored: what the conversation was shown last was scored
# before. nothing_shown: no search showed a memory. none_named: `related` is empty. no_receipt: no
# search and no conversation was named.
NothingScored = Literal["already_scored", "nothing_shown", "none_named", "no_receipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseAnswer:
    """`scored` is empty when there was nothing to score; `nothing` says why.

    `duplicate`: the key was used before, and this call changed nothing. A takeaway whose text is
    known already is none: `memory_id` is then the memory that has the text.
    """

    memory_id: str
    duplicate: bool
    scored: OutcomeAnswer
    nothing: NothingScored | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRequest:
    """A person's thumb on an answer: 1 worked, 0 partial, -1 failed, once per citation.

    The newest thumb on a citation counts: the same one again changes nothing, another one does.
    """

    message_id: str
    score: int
    conversation_id: str | None = None
    citations: tuple[str, ...] = ()
    recorder: Recorder = field(default_factory=Recorder)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionReport:
    """One cycle. `deleted` stays 0: rules archive, they delete nothing."""

    examined: int = 0
    promoted: int = 0
    demoted: int = 0
    archived: int = 0
    merged: int = 0
    deleted: int = 0
    errors: int = 0
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionSchedule:
    """`running`: the next cycle over all users comes by itself, not: one goes on now."""

    interval_ms: int
    running: bool
    last_run_at: datetime | None


# --- graph views ---------------------------------------------------------------------------


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


# --- insights ------------------------------------------------------------------------------


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
