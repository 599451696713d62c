"""The context of a question as JSON values; the hooks show it in the same shapes."""

from __future__ import annotations

from typing import Any

from rayapp.assistant.context.records import AssistantContext, ColdStart, GatingDecision
from rayapp.assistant.context.rules.meta import UNNAMED, memory_meta, retrieval_debug
from rayapp.memory.tiers import tier_name


def context_view(
    found: AssistantContext, *, user_id: str, documents: bool, with_text: bool, took_ms: float
) -> dict[str, Any]:
    """The context of a question. What happened on the way stands in `memory_meta.debug`."""
    block = found.block
    return {
        "success": True,
        "latency_ms": took_ms,
        "confidence": found.confidence,
        "stable_text": block.stable if with_text else None,
        "volatile_text": block.volatile if with_text else None,
        **_beside_text(found),
        "memory_meta": memory_meta(found, user_id=user_id, documents=documents),
    }


def prefetch_view(
    found: AssistantContext, *, user_id: str, documents: bool, with_text: bool, took_ms: float
) -> dict[str, Any]:
    """The same in the names of the first client, where the block is one text."""
    return {
        "success": True,
        "latencyMs": took_ms,
        "retrievalConfidence": found.confidence,
        "retrievalDebug": {**retrieval_debug(found), "confidence": found.confidence},
        "memoryContextInjection": (found.block.text or None) if with_text else None,
        **_beside_text(found),
        "memoryMeta": memory_meta(found, user_id=user_id, documents=documents, unnamed=UNNAMED),
    }


def _beside_text(found: AssistantContext) -> dict[str, Any]:
    """What both shapes say under the same names."""
    block, task = found.block, found.task
    return {
        "etag": block.etag,
        "receipt_id": found.receipt_id,
        "tokens": block.tokens,
        "left_out": block.left_out,
        "task": {
            "complexity": task.complexity,
            "context_type": task.context_type,
            "language": task.language,
            "intent": task.intent,
            "limit": task.limit,
        },
        "gating": gating_view(found.gating),
        "degraded": found.degraded,
    }


def gating_view(decision: GatingDecision) -> dict[str, Any]:
    """An empty list would be read as "none may be called" where no tools were named."""
    named = bool(decision.allowed) or decision.reduced > 0
    return {
        "allowed_tools": decision.allowed if named else None,
        "reduced_count": decision.reduced,
        "reason_code": decision.reason,
        "trace_explanation": {"he": decision.trace_he, "en": decision.trace_en},
    }


def cold_start_view(found: ColdStart, documents: bool) -> dict[str, Any]:
    return {
        "text": found.text,
        "memories": [
            {
                "position": position,
                "memory_id": item.memory_id,
                "tier": tier_name(item.tier, documents),
                "content": item.text,
            }
            for position, item in enumerate(found.items, start=1)
        ],
        "count": len(found.items),
        "receipt_id": found.receipt_id,
        "degraded": found.degraded,
    }
