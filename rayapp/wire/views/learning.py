"""Outcomes and promotion as JSON objects."""

from __future__ import annotations

from typing import Any

from rayapp.learning.records import (
    AppliedOutcome,
    NothingScored,
    OutcomeAnswer,
    PromotionReport,
    ResponseAnswer,
    Skipped,
)
from rayapp.memory.rules.lifecycle import success_estimate
from rayapp.memory.tiers import tier_name

NOTHING_SCORED: dict[NothingScored, str] = {
    "already_scored": "what this conversation was shown last has been scored already.",
    "nothing_shown": "no memories were shown that could be scored.",
    "none_named": "`related` names no memories.",
    "no_receipt": "name a receipt_id, a conversation_id, or memories in `related`.",
}


def outcome_view(found: OutcomeAnswer, documents: bool) -> dict[str, Any]:
    return {
        "success": True,
        "duplicate": found.duplicate,
        "updated": [_scored(one, documents) for one in found.updated],
        "skipped": skipped_views(found.skipped),
        "receipt_id": found.receipt_id,
        "degraded": [],
    }


def response_view(found: ResponseAnswer, documents: bool) -> dict[str, Any]:
    """`duplicate` is that of the whole call; what was scored stands beside the takeaway."""
    return outcome_view(found.scored, documents) | {
        "memory_id": found.memory_id,
        "duplicate": found.duplicate,
        "scored": len(found.scored.updated),
        "message": _response_message(found),
    }


def _response_message(found: ResponseAnswer) -> str:
    """Of a repeated call too: it gets the first answer again."""
    if found.nothing is not None:
        return f"Takeaway kept, but nothing was scored: {NOTHING_SCORED[found.nothing]}"
    if not found.scored.updated:
        return "Takeaway kept, but nothing was scored: `skipped` says why for each memory."
    return "Takeaway kept, memories scored."


def skipped_views(skipped: tuple[Skipped, ...]) -> list[dict[str, Any]]:
    return [{"memory_id": one.memory_id, "reason": one.reason} for one in skipped]


def cycle_view(report: PromotionReport) -> dict[str, Any]:
    return {
        "examined": report.examined,
        "promoted": report.promoted,
        "demoted": report.demoted,
        "archived": report.archived,
        "merged": report.merged,
        "deleted": report.deleted,
        "errors": report.errors,
        "durationMs": report.duration_ms,
    }


def together(answers: list[OutcomeAnswer]) -> OutcomeAnswer:
    """Several records as one answer; `duplicate` only when nothing of it was new."""
    return OutcomeAnswer(
        updated=tuple(one for answer in answers for one in answer.updated),
        skipped=tuple(one for answer in answers for one in answer.skipped),
        duplicate=all(answer.duplicate for answer in answers),
        receipt_id=next((a.receipt_id for a in answers if a.receipt_id is not None), None),
    )


def _scored(one: AppliedOutcome, documents: bool) -> dict[str, Any]:
    return {
        "memory_id": one.memory_id,
        "tier": tier_name(one.tier, documents),
        "uses": one.uses,
        "success_count": one.success_count,
        "score": one.score,
        "wilson_score": one.wilson_score,
        "success_estimate": success_estimate(one.success_count, one.uses),
    }
