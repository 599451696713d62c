"""Values shown in the API document for the context of an assistant."""

from __future__ import annotations

from typing import Any

from rayapp.assistant.context.rules.prompt_block import etag_of

_STABLE = """\
═══ CONTEXTUAL MEMORY ═══

**User Identity:**
• [1] [memory_bank:mem-1] Dana lives in Haifa

"""
_VOLATILE = """\
**Relevant Context:**
[2] [working:mem-2] דנה מחפשת דירה גדולה יותר

**Recent Topic:** moving to another flat

═══════════════════════
"""
_DEBUG: dict[str, Any] = {
    "retrieval_confidence": "high",
    "fallbacks_used": [],
    "stage_timings_ms": {"search_ms": 9.4, "standing_ms": 2.1, "other_ms": 1.7},
    "errors": [],
    "vector_stage_status": "enabled",
}
_LINES = (
    {"position": 1, "tier": "memory_bank", "memory_id": "mem-1"},
    {"position": 2, "tier": "working", "memory_id": "mem-2"},
)

META_EXAMPLE: dict[str, Any] = {
    "schema_version": "v1",
    "conversation_id": "conv-7",
    "assistant_message_id": "msg-12",
    "user_id": "admin",
    "created_at": "2026-05-06T08:00:00Z",
    "context_type": "general",
    "retrieval": {
        "query": "Where does Dana live?",
        "normalized_query": "Where does Dana live?",
        "limit": 10,
        "sort_by": "relevance",
        "tiers_considered": ["working", "history", "patterns", "documents", "memory_bank"],
        "tiers_used": ["memory_bank", "working"],
        "receipt_id": "0197a3c2-0000-7000-8000-000000000001",
        "search_position_map": {
            "by_position": list(_LINES),
            "by_memory_id": {
                one["memory_id"]: {"position": one["position"], "tier": one["tier"]}
                for one in _LINES
            },
        },
    },
    "known_context": {
        "known_context_text": _STABLE + _VOLATILE,
        "known_context_items": [
            {
                "tier": "memory_bank",
                "memory_id": "mem-1",
                "content": "Dana lives in Haifa",
                "doc_id": None,
            },
            {
                "tier": "working",
                "memory_id": "mem-2",
                "content": "דנה מחפשת דירה גדולה יותר",
                "doc_id": None,
            },
        ],
    },
    "citations": [
        {
            "position": 1,
            "tier": "memory_bank",
            "memory_id": "mem-1",
            "doc_id": None,
            "chunk_id": None,
            "content": "Dana lives in Haifa",
            "wilson_score": 0.5,
            "confidence": 0.81,
        }
    ],
    "context_insights": {
        "matched_concepts": ["Dana"],
        "active_concepts": [
            {
                "concept": "Dana",
                "best_collection": "memory_bank",
                "success_rate": 0.3006,
                "usage_count": 4,
            }
        ],
        "tier_recommendations": [
            {"tier": "memory_bank", "wilson_score": 0.3006, "uses": 4, "advised": True}
        ],
        "you_already_know": [
            {"tier": "memory_bank", "memory_id": "mem-1", "content": "Dana lives in Haifa"}
        ],
        "directives": [],
    },
    "debug": _DEBUG,
    "feedback": {
        "eligible": True,
        "interrupted": False,
        "eligible_reason": None,
        "default_related_positions": [1, 2],
    },
}

_BESIDE_TEXT: dict[str, Any] = {
    "success": True,
    "etag": etag_of(_STABLE),
    "receipt_id": "0197a3c2-0000-7000-8000-000000000001",
    "tokens": 83,
    "left_out": [],
    "task": {
        "complexity": "simple",
        "context_type": "general",
        "language": "en",
        "intent": "general",
        "limit": 10,
    },
    "gating": {
        "allowed_tools": ["search_memory", "web_search"],
        "reduced_count": 0,
        "reason_code": "DEFAULT_ALLOW_ALL",
        "trace_explanation": {
            "he": "הזיכרון לבדו אינו מספיק, לכן כל הכלים מותרים.",
            "en": "Memory alone is not enough, so all tools are allowed.",
        },
    },
    "degraded": [],
}

CONTEXT_EXAMPLE: dict[str, Any] = {
    **_BESIDE_TEXT,
    "latency_ms": 14.1,
    "confidence": "high",
    "stable_text": _STABLE,
    "volatile_text": _VOLATILE,
    "memory_meta": META_EXAMPLE,
}

PREFETCH_EXAMPLE: dict[str, Any] = {
    **_BESIDE_TEXT,
    "latencyMs": 14.1,
    "retrievalConfidence": "high",
    "retrievalDebug": {**_DEBUG, "confidence": "high"},
    "memoryContextInjection": _STABLE + _VOLATILE,
    "memoryMeta": META_EXAMPLE,
}

COLD_START_EXAMPLE: dict[str, Any] = {
    "success": True,
    "text": "═══ KNOWN CONTEXT ═══\n• Dana lives in Haifa\n═══ END CONTEXT ═══\n",
    "memories": [
        {
            "position": 1,
            "memory_id": "mem-1",
            "tier": "memory_bank",
            "content": "Dana lives in Haifa",
        }
    ],
    "count": 1,
    "receipt_id": "0197a3c2-0000-7000-8000-000000000002",
    "meta": {"built_ms": 4.2},
    "degraded": [],
}


# Values shown in the API document for the hooks.

_OWES: dict[str, Any] = {
    "scoring_required": True,
    "scoring": {"required": True, "messageId": "msg-7", "receiptId": None},
}
HOOK_CONTEXT_EXAMPLE: dict[str, Any] = {
    "contexts": [
        {
            "tier": "working",
            "content": "Dana moved to Haifa in May; דנה עברה לחיפה במאי.",
            "score": 0.83,
            "memoryId": "mem-1",
            "docId": None,
            "chunkId": None,
            "preview": "Dana moved to Haifa in May; דנה עברה לחיפה במאי.",
            "createdAt": "2025-05-04T09:30:00Z",
        }
    ],
    "total": 1,
    "query": "Where does Dana live?",
    "tiersSearched": ["working", "history", "patterns", "documents", "memory_bank"],
    "latencyMs": 9.4,
    "confidence": "high",
    "receipt_id": "0197a3c2-0000-7000-8000-000000000001",
    **_OWES,
    "degraded": [],
}
EXCHANGE_BODY: dict[str, Any] = {
    "conversationId": "conv-7",
    "messageId": "msg-7",
    "messages": [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Where does Dana live now? איפה דנה גרה?"},
        {
            "role": "assistant",
            "content": "Dana lives in Haifa; she moved there in May and likes the sea. "
            "<!-- MEM: 1👍 -->",
        },
    ],
}
EXCHANGE_EXAMPLE: dict[str, Any] = {
    "messages": [
        {
            "role": "system",
            "content": "You are a helpful assistant.\n\n<memory_context>\n…\n</memory_context>",
        },
        *EXCHANGE_BODY["messages"][1:],
    ],
    "memoryMeta": META_EXAMPLE,
    "stored": {
        "memory_id": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11",
        "duplicate": False,
        "scoring_required": True,
        "reason": "not_scored",
        "truncated": False,
        "attributed": 0,
        "skipped_positions": [1],
    },
    **_OWES,
    "required_scoring": True,
    "current_state": "unscored",
    "gating": {
        "allowed_tools": None,
        "reduced_count": 0,
        "reason_code": "DEFAULT_ALLOW_ALL",
        "trace_explanation": {
            "he": "הזיכרון לבדו אינו מספיק, לכן כל הכלים מותרים.",
            "en": "Memory alone is not enough, so all tools are allowed.",
        },
    },
    "latencyMs": 21.7,
    "degraded": [],
}
HOOK_SCORE_EXAMPLE: dict[str, Any] = {
    "success": True,
    "updated": 1,
    "messageId": "msg-7",
    "timestamp": "2025-05-07T09:30:00Z",
    "skipped": [],
    "duplicate": False,
    "degraded": [],
}
HOOK_STATE_EXAMPLE: dict[str, Any] = {
    "messageId": "msg-7",
    "conversationId": "conv-7",
    "scored": False,
    "timestamp": None,
    "required": True,
    "score": None,
    "memoryId": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11",
}
