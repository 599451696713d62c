"""Rows of the graphs with readable defaults; a test names only what it is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rayapp.graphs.records import (
    ActionRow,
    ContentEdge,
    ContentNode,
    ContextInsights,
    Counters,
    Example,
    InsightsRequest,
    KnownSolution,
    RoutingRow,
)
from rayapp.graphs.rules.question import Question, read_question
from rayapp.learning.records import AppliedOutcome, OutcomeEvent
from rayapp.learning.rules.insights import Evidence, insights_of
from rayapp.memory.item import MemoryItem, Outcome, Stats
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item

AT = datetime(2026, 2, 1, 10, 0, tzinfo=UTC)
NOW = AT + timedelta(days=30)
ENGLISH = "Docker build fails on Jenkins"
HEBREW = "הבנייה של דוקר נכשלת בשרת ג'נקינס"


def later(days: float) -> datetime:
    return AT + timedelta(days=days)


def counted(worked: int = 0, failed: int = 0, partial: int = 0, unknown: int = 0) -> Counters:
    return Counters(
        uses=worked + failed + partial + unknown,
        worked=worked,
        failed=failed,
        partial=partial,
        unknown=unknown,
    )


def routing(concept: str, tiers: dict[Tier, Counters] | None = None, **changes: Any) -> RoutingRow:
    return RoutingRow(
        concept=concept,
        label=changes.pop("label", concept),
        tiers={Tier.HISTORY: counted(3)} if tiers is None else tiers,
        first_seen_at=changes.pop("first_seen_at", AT),
        last_seen_at=changes.pop("last_seen_at", later(1)),
        **changes,
    )


def node(node_id: str, **changes: Any) -> ContentNode:
    return ContentNode(
        node_id=node_id,
        label=changes.pop("label", node_id),
        type=changes.pop("type", "concept"),
        mentions=changes.pop("mentions", 2),
        quality_sum=changes.pop("quality_sum", 1.0),
        first_seen_at=AT,
        last_seen_at=later(2),
        **changes,
    )


def edge(source: str, target: str, weight: float = 1.0) -> ContentEdge:
    source, target = sorted((source, target))
    return ContentEdge(
        source=source, target=target, weight=weight, first_seen_at=AT, last_seen_at=AT
    )


def action(
    context_type: str,
    name: str,
    counters: Counters,
    tier: Tier | None = Tier.HISTORY,
    **changes: Any,
) -> ActionRow:
    return ActionRow(
        context_type=context_type,
        action=name,
        tier=tier,
        counters=counters,
        first_used_at=changes.pop("first_used_at", AT),
        last_used_at=changes.pop("last_used_at", later(3)),
        **changes,
    )


def example(item: MemoryItem, outcome: Outcome, at: datetime = AT) -> Example:
    return Example(
        memory_id=item.memory_id, point_id=item.point_id, tier=item.tier, outcome=outcome, at=at
    )


def solution(item: MemoryItem, problem: str, count: int = 2, at: datetime = AT) -> KnownSolution:
    return KnownSolution(
        problem_hash=problem,
        memory_id=item.memory_id,
        point_id=item.point_id,
        success_count=count,
        last_used_at=at,
    )


def failure(
    item: MemoryItem, at: datetime, *, query: str = "", concepts: tuple[str, ...] = ()
) -> OutcomeEvent:
    """The event of one failed outcome of `item`."""
    return OutcomeEvent(
        user_id=item.user_id,
        idempotency_key=f"k-{item.memory_id}-{at.isoformat()}",
        principal="local",
        outcome=Outcome.FAILED,
        at=at,
        memory_ids=(item.memory_id,),
        query=query,
        concepts=concepts,
        applied=(
            AppliedOutcome(
                memory_id=item.memory_id,
                point_id=item.point_id,
                tier=item.tier,
                uses=1,
                success_count=0.0,
                score=0.2,
                wilson_score=0.0,
            ),
        ),
    )


def asked(query: str, *recent: str) -> Question:
    return read_question(InsightsRequest(query=query, recent=recent))


def judged(text: str, *, worked: int = 0, failed: int = 0, **changes: Any) -> MemoryItem:
    stats = Stats(
        uses=worked + failed,
        worked_count=worked,
        failed_count=failed,
        wilson_score=worked / max(1, worked + failed),
        last_outcome=changes.pop("last_outcome", None),
        last_outcome_at=changes.pop("last_outcome_at", None),
    )
    return an_item(text=text, stats=stats, **changes)


def told(question: Question, now: datetime = NOW, **evidence: Any) -> ContextInsights:
    return insights_of(question, Evidence(**evidence), now)
