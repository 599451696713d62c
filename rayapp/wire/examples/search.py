"""The search answer shown in the API document: a personal hit, and one of the catalogue."""

from __future__ import annotations

from typing import Any

from rayapp.wire.examples.memories import HIT_EXAMPLE, SOURCE_EXAMPLE

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
