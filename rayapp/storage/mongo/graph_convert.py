"""Documents of the graph collections to domain values, and contributions both ways. Pure."""

from __future__ import annotations

from typing import Any

from rayapp.graphs.records import (
    ActionRow,
    ContentEdge,
    ContentNode,
    Contribution,
    Counters,
    DocumentEffect,
    Example,
    KnownSolution,
    RoutingRow,
)
from rayapp.graphs.rules.content import Refused
from rayapp.memory.item import Outcome
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept

Document = dict[str, Any]
COUNTERS = ("uses", "worked", "partial", "unknown", "failed")


def routing_row(doc: Document) -> RoutingRow:
    return RoutingRow(
        concept=doc["concept"],
        label=doc["label"],
        tiers={Tier(tier): counters(found) for tier, found in doc.get("tiers", {}).items()},
        first_seen_at=doc["first_seen_at"],
        last_seen_at=doc["last_seen_at"],
        aliases=tuple(doc.get("aliases", ())),
        examples=examples(doc),
    )


def content_node(doc: Document) -> ContentNode:
    return ContentNode(
        node_id=doc["node_id"],
        label=doc["label"],
        type=doc["type"],
        mentions=doc["mentions"],
        quality_sum=doc["quality_sum"],
        first_seen_at=doc["first_seen_at"],
        last_seen_at=doc["last_seen_at"],
        memory_ids=tuple(reversed(doc.get("memory_ids", ()))),
    )


def content_edge(doc: Document) -> ContentEdge:
    return ContentEdge(
        source=doc["source"],
        target=doc["target"],
        relation=doc["relation"],
        weight=doc["weight"],
        first_seen_at=doc["first_seen_at"],
        last_seen_at=doc["last_seen_at"],
    )


def action_row(doc: Document) -> ActionRow:
    return ActionRow(
        context_type=doc["context_type"],
        action=doc["action"],
        tier=Tier(doc["tier"]),
        counters=counters(doc["counters"]),
        first_used_at=doc["first_used_at"],
        last_used_at=doc["last_used_at"],
        examples=examples(doc),
    )


def known_solution(doc: Document) -> KnownSolution:
    return KnownSolution(
        problem_hash=doc["problem_hash"],
        memory_id=doc["memory_id"],
        point_id=doc["point_id"],
        success_count=doc["success_count"],
        last_used_at=doc["last_used_at"],
    )


def document_effect(doc: Document) -> DocumentEffect:
    return DocumentEffect(doc_id=doc["doc_id"], counters=counters(doc["counters"]))


def counters(doc: Document) -> Counters:
    return Counters(**{name: doc.get(name, 0) for name in COUNTERS})


def examples(doc: Document) -> tuple[Example, ...]:
    """Newest first."""
    return tuple(
        Example(
            memory_id=found["memory_id"],
            point_id=found["point_id"],
            tier=Tier(found["tier"]),
            outcome=Outcome(found["outcome"]),
            at=found["at"],
        )
        for found in reversed(doc.get("examples", ()))
    )


def example_document(example: Example) -> Document:
    return {
        "memory_id": example.memory_id,
        "point_id": example.point_id,
        "tier": example.tier.value,
        "outcome": example.outcome.value,
        "at": example.at,
    }


def contribution_document(contribution: Contribution, refused: Refused) -> Document | None:
    """None when the item adds nothing: the index queue then may remove its tombstone."""
    if not contribution.concepts:
        return None
    return {
        "concepts": [
            {"key": concept.key, "label": concept.label, "type": concept.type}
            for concept in contribution.concepts
        ],
        "quality": contribution.quality,
        "refused_nodes": sorted(refused.nodes),
        "refused_edges": [list(edge) for edge in sorted(refused.edges)],
    }


def contribution_of_document(doc: Document | None) -> tuple[Contribution, Refused]:
    if doc is None:
        return Contribution(), Refused()
    contribution = Contribution(
        concepts=tuple(Concept(c["key"], c["label"], c["type"]) for c in doc["concepts"]),
        quality=doc["quality"],
    )
    refused = Refused(
        nodes=frozenset(doc.get("refused_nodes", ())),
        edges=frozenset((source, target) for source, target in doc.get("refused_edges", ())),
    )
    return contribution, refused
