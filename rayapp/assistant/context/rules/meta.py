"""MemoryMetaV1: what a message's memory panel shows, built from one prefetch. Pure.

Its JSON Schema is `memory_meta_v1.schema.json` beside this file.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rayapp.assistant.context.rules.pinned import cited_ids
from rayapp.assistant.records import AssistantContext, ContextLine
from rayapp.assistant.tools.rules.texts import advice_data, iso
from rayapp.core.ids import user_of
from rayapp.graphs.records import ContextInsights
from rayapp.memory.item import MemoryItem
from rayapp.memory.rules.lifecycle import success_estimate
from rayapp.memory.tiers import CORE_TIERS, Tier, tier_name
from rayapp.search.requests import Hit, SearchAnswer
from rayapp.text.normalize import normalize

SCHEMA_VERSION = "v1"
# What the first client hears of a conversation or a message that it did not name.
UNNAMED = "perf"
# Entries of each list (transport rule of the schema: lists are capped by count).
MAX_ENTRIES = 50
# Degraded reasons of the search that say that no vector was used.
_NO_VECTORS = frozenset({"embedder", "index", "index_rebuilding", "index_refused", "search"})


def memory_meta(
    context: AssistantContext,
    *,
    user_id: str,
    message_id: str | None = None,
    documents: bool = True,
    unnamed: str | None = None,
) -> dict[str, Any]:
    """Plain JSON values.

    Args:
        message_id: of the assistant's answer; that of the request when None.
        documents: the books tier is called `documents`, as the first client does.
        unnamed: stands for a conversation or a message that the caller did not name.
    """
    request, block = context.request, context.block.lines
    lines = [line for line in block if line.numbered][:MAX_ENTRIES]
    standing = [line for line in block if not line.numbered][:MAX_ENTRIES]
    wanted = cited_ids(lines, context.search)
    cited = [line for line in lines if line.memory_id in wanted]
    uncited = [line for line in lines if line.memory_id not in wanted]
    named = partial(tier_name, documents=documents)
    return {
        "schema_version": SCHEMA_VERSION,
        "conversation_id": request.conversation_id or unnamed,
        "assistant_message_id": message_id or request.message_id or unnamed,
        "user_id": user_of(user_id),
        "created_at": iso(context.at),
        "context_type": context.task.context_type,
        "retrieval": _retrieval(context, lines, named),
        "known_context": {
            "known_context_text": context.block.text,
            # What the question found; what stands before every question is no part of it.
            "known_context_items": [_known(line, context, named) for line in lines],
            "standing_items": [_known(line, context, named) for line in standing],
        },
        # What the answer can rest on; a verdict over all of it must not reach what always stands.
        "citations": [_citation(line, _hit_of(line, context.search), named) for line in cited],
        "uncited": [_citation(line, _hit_of(line, context.search), named) for line in uncited],
        "context_insights": _insights(context, named),
        "debug": retrieval_debug(context),
        "feedback": {
            "eligible": bool(lines) and context.receipt_id is not None,
            "interrupted": False,
            "eligible_reason": _why_not(context, lines),
            "default_related_positions": [line.position for line in cited],
        },
    }


def retrieval_debug(context: AssistantContext) -> dict[str, Any]:
    """What happened on the way: also `retrievalDebug` of a prefetch."""
    errors = context.search.errors if context.search else ()
    return {
        "retrieval_confidence": context.confidence,
        "fallbacks_used": list(context.degraded),
        "stage_timings_ms": dict(context.timings_ms),
        "errors": [
            {"stage": one.stage, "message": one.message, "code": one.code} for one in errors
        ],
        "vector_stage_status": _vectors(context),
    }


_Named = Callable[[Tier], str]


def _retrieval(
    context: AssistantContext, lines: Sequence[ContextLine], named: _Named
) -> dict[str, Any]:
    search = context.search
    return {
        "query": context.request.query,
        "normalized_query": normalize(context.request.query),
        "limit": context.task.limit,
        "sort_by": search.sort_by if search else None,
        "tiers_considered": list(map(named, search.tiers if search else CORE_TIERS)),
        "tiers_used": list(dict.fromkeys(named(line.tier) for line in lines)),
        "receipt_id": context.receipt_id,
        "search_position_map": {
            "by_position": [
                {"position": line.position, "tier": named(line.tier), "memory_id": line.memory_id}
                for line in lines
            ],
            "by_memory_id": {
                line.memory_id: {"position": line.position, "tier": named(line.tier)}
                for line in lines
            },
        },
    }


def _citation(line: ContextLine, hit: Hit | None, named: _Named) -> dict[str, Any]:
    item = line.item
    return {
        "position": line.position,
        "tier": named(line.tier),
        "memory_id": line.memory_id,
        "doc_id": item.source.doc_id,
        "chunk_id": item.source.chunk_id,
        "subject_id": item.subject_id,
        "content": item.text,
        **_trust(line, hit),
    }


def _known(line: ContextLine, context: AssistantContext, named: _Named) -> dict[str, Any]:
    return {
        "tier": named(line.tier),
        "memory_id": line.memory_id,
        "content": line.item.text,
        "doc_id": line.item.source.doc_id,
        "subject_id": line.item.subject_id,
        **_trust(line, _hit_of(line, context.search)),
    }


def _trust(line: ContextLine, hit: Hit | None) -> dict[str, float]:
    """How well it did, and how sure it is what was asked for, each 0..1."""
    item = line.item
    return {
        "wilson_score": success_estimate(item.stats.success_count, item.stats.uses).value,
        "confidence": min(1.0, hit.summary.final_score) if hit else item.quality.confidence,
    }


def _hit_of(line: ContextLine, search: SearchAnswer | None) -> Hit | None:
    hits = search.hits if search else ()
    return next((hit for hit in hits if hit.item.memory_id == line.memory_id), None)


def _insights(context: AssistantContext, named: _Named) -> dict[str, Any]:
    found = context.insights
    lines = {line.memory_id: line for line in context.block.lines}
    known = [_fact(lines[name].item, named) for name in lines if name in context.known]
    return {
        "matched_concepts": [one.label for one in found.matched] if found else [],
        "active_concepts": _active(found, named) if found else [],
        "tier_recommendations": advice_data(found, named) if found else None,
        "you_already_know": known,
        "directives": list(found.directives) if found else None,
    }


def _active(found: ContextInsights, named: _Named) -> list[dict[str, Any]]:
    """Concepts of the question, each with the tier that answered it best, as far as is known."""
    known = [(one.label, found.best_tiers.get(one.key)) for one in found.concepts]
    return [
        {
            "concept": label,
            "best_collection": named(best.tier) if best else None,
            "success_rate": best.success_rate if best else None,
            "usage_count": best.uses if best else None,
            "wilson_score": best.wilson if best else None,
        }
        for label, best in known
    ]


def _fact(item: MemoryItem, named: _Named) -> dict[str, Any]:
    return {"tier": named(item.tier), "memory_id": item.memory_id, "content": item.text}


def _vectors(context: AssistantContext) -> str:
    if "index_refused" in context.degraded:
        return "disabled_schema_mismatch"
    return "enabled" if _NO_VECTORS.isdisjoint(context.degraded) else "disabled_breaker_open"


def _why_not(context: AssistantContext, lines: Sequence[ContextLine]) -> str | None:
    if not lines:
        return "nothing_shown"
    return None if context.receipt_id is not None else "no_receipt"
