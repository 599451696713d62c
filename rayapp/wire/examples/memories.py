"""Values shown in the API document."""

from __future__ import annotations

from typing import Any

STORE_BODY: dict[str, Any] = {
    "text": "Dana moved to Haifa in May; דנה עברה לחיפה במאי.",
    "tier": "working",
    "tags": ["family"],
    "created_at": "2025-05-04T09:30:00Z",
    "source": {"type": "user", "conversation_id": "conv-7"},
}

SOURCE_EXAMPLE: dict[str, Any] = {
    "type": "user",
    "conversation_id": "conv-7",
    "message_id": None,
    "tool_name": None,
    "tool_run_id": None,
    "doc_id": None,
    "chunk_id": None,
    "category": None,
    "book": None,
    "datagov": None,
}

ESTIMATE_EXAMPLE: dict[str, Any] = {"value": 0.7192, "low": 0.4385, "high": 1.0}

STATS_EXAMPLE: dict[str, Any] = {
    "uses": 3,
    "success_count": 3.0,
    "worked_count": 3,
    "partial_count": 0,
    "unknown_count": 0,
    "failed_count": 0,
    "success_rate": 1.0,
    "wilson_score": 0.4385,
    "score": 0.9,
    "last_outcome": "worked",
    "last_outcome_at": "2025-05-06T08:00:00Z",
    "tier_uses": 3,
    "tier_success": 3.0,
}

ITEM_EXAMPLE: dict[str, Any] = {
    "memory_id": "mem-1",
    "user_id": "admin",
    "tier": "working",
    "status": "active",
    "text": "Dana moved to Haifa in May.",
    "content": "Dana moved to Haifa in May.",
    "summary": None,
    "tags": ["family"],
    "entities": ["Dana"],
    "always_inject": False,
    "lang": "en",
    "source": SOURCE_EXAMPLE,
    "subject_id": "admin",
    "trust": 0.9,
    "importance": 0.5,
    "confidence": 0.8,
    "quality_score": 0.4,
    "mentioned_count": 1,
    "stats": STATS_EXAMPLE,
    "success_estimate": ESTIMATE_EXAMPLE,
    "created_at": "2025-05-04T09:30:00Z",
    "stored_at": "2025-05-04T09:30:01Z",
    "updated_at": "2025-05-04T09:30:01Z",
    "archived_at": None,
    "archived_reason": None,
    "expires_at": "2025-05-05T09:30:01Z",
    "version": 1,
    "supersedes": None,
    "superseded_by": None,
    "valid_from": None,
    "valid_to": None,
    "indexed": True,
    "index": {
        "sync_state": "synced",
        "op": "vector",
        "attempts": 0,
        "last_error": None,
        "indexed_at": "2025-05-04T09:30:02Z",
    },
}

VERSION_EXAMPLE: dict[str, Any] = {
    "version": 1,
    "text": "Dana moved to Haifa.",
    "tags": ["family"],
    "quality": {
        "importance": 0.5,
        "confidence": 0.8,
        "quality_score": 0.4,
        "mentioned_count": 1,
    },
    "stats": STATS_EXAMPLE,
    "change_type": "update",
    "reason": "the month was missing",
    "at": "2025-05-04T10:00:00Z",
}

HIT_EXAMPLE: dict[str, Any] = {
    "position": 1,
    "memory_id": "mem-1",
    "tier": "working",
    "content": "Dana moved to Haifa in May.",
    "preview": "Dana moved to Haifa in May.",
    "created_at": "2025-05-04T09:30:00Z",
    "updated_at": "2025-05-04T09:30:01Z",
    "age": "3 d",
    "tags": ["family"],
    "uses": 3,
    "success_estimate": ESTIMATE_EXAMPLE,
    "wilson_score": 0.7192,
    "score": 0.82,
    "last_outcome": "worked",
    "source": SOURCE_EXAMPLE,
    "citations": [{"source_type": "user", "memory_id": "mem-1", "tier": "working"}],
    "collapsed_ids": [],
    "datagov": None,
    "score_summary": {
        "final_score": 0.82,
        "dense_similarity": 0.61,
        "text_similarity": 1.0,
        "fused": 0.82,
        "rrf_score": None,
        "ce_score": None,
        "vector_rank": 2,
        "text_rank": 1,
        "pending_rank": None,
        "ce_rank": None,
        "quality": 0.4,
        "learned_score": None,
        "evidence": 1.0,
        "distance_boost": 1.0,
        "quality_boost": 1.0,
        "entity_boost": 1.0,
        "document_boost": 1.0,
        "action_boost": 1.0,
        "solution_boost": 1.0,
        "total_boost": 1.0,
        "weights": {
            "dense": 0.2,
            "text": 0.8,
            "identifier": 0.0,
            "embedding": 0.6,
            "learned": 0.4,
        },
        "relevance": None,
        "named": ["Dana"],
        "wilson_score": 0.4385,
        "uses": 3,
        "created_at": "2025-05-04T09:30:00Z",
        "updated_at": "2025-05-04T09:30:01Z",
    },
}

RECENT_EXAMPLE: dict[str, Any] = {
    "memory_id": "mem-1",
    "content": "Dana moved to Haifa in May.",
    "tier": "working",
    "status": "active",
    "success_estimate": ESTIMATE_EXAMPLE,
    "wilson_score": 0.7192,
    "score": 0.9,
    "uses": 3,
    "created_at": "2025-05-04T09:30:00Z",
    "updated_at": "2025-05-04T09:30:01Z",
    "tags": ["family"],
    "outcomes": {"worked": 3, "failed": 0, "partial": 0, "unknown": 0},
    "last_used": "2025-05-06T08:00:00Z",
    "source": SOURCE_EXAMPLE,
}

BANK_EXAMPLE: dict[str, Any] = {
    "id": "mem-1",
    "memory_id": "mem-1",
    "text": "Dana prefers tea.",
    "tags": ["taste"],
    "status": "active",
    "tier": "memory_bank",
    "score": 0.72,
    "created_at": "2025-05-04T09:30:00Z",
    "updated_at": "2025-05-04T09:30:00Z",
    "archived_at": None,
    "archived_reason": None,
    "source": None,
    "sourcePersonalityId": None,
    "sourcePersonalityName": None,
}


NODE_EXAMPLE: dict[str, Any] = {
    "id": "content_dana",
    "concept": "Dana",
    "type": "content",
    "score": 0.72,
    "usage": 3,
    "connectionCount": 1,
    "success_rate": 0.75,
    "best_collection": "memory_bank",
    "created_at": "2025-05-04T09:30:00Z",
    "last_used": "2025-05-06T08:00:00Z",
}

EDGE_EXAMPLE: dict[str, Any] = {"source": "content_dana", "target": "content_haifa", "weight": 2.0}

_TIER_RATE: dict[str, Any] = {
    "uses": 4,
    "worked": 3,
    "failed": 1,
    "partial": 0,
    "unknown": 0,
    "success_rate": 0.75,
    "wilson_score": 0.3006,
}

CONCEPT_EXAMPLE: dict[str, Any] = {
    "concept_id": "dana",
    "concept": "Dana",
    "label": "Dana",
    "type": "content",
    "source": "both",
    "score": 0.3006,
    "wilson_score": 0.3006,
    "success_rate": 0.75,
    "uses": 4,
    "usage_count": 4,
    "mentions": 3,
    "best_collection": "memory_bank",
    "tier_stats": {"memory_bank": _TIER_RATE},
    "outcomes": {"positive": 3, "negative": 1, "partial": 0, "unknown": 0},
    "related_concepts": ["Haifa"],
    "created_at": "2025-05-04T09:30:00Z",
    "last_used": "2025-05-06T08:00:00Z",
}

ROLLUP_EXAMPLE: dict[str, Any] = {
    "label": "search_memory@general",
    "action": "search_memory",
    "context_type": "general",
    "tier_key": "*",
    **_TIER_RATE,
    "first_used_at": "2025-05-04T09:30:00Z",
    "last_used_at": "2025-05-06T08:00:00Z",
}

DEFINITION_EXAMPLE: dict[str, Any] = {
    "success": True,
    "concept": {"id": "dana", "label": "Dana", "type": "content"},
    "definition": {
        "content": None,
        "stats": {
            "mentions": 3,
            "avg_quality": 0.72,
            "first_seen_at": "2025-05-04T09:30:00Z",
            "last_seen_at": "2025-05-06T08:00:00Z",
        },
        "related": {
            "edges": [
                {
                    "source_id": "dana",
                    "target_id": "haifa",
                    "relation": "co_occurs",
                    "weight": 2.0,
                }
            ],
            "memories": [
                {
                    "memory_id": "mem-1",
                    "tier": "memory_bank",
                    "text_preview": "Dana lives in Haifa",
                    "updated_at": "2025-05-04T09:30:01Z",
                }
            ],
        },
    },
    "best_collection": "memory_bank",
    "success_rate": 0.75,
    "usage_count": 4,
    "total_searches": 4,
    "outcome_breakdown": {"worked": 3, "failed": 1, "partial": 0, "unknown": 0},
    "collections_breakdown": {"memory_bank": {"successes": 3, "failures": 1, "total": 4}},
    "related_concepts": ["Haifa"],
    "related_concepts_with_stats": [
        {
            "concept": "Haifa",
            "concept_id": "haifa",
            "co_occurrence": 2.0,
            "success_together": 3,
            "failure_together": 1,
            "success_rate": 0.75,
        }
    ],
    "created_at": "2025-05-04T09:30:00Z",
    "last_used": "2025-05-06T08:00:00Z",
    "meta": {"built_ms": 1.2},
    "degraded": [],
}

PATTERN_EXAMPLE: dict[str, Any] = {
    "memory_id": "mem-2",
    "summary": "Restart the container when the port is taken.",
    "text_preview": "Restart the container when the port is taken.",
    "uses": 12,
    "success_rate": 0.92,
    "success_estimate": {"value": 0.8156, "low": 0.6461, "high": 0.9851},
    "wilson_score": 0.8156,
    "score": 0.95,
    "worked": 11,
    "failed": 1,
    "partial": 0,
    "unknown": 0,
    "updated_at": "2025-05-06T08:00:00Z",
}

DEBUG_EXAMPLE: dict[str, Any] = {
    "confidence": "high",
    "relevance": 0.82,
    "best_rejected": None,
    "stage_timings_ms": {"embed": 0.2, "query": 0.9, "hydrate": 0.8, "rank": 0.3},
    "fallbacks_used": [],
    "errors": [],
    "vector_stage_status": "ok",
    "recipe": "default",
    "sort_by": "relevance",
    "tiers": ["working", "history", "patterns", "books", "memory_bank", "datagov_schema"],
    "language": "en",
    "expansions": [],
    "datagov": {"searched": True, "guessed": False, "reason": "asked", "categories": []},
}

_CATALOGUE_TEXT = "מאגר מידע: תחנות אוטובוס | Dataset: bus stops of the Ministry of Transport"
_CATALOGUE_FACTS: dict[str, Any] = {
    "kind": "dataset",
    "category": "transportation",
    "dataset_id": "e873e6a2-66c1-494f-a677-f5e77348edb0",
    "resource_id": None,
    "title": "תחנות אוטובוס",
    "organization": "משרד התחבורה והבטיחות בדרכים",
    "format": "csv",
    "total_records": 28_000,
    "fields": ["StationId", "CityName"],
    "url": "https://data.gov.il/dataset/bus_stops",
}

CATALOGUE_HIT_EXAMPLE: dict[str, Any] = HIT_EXAMPLE | {
    "position": 2,
    "memory_id": "datagov_dataset_e873e6a2-66c1-494f-a677-f5e77348edb0",
    "tier": "datagov_schema",
    "content": _CATALOGUE_TEXT,
    "preview": _CATALOGUE_TEXT,
    "tags": ["datagov", "dataset", "transportation"],
    "source": SOURCE_EXAMPLE
    | {
        "type": "datagov",
        "conversation_id": None,
        "category": "transportation",
        "datagov": _CATALOGUE_FACTS | {"flags": {"has_location": True, "has_phone": False}},
    },
    "citations": [
        {
            "source_type": "datagov",
            "memory_id": "datagov_dataset_e873e6a2-66c1-494f-a677-f5e77348edb0",
            "tier": "datagov_schema",
        }
    ],
    "datagov": _CATALOGUE_FACTS | {"flags": ["has_location"], "error": None},
}

SEARCH_EXAMPLE: dict[str, Any] = {
    "success": True,
    "receipt_id": "0192f1c8-9b00-7aaa-8000-000000000001",
    "results": [HIT_EXAMPLE, CATALOGUE_HIT_EXAMPLE],
    "total": 2,
    "abstained": False,
    "confidence": "high",
    "degraded": [],
    "debug": DEBUG_EXAMPLE,
    "hasMore": False,
    "nextOffset": None,
}
