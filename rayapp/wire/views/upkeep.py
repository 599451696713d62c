"""Reports of upkeep as JSON objects, in the words of the first client."""

from __future__ import annotations

from typing import Any

from rayapp.admin.ports import (
    Cleanup,
    CollectionSize,
    Compaction,
    IndexSize,
    Migration,
    ResetPreview,
    ResetReport,
    SanitizeReport,
    Verification,
)
from rayapp.memory.tiers import tier_name

MAX_SHOWN_USERS = 20


def collection_view(size: CollectionSize) -> dict[str, Any]:
    return {
        "name": size.name,
        "count": size.count,
        "size_bytes": size.size_bytes,
        "storage_bytes": size.storage_bytes,
        "index_bytes": size.index_bytes,
        "free_bytes": size.free_bytes,
    }


def index_view(size: IndexSize | None) -> dict[str, Any] | None:
    """Each point has one dense vector and one of terms; the client counts the dense ones."""
    if size is None:
        return None
    return {
        "collection": size.collection,
        "points_count": size.points,
        "vectors_count": size.points,
        "segments_count": size.facts.get("segments"),
    }


def compaction_view(one: Compaction) -> dict[str, Any]:
    return {
        "collection": one.collection,
        "success": one.error is None,
        "before_bytes": one.before_bytes,
        "after_bytes": one.after_bytes,
        "freed_bytes": one.freed_bytes,
        "error": one.error,
    }


def cleanup_stats(report: Cleanup, quiet_days: int) -> dict[str, Any]:
    return {
        "session_users": report.session_users,
        "orphaned_users": len(report.orphans),
        "orphaned_memories": sum(user.memories for user in report.orphans),
        "quiet_days": quiet_days,
        "users": [
            {
                "user_id": user.user_id,
                "memories": user.memories,
                "last_change": user.last_change,
            }
            for user in report.orphans[:MAX_SHOWN_USERS]
        ],
    }


def cleanup_result(report: Cleanup) -> dict[str, Any]:
    return {
        "users_removed": report.removed_users,
        "memories_removed": report.removed_memories,
        "rows_removed": report.removed_rows,
        "remaining": report.left,
    }


def migration_view(done: Migration) -> dict[str, Any]:
    return {
        "total": done.total,
        "looked_at": done.looked_at,
        "migrated": done.migrated,
        "duplicates": done.duplicates,
        "rejected": done.rejected,
        "problems": list(done.problems),
        "complete": done.complete,
    }


def migrate_status(would: Migration) -> dict[str, Any]:
    return {
        "legacy_total": would.total,
        "pending": would.migrated,
        "already_there": would.duplicates,
        "unusable": would.rejected,
        "needed": would.migrated > 0 or not would.complete,
        "complete": would.complete,
    }


def verification_view(found: Verification) -> dict[str, Any]:
    everything = found.present + found.unusable == found.total
    return {
        "total": found.total,
        "present": found.present,
        "unusable": found.unusable,
        "missing": list(found.missing),
        "verified": found.complete and everything,
        "complete": found.complete,
    }


def sanitize_view(report: SanitizeReport, documents: bool) -> dict[str, Any]:
    steps = []
    if report.next_cursor is not None:
        steps.append("Ask again with nextCursor as cursor to go on.")
    if report.dry_run and report.corrupted:
        steps.append("Send dry_run false to take the encoded files out.")
    if report.failed:
        steps.append("Some memories changed meanwhile; run it again.")
    found = f"{report.corrupted} of {report.scanned} memories hold encoded files."
    return {
        "dryRun": report.dry_run,
        "totalScanned": report.scanned,
        "totalCorrupted": report.corrupted,
        "totalSanitized": report.sanitized,
        "totalFailed": report.failed,
        "samples": [{**one, "tier": tier_name(one["tier"], documents)} for one in report.samples],
        "durationMs": round(report.duration_ms, 1),
        "nextCursor": report.next_cursor,
        "message": found if report.dry_run else f"{found} {report.sanitized} were cleaned.",
        "nextSteps": steps,
    }


def preview_view(found: ResetPreview) -> dict[str, Any]:
    rows = [{"name": one.name, "count": one.count, "exists": True} for one in found.collections]
    index = found.index
    return {
        "mongodb": {
            "collections": rows,
            "totalDocuments": sum(one.count for one in found.collections),
            "kept": list(found.kept),
        },
        "qdrant": {
            "collection": None if index is None else index.collection,
            "pointCount": 0 if index is None else index.points,
            "exists": index is not None and index.collection is not None,
            "oldCollections": list(found.old_indexes),
        },
    }


def reset_view(report: ResetReport) -> dict[str, Any]:
    rows = [
        {"collection": name, "status": "emptied", "removed": removed}
        for name, removed in sorted(report.removed.items())
    ]
    status = "emptied" if report.complete else "partial"
    index = {"status": status, "removed": report.points, "dropped": list(report.dropped)}
    return {"mongodb": rows, "qdrant": index}
