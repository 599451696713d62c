"""Values shown in the API document for upkeep."""

from __future__ import annotations

from typing import Any

COLLECTION: dict[str, Any] = {
    "name": "memory_items",
    "count": 1200,
    "size_bytes": 2_400_000,
    "storage_bytes": 3_600_000,
    "index_bytes": 1_200_000,
    "free_bytes": 65_536,
}
CLEANUP_STATS: dict[str, Any] = {
    "session_users": 2,
    "orphaned_users": 1,
    "orphaned_memories": 12,
    "quiet_days": 30,
    "users": [
        {
            "user_id": "ab" * 32,
            "memories": 12,
            "last_change": "2025-01-04T09:30:00Z",
        }
    ],
}
MIGRATION: dict[str, Any] = {
    "total": 3,
    "looked_at": 3,
    "migrated": 2,
    "duplicates": 1,
    "rejected": 0,
    "problems": [],
    "complete": True,
}
SANITIZED: dict[str, Any] = {
    "success": True,
    "dryRun": True,
    "totalScanned": 1200,
    "totalCorrupted": 1,
    "totalSanitized": 0,
    "totalFailed": 0,
    "samples": [
        {
            "memory_id": "mem-1",
            "tier": "working",
            "chars": 48_000,
            "chars_after": 60,
            "preview": "The invoice of May: [encoded file removed: 47960 characters]",
        }
    ],
    "durationMs": 84.0,
    "nextCursor": None,
    "message": "1 of 1200 memories hold encoded files.",
    "nextSteps": ["Send dry_run false to take the encoded files out."],
    "degraded": [],
}
RESET_PREVIEW: dict[str, Any] = {
    "mongodb": {
        "collections": [{"name": "memory_items", "count": 1200, "exists": True}],
        "totalDocuments": 1200,
        "kept": ["api_keys", "job_partitions", "jobs", "leases"],
    },
    "qdrant": {
        "collection": "memories_static_256_20250504",
        "pointCount": 1200,
        "exists": True,
        "oldCollections": ["memories_static_256_20250404"],
    },
}
RESET_RESULTS: dict[str, Any] = {
    "mongodb": [{"collection": "memory_items", "status": "emptied", "removed": 1200}],
    "qdrant": {
        "status": "emptied",
        "removed": 1200,
        "dropped": ["memories_static_256_20250404"],
    },
}
