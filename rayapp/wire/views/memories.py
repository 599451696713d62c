"""Domain values as JSON objects, built by hand: search answers are the hot path.

Times stay datetimes; the JSON writer turns them into ISO-8601 with Z.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rayapp.core.errors import EmbedderDown, IndexDown
from rayapp.memory.item import MemoryItem, MemoryVersion, Source
from rayapp.memory.requests import StoreResult
from rayapp.memory.rules.filtering import flag_names
from rayapp.memory.rules.lifecycle import age as age
from rayapp.memory.rules.lifecycle import success_estimate
from rayapp.memory.tiers import tier_name
from rayapp.search.requests import Hit, SearchAnswer

PREVIEW_CHARS = 200  # client contract
_VECTOR_CODES = frozenset({EmbedderDown.default_code, IndexDown.default_code})
_DATAGOV_TEXTS = (
    "kind", "category", "dataset_id", "resource_id", "title", "organization", "format", "url",
    "error",
)  # fmt: skip


def preview(text: str) -> str:
    return text if len(text) <= PREVIEW_CHARS else f"{text[: PREVIEW_CHARS - 1].rstrip()}…"


def source_view(source: Source) -> dict[str, Any]:
    return {
        "type": source.type.value,
        "conversation_id": source.conversation_id,
        "message_id": source.message_id,
        "tool_name": source.tool_name,
        "tool_run_id": source.tool_run_id,
        "doc_id": source.doc_id,
        "chunk_id": source.chunk_id,
        "category": (source.datagov or {}).get("category"),
        "book": source.book,
        "datagov": source.datagov,
    }


def datagov_view(source: Source) -> dict[str, Any] | None:
    """The catalogue's facts in one shape: a user's own may be of any type."""
    facts = source.datagov
    if facts is None:
        return None
    texts = {name: facts.get(name) for name in _DATAGOV_TEXTS}
    records, fields = facts.get("total_records"), facts.get("fields")
    return {
        **{name: value if isinstance(value, str) else None for name, value in texts.items()},
        "total_records": records if type(records) is int else None,
        "fields": [str(one) for one in fields] if isinstance(fields, list | tuple) else [],
        "flags": list(flag_names(source)),
    }


def item_view(item: MemoryItem, documents: bool) -> dict[str, Any]:
    """A memory on our own routes."""
    return {
        "memory_id": item.memory_id,
        "user_id": item.user_id,
        "tier": tier_name(item.tier, documents),
        "status": item.status.value,
        "text": item.text,
        "content": item.text,
        "summary": item.summary,
        "tags": item.tags,
        "entities": item.entities,
        "always_inject": item.always_inject,
        "lang": item.lang,
        "source": source_view(item.source),
        "subject_id": item.subject_id,
        "trust": item.trust,
        "importance": item.quality.importance,
        "confidence": item.quality.confidence,
        "quality_score": item.quality.quality_score,
        "mentioned_count": item.quality.mentioned_count,
        "stats": item.stats,
        "success_estimate": success_estimate(item.stats.success_count, item.stats.uses),
        "created_at": item.created_at,
        "stored_at": item.stored_at,
        "updated_at": item.updated_at,
        "archived_at": item.archived_at,
        "archived_reason": item.archived_reason,
        "expires_at": item.expires_at,
        "version": item.version,
        "supersedes": item.supersedes,
        "superseded_by": item.superseded_by,
        "valid_from": item.valid_from,
        "valid_to": item.valid_to,
        "indexed": item.index.sync_state.value == "synced",
        "index": {
            "sync_state": item.index.sync_state.value,
            "op": item.index.op.value,
            "attempts": item.index.attempts,
            "last_error": item.index.last_error,
            "indexed_at": item.index.indexed_at,
        },
    }


def version_view(row: MemoryVersion) -> dict[str, Any]:
    return {
        "version": row.version,
        "text": row.text,
        "tags": row.tags,
        "quality": {
            "importance": row.quality.importance,
            "confidence": row.quality.confidence,
            "quality_score": row.quality.quality_score,
            "mentioned_count": row.quality.mentioned_count,
        },
        "stats": row.stats,
        "change_type": row.change_type.value,
        "reason": row.reason,
        "at": row.at,
    }


def result_view(result: StoreResult) -> dict[str, Any]:
    """One line of a batch answer. What was rejected was not kept, so no id stands for it."""
    if result.status == "rejected":
        refused = {"memory_id": None, "status": result.status}
        return refused | {"code": result.code, "error": result.error}
    view: dict[str, Any] = {"memory_id": result.memory_id, "status": result.status}
    if result.archived:
        view["archived"] = result.archived
    return view


def hit_view(hit: Hit, now: datetime, documents: bool) -> dict[str, Any]:
    """One search result; also what the first client reads at the top level."""
    item, summary, stats = hit.item, hit.summary, hit.item.stats
    tier = tier_name(item.tier, documents)
    estimate = success_estimate(stats.success_count, stats.uses)
    citation = {
        "source_type": item.source.type.value,
        "memory_id": item.memory_id,
        "tier": tier,
    }
    if item.source.doc_id:
        citation["doc_id"] = item.source.doc_id
    return {
        "position": hit.position,
        "memory_id": item.memory_id,
        "tier": tier,
        "content": item.text,
        "preview": preview(item.text),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "age": age(item.created_at, now),
        "tags": item.tags,
        "uses": stats.uses,
        "success_estimate": estimate,
        "wilson_score": estimate.value,
        "score": summary.final_score,
        "last_outcome": stats.last_outcome,
        "source": source_view(item.source),
        "citations": [citation],
        "collapsed_ids": hit.collapsed_ids,
        "datagov": datagov_view(item.source),
        "score_summary": {
            "final_score": summary.final_score,
            "dense_similarity": summary.dense_similarity,
            "text_similarity": summary.text_similarity,
            "fused": summary.fused,
            "rrf_score": summary.rrf_score,
            "ce_score": summary.ce_score,
            "vector_rank": summary.vector_rank,
            "text_rank": summary.text_rank,
            "pending_rank": summary.pending_rank,
            "ce_rank": summary.ce_rank,
            "quality": summary.quality,
            "learned_score": summary.learned_score,
            "evidence": summary.evidence,
            "distance_boost": summary.distance_boost,
            "quality_boost": summary.quality_boost,
            "entity_boost": summary.entity_boost,
            "document_boost": summary.document_boost,
            "action_boost": summary.action_boost,
            "solution_boost": summary.solution_boost,
            "total_boost": summary.total_boost,
            "weights": summary.weights,
            "relevance": summary.relevance,
            "named": summary.named,
            "wilson_score": stats.wilson_score,
            "uses": stats.uses,
            "created_at": item.created_at,
            "updated_at": item.updated_at,
        },
    }


def search_view(
    found: SearchAnswer, now: datetime, documents: bool, *, first_client: bool = False
) -> dict[str, Any]:
    errors = [{"stage": e.stage, "message": e.message, "code": e.code} for e in found.errors]
    lost_vectors = any(error.code in _VECTOR_CODES for error in found.errors)
    debug = {
        "confidence": found.confidence,
        "relevance": found.relevance,
        "best_rejected": found.best_rejected,
        "stage_timings_ms": found.timings_ms,
        "fallbacks_used": found.degraded,
        "errors": errors,
        "vector_stage_status": "failed" if lost_vectors else "ok",
        "recipe": found.recipe,
        "sort_by": found.sort_by,
        "tiers": [tier_name(tier, documents) for tier in found.tiers],
        "language": found.language,
        "expansions": found.expansions,
        "datagov": {
            "searched": found.datagov.searched,
            "guessed": found.datagov.guessed,
            "reason": found.datagov.reason or None,
            "categories": found.datagov.categories,
        },
    }
    return {
        "success": True,
        "receipt_id": found.receipt_id,
        **({"retrievalDebug": debug} if first_client else {}),
        "results": [hit_view(hit, now, documents) for hit in found.hits],
        "total": found.total,
        "abstained": found.abstained,
        "confidence": found.confidence,
        "degraded": found.degraded,
        "debug": debug,
        "hasMore": found.next_offset is not None,
        "nextOffset": found.next_offset,
    }


def recent_view(item: MemoryItem, documents: bool) -> dict[str, Any]:
    """A line of the recent list of the first client."""
    stats = item.stats
    estimate = success_estimate(stats.success_count, stats.uses)
    return {
        "memory_id": item.memory_id,
        "content": item.text,
        "tier": tier_name(item.tier, documents),
        "status": item.status.value,
        "success_estimate": estimate,
        "wilson_score": estimate.value,
        "score": stats.score,
        "uses": stats.uses,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "tags": item.tags,
        "outcomes": {
            "worked": stats.worked_count,
            "failed": stats.failed_count,
            "partial": stats.partial_count,
            "unknown": stats.unknown_count,
        },
        "last_used": stats.last_outcome_at,
        "source": source_view(item.source),
    }


def bank_view(item: MemoryItem, documents: bool) -> dict[str, Any]:
    """A memory on the memory-bank routes of the first client."""
    tool = item.source.tool_name
    estimate = success_estimate(item.stats.success_count, item.stats.uses)
    best = max(estimate.value, item.quality.quality_score)
    return {
        "id": item.memory_id,
        "memory_id": item.memory_id,
        "text": item.text,
        "tags": item.tags,
        "status": item.status.value,
        "tier": tier_name(item.tier, documents),
        "score": min(1.0, max(0.0, best)),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "archived_at": item.archived_at,
        "archived_reason": item.archived_reason,
        "source": _tool_source(item, tool) if tool else None,
        "sourcePersonalityId": None,
        "sourcePersonalityName": None,
    }


def _tool_source(item: MemoryItem, tool: str) -> dict[str, Any]:
    """Origin of a fact that a tool delivered; what we do not keep is null."""
    return {
        "toolName": tool,
        "url": None,
        "description": None,
        "descriptionHe": None,
        "conversationTitle": None,
        "collectedAt": item.created_at,
    }
