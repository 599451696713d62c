"""The graphs as JSON objects, with the names that the first client reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayapp.graphs.records import (
    ActionRow,
    ConceptDefinition,
    ContentEdge,
    ContentNode,
    Counters,
    GraphEdgeView,
    GraphNodeView,
)
from rayapp.graphs.rules.routing import action_success_rate, success_rate, wilson_of
from rayapp.graphs.rules.views import (
    CONTENT_PREFIX,
    action_totals,
    best_tiers,
    examples_of,
    total_of,
)
from rayapp.memory.item import MemoryItem
from rayapp.memory.rules.lifecycle import success_estimate
from rayapp.memory.tiers import Tier, tier_name

PREVIEW_CHARS = 220  # client contract
MAX_EXAMPLES = 5
ALL_TIERS = "*"  # client contract: the row of an action over all tiers


def cut(text: str) -> str:
    """The start of a text, as panels show it."""
    return text if len(text) <= PREVIEW_CHARS else f"{text[: PREVIEW_CHARS - 1].rstrip()}…"


def node_view(node: GraphNodeView, documents: bool) -> dict[str, Any]:
    return {
        "id": node.id,
        "concept": node.concept,
        "type": node.type,
        "score": node.score,
        "usage": node.usage,
        "connectionCount": node.connections,
        "success_rate": node.success_rate,
        "best_collection": tier_name(node.best_tier, documents) if node.best_tier else None,
        "created_at": node.created_at,
        "last_used": node.last_used,
    }


def edge_view(edge: GraphEdgeView) -> dict[str, Any]:
    return {"source": edge.source, "target": edge.target, "weight": edge.weight}


def counters_view(counters: Counters) -> dict[str, int]:
    return {
        "uses": counters.uses,
        "worked": counters.worked,
        "failed": counters.failed,
        "partial": counters.partial,
        "unknown": counters.unknown,
    }


# --- actions -------------------------------------------------------------------------------


def action_views(rows: Sequence[ActionRow]) -> list[dict[str, Any]]:
    """Actions over all tiers, for the list of concepts."""
    return [
        {
            "action": one.action,
            "context_type": one.context_type,
            "success_rate": action_success_rate(one.counters),
            "wilson_score": wilson_of(one.counters),
            "uses": one.counters.uses,
            "last_used": one.last_used_at,
        }
        for one in action_totals(rows)
    ]


def effectiveness_views(rows: Sequence[ActionRow]) -> list[dict[str, Any]]:
    """Actions over all tiers with their newest examples, for the statistics."""
    grouped: dict[tuple[str, str], list[ActionRow]] = {}
    for row in rows:
        grouped.setdefault((row.context_type, row.action), []).append(row)
    return [
        {
            "context_type": one.context_type,
            "action_type": one.action,
            "success_rate": action_success_rate(one.counters),
            "total_uses": one.counters.uses,
            "examples": [
                {"timestamp": e.at, "outcome": e.outcome.value, "doc_id": e.memory_id}
                for e in examples_of(grouped[one.context_type, one.action])[:MAX_EXAMPLES]
            ],
        }
        for one in action_totals(rows)
    ]


def rollup_views(
    rows: Sequence[ActionRow], *, tiers: bool, documents: bool
) -> list[dict[str, Any]]:
    """One row per action and context, and with `tiers` one more per tier; best first."""
    found = [
        _rollup(one.action, one.context_type, ALL_TIERS, one.counters)
        | {"first_used_at": one.first_used_at, "last_used_at": one.last_used_at}
        for one in action_totals(rows)
    ]
    if tiers:
        found += [
            _rollup(row.action, row.context_type, tier_name(row.tier, documents), row.counters)
            | {"first_used_at": row.first_used_at, "last_used_at": row.last_used_at}
            for row in rows
        ]
    return sorted(found, key=lambda one: (-one["wilson_score"], -one["uses"], one["label"]))


def _rollup(action: str, context_type: str, tier: str, counters: Counters) -> dict[str, Any]:
    name = f"{action}@{context_type}"
    return {
        "label": name if tier == ALL_TIERS else f"{name}->{tier}",
        "action": action,
        "context_type": context_type,
        "tier_key": tier,
        **counters_view(counters),
        "success_rate": action_success_rate(counters),
        "wilson_score": wilson_of(counters),
    }


# --- one concept ---------------------------------------------------------------------------


def definition_view(found: ConceptDefinition, documents: bool) -> dict[str, Any]:
    """The contract's nested shape, and beside it what the first client's picture looks for."""
    action = action_totals(found.actions)[0] if found.actions else None
    routing, node = found.routing, found.node
    counters = total_of(routing) if routing else action.counters if action else Counters()
    best: Tier | None = next(iter(best_tiers(routing)), None) if routing else None
    if routing is None and action is not None:
        best = action.best_tier
    by_tier = routing.tiers if routing else {row.tier: row.counters for row in found.actions}
    seen = [one.first_seen_at for one in (routing, node) if one is not None]
    used = [one.last_seen_at for one in (routing, node) if one is not None]
    if action is not None:
        seen.append(action.first_used_at)
        used.append(action.last_used_at)
    together = _together(found)
    rate = action_success_rate(counters) if found.actions else success_rate(counters)
    return {
        "concept": {
            "id": found.concept.key,
            "label": found.concept.label,
            "type": "content" if node else "action" if action else "routing",
        },
        "definition": {
            "content": None,
            "stats": _definition_stats(found, counters, rate)
            | {"first_seen_at": min(seen, default=None), "last_seen_at": max(used, default=None)},
            "related": {
                "edges": [_related_edge(edge) for edge in found.edges],
                "memories": [_related_memory(item, documents) for item in found.memories],
            },
        },
        "best_collection": tier_name(best, documents) if best else None,
        "success_rate": rate,
        "usage_count": counters.uses or (node.mentions if node else 0),
        "total_searches": counters.uses,
        "outcome_breakdown": {
            "worked": counters.worked,
            "failed": counters.failed,
            "partial": counters.partial,
            "unknown": counters.unknown,
        },
        "collections_breakdown": {
            tier_name(tier, documents): {
                "successes": one.worked,
                "failures": one.failed,
                "total": one.uses,
            }
            for tier, one in by_tier.items()
        },
        "related_concepts": [one["concept"] for one in together],
        "related_concepts_with_stats": together,
        "created_at": min(seen, default=None),
        "last_used": max(used, default=None),
    }


def _definition_stats(found: ConceptDefinition, counters: Counters, rate: float) -> dict[str, Any]:
    """What is known of this kind of concept; nothing is made up for the other kinds."""
    stats: dict[str, Any] = {}
    if found.node is not None:
        stats |= {"mentions": found.node.mentions, "avg_quality": found.node.avg_quality}
    if found.actions:
        stats |= {
            "context_type": found.actions[0].context_type,
            "action": found.actions[0].action,
        }
    if found.routing is not None or found.actions:
        stats |= counters_view(counters)
        stats |= {"success_rate": rate, "wilson_score": wilson_of(counters)}
    return stats


def _together(found: ConceptDefinition) -> list[dict[str, Any]]:
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
            {
                "concept": node.label if node else key,
                "concept_id": key,
                "co_occurrence": edge.weight,
                "success_together": worked,
                "failure_together": failed,
                "success_rate": success_rate(Counters(worked=worked, failed=failed)),
            }
        )
    return rows


def _related_edge(edge: ContentEdge) -> dict[str, Any]:
    return {
        "source_id": edge.source,
        "target_id": edge.target,
        "relation": edge.relation,
        "weight": edge.weight,
    }


def _related_memory(item: MemoryItem, documents: bool) -> dict[str, Any]:
    return {
        "memory_id": item.memory_id,
        "tier": tier_name(item.tier, documents),
        "text_preview": cut(item.text),
        "updated_at": item.updated_at,
    }


# --- paths and patterns --------------------------------------------------------------------


def path_node_view(node: ContentNode) -> dict[str, Any]:
    return {
        "id": CONTENT_PREFIX + node.node_id,
        "concept": node.label,
        "type": node.type,
        "mentions": node.mentions,
        "avg_quality": node.avg_quality,
    }


def path_edge_view(edge: ContentEdge) -> dict[str, Any]:
    """Its ends are ids of `path_node_view`."""
    return {
        "source": CONTENT_PREFIX + edge.source,
        "target": CONTENT_PREFIX + edge.target,
        "weight": edge.weight,
    }


def pattern_view(item: MemoryItem) -> dict[str, Any]:
    stats = item.stats
    estimate = success_estimate(stats.success_count, stats.uses)
    return {
        "memory_id": item.memory_id,
        "summary": item.summary or cut(item.text),
        "text_preview": cut(item.text),
        "uses": stats.uses,
        "success_rate": stats.success_rate,
        "success_estimate": estimate,
        "wilson_score": estimate.value,
        "score": stats.score,
        "worked": stats.worked_count,
        "failed": stats.failed_count,
        "partial": stats.partial_count,
        "unknown": stats.unknown_count,
        "updated_at": item.updated_at,
    }
