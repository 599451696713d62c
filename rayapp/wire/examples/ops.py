"""Values shown in the API document for jobs and operations."""

from __future__ import annotations

from typing import Any

import orjson

JOB_EXAMPLE: dict[str, Any] = {
    "job_id": "job-1",
    "kind": "reindex",
    "state": "running",
    "wish": "run",
    "stage": "partitions",
    "params": {},
    "facts": {"collection": "memories_static_256_20250506080000"},
    "total": 12_000,
    "done": 3_000,
    "failed": 0,
    "share": 0.25,
    "counts": {"embedded": 120, "copied": 2_880},
    "attempts": 1,
    "requested_by": "local",
    "submission_id": "rayapp-job-1",
    "error": None,
    "report": None,
    "created_at": "2025-05-06T08:00:00Z",
    "started_at": "2025-05-06T08:00:04Z",
    "updated_at": "2025-05-06T08:00:09Z",
    "finished_at": None,
}

PARTITIONS_EXAMPLE: dict[str, Any] = {
    "total": 32,
    "done": 8,
    "waiting": 24,
    "failed_records": 0,
    "slowest": [
        {"index": 8, "done": 0, "failed": 0, "steps": 0, "updated_at": "2025-05-06T08:00:04Z"}
    ],
    "samples": [],
}

JOB_STREAM_EXAMPLE = (
    "id: 5f1d6c0b9a3e4d27\nevent: progress\n"
    f"data: {orjson.dumps({'job': JOB_EXAMPLE}).decode()}\n\n"
)

PROGRESS_EXAMPLE: dict[str, Any] = {
    "jobId": "job-1",
    "status": "running",
    "state": "running",
    "stage": "partitions",
    "totalItems": 12_000,
    "processedItems": 3_000,
    "failedItems": 0,
    "startedAt": "2025-05-06T08:00:04Z",
    "updatedAt": "2025-05-06T08:00:09Z",
    "lastProcessedId": None,
    "lastProcessedAt": "2025-05-06T08:00:09Z",
    "errorMessage": None,
    "durationMs": 5_000,
}

SUBMITTED_EXAMPLE: dict[str, Any] = {
    "success": True,
    "result": {
        "success": True,
        "status": "submitted",
        "jobId": "job-1",
        "kind": "reindex",
        "follow": "/api/memory/jobs/job-1",
        "message": "Submitted as job job-1: it has not done anything yet.",
    },
    "degraded": [],
}

SWEEP_EXAMPLE: dict[str, Any] = {
    "success": True,
    "status": "completed",
    "jobId": None,
    "checkedAt": "2025-05-06T08:00:00Z",
    "durationMs": 2_300,
    "totalChecked": 1_000,
    "issuesFound": 1,
    "issuesRepaired": 1,
    "issues": [
        {
            "type": "missing_in_qdrant",
            "memoryId": "mem-1",
            "userId": "admin",
            "pointId": "0b4c0c9e-5a0b-5f0d-9a53-0d9b3b1f7a10",
            "details": "The index has no point of this active memory.",
            "repaired": True,
        }
    ],
    "found": {"missing_in_qdrant": 1},
    "repaired": {"missing_in_qdrant": 1},
    "quarantined": 0,
    "mongoCount": 12_000,
    "qdrantCount": 11_999,
}

BREAKER_EXAMPLE: dict[str, Any] = {
    "success": True,
    "circuitBreaker": {
        "isOpen": False,
        "failureCount": 0,
        "successCount": 0,
        "lastFailure": None,
        "threshold": 2,
        "openDurationMs": 60_000,
        "lastErrorCategory": None,
        "lastError": None,
    },
    "breakers": {
        "qdrant": {
            "state": "closed",
            "isOpen": False,
            "failureCount": 0,
            "successCount": 0,
            "lastError": None,
            "next_probe_s": None,
            "replicas": 1,
            "tripped": 0,
        }
    },
    "embeddingServiceHealthy": True,
    "endpoint": None,
    "isOperational": True,
    "isDegradedMode": False,
    "diagnostics": {"healthy": True},
    "recommendations": [],
    "message": None,
    "degraded": [],
}


# Examples of upkeep for the API document.

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
