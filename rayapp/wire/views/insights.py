"""What the graphs say of a question, as a JSON object."""

from __future__ import annotations

from typing import Any

from rayapp.graphs.records import ContextInsights, PastExperience
from rayapp.memory.rules.lifecycle import success_estimate
from rayapp.memory.tiers import tier_name
from rayapp.text.concepts import Concept
from rayapp.wire.views.graphs import cut


def insights_view(found: ContextInsights, documents: bool) -> dict[str, Any]:
    known = found.known_solution
    return {
        "query": found.query,
        "language": found.language,
        "context_type": found.context_type,
        "concepts": [_concept(one) for one in found.concepts],
        "active_concepts": [one.label for one in found.concepts],
        "matched_concepts": [one.label for one in found.matched],
        "tier_recommendations": [
            {
                "tier": tier_name(one.tier, documents),
                "wilson_score": one.wilson,
                "uses": one.uses,
                "advised": one.advised,
            }
            for one in found.tiers
        ],
        "relevant_patterns": [_experience(one, documents) for one in found.patterns],
        "past_failures": [_experience(one, documents) for one in found.failures],
        "action_stats": [
            {
                "action": one.action,
                "context_type": one.context_type,
                "uses": one.uses,
                "success_rate": one.success_rate,
                "wilson_score": one.wilson,
                "advice": one.advice,
            }
            for one in found.actions
        ],
        "topic_continuity": found.continuity,
        "repeated_question": found.repeated,
        "known_solution": None
        if known is None
        else {
            "memory_id": known.memory_id,
            "tier": tier_name(known.tier, documents),
            "content": known.text,
            "wilson_score": known.stats.wilson_score,
        },
        "directives": found.directives,
    }


def _concept(one: Concept) -> dict[str, str]:
    return {"concept_id": one.key, "label": one.label, "type": one.type}


def _experience(one: PastExperience, documents: bool) -> dict[str, Any]:
    item = one.item
    return {
        "memory_id": item.memory_id,
        "tier": tier_name(item.tier, documents),
        "content": item.text,
        "text_preview": cut(item.text),
        "outcome": one.outcome.value,
        "concept": one.concept,
        "reason": one.reason,
        "uses": item.stats.uses,
        "success_rate": item.stats.success_rate,
        "wilson_score": item.stats.wilson_score,
        "success_estimate": success_estimate(item.stats.success_count, item.stats.uses),
        "at": one.at,
    }
