"""Values shown in the API document for the hooks."""

from __future__ import annotations

from typing import Any

from rayapp.wire.examples.context import META_EXAMPLE

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
