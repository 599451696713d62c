"""Jobs, sweeps and breakers as the answers show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rayapp.bulk.model import Job, JobState, PartitionRow, PartitionState
from rayapp.index.consistency.rules import Drift, SweepReport
from rayapp.memory.tiers import tier_name

# Partitions and samples shown of one job; all of them would be megabytes for a large one.
MAX_SHOWN = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The first client knows four words; `state` says which of ours it is.
STATUS_WORDS: Mapping[JobState, str] = {
    JobState.SUBMITTED: "running",
    JobState.RUNNING: "running",
    JobState.PAUSED: "paused",
    JobState.COMPLETED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "failed",
}
# The first client's names; the other kinds keep ours.
ISSUE_WORDS: Mapping[Drift, str] = {
    Drift.MISSING: "missing_in_qdrant",
    Drift.ORPHAN: "orphan_in_qdrant",
    Drift.PAYLOAD: "payload_mismatch",
}


def named_job(job: Job, documents: bool) -> Job:
    """The job with the tier of its parameters by the caller's name (`tier_name`)."""
    tier = job.params.get("tier")
    if not isinstance(tier, str):
        return job
    return replace(job, params={**job.params, "tier": tier_name(tier, documents)})


def job_view(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "state": job.state.value,
        "wish": job.wish.value,
        "stage": job.stage,
        "params": dict(job.params),
        "facts": dict(job.facts),
        "total": job.total,
        "done": job.done,
        "failed": job.failed,
        "share": share_of(job),
        "counts": dict(job.counts),
        "attempts": job.attempts,
        "requested_by": job.requested_by,
        "submission_id": job.submission_id,
        "error": job.error,
        "report": None if job.report is None else dict(job.report),
        "created_at": job.created_at,
        "started_at": job.started_at,
        "updated_at": job.updated_at,
        "finished_at": job.finished_at,
    }


def share_of(job: Job) -> float:
    """How much is done; a plan's total is an estimate, so only a completed job is at 1."""
    if job.state is JobState.COMPLETED:
        return 1.0
    return min(0.99, round(job.done / job.total, 4)) if job.total else 0.0


def partitions_view(rows: Sequence[PartitionRow]) -> dict[str, Any]:
    open_rows = [row for row in rows if row.state is not PartitionState.DONE]
    open_rows.sort(key=lambda row: (row.updated_at or EPOCH, row.index))
    return {
        "total": len(rows),
        "done": len(rows) - len(open_rows),
        "waiting": len(open_rows),
        "failed_records": sum(row.failed for row in rows),
        "slowest": [
            {
                "index": row.index,
                "done": row.done,
                "failed": row.failed,
                "steps": row.steps,
                "updated_at": row.updated_at,
            }
            for row in open_rows[:MAX_SHOWN]
        ],
        "samples": [sample for row in rows for sample in row.samples][:MAX_SHOWN],
    }


def progress_view(job: Job) -> dict[str, Any]:
    """A job under the first client's names."""
    cancelled = "Cancelled." if job.state is JobState.CANCELLED else None
    report = job.report or {}
    # It ran to its end and did not do what was asked, for a reason that its report names.
    refused = report.get("reason") if report.get("complete") is False else None
    return {
        "jobId": job.job_id,
        "status": "failed" if refused else STATUS_WORDS[job.state],
        "state": job.state.value,
        "stage": job.stage,
        "totalItems": job.total,
        "processedItems": job.done,
        "failedItems": job.failed,
        "startedAt": job.started_at,
        "updatedAt": job.updated_at,
        # Partitions run side by side, so there is no single last one.
        "lastProcessedId": None,
        "lastProcessedAt": job.updated_at if job.done else None,
        "errorMessage": job.error or cancelled or refused,
        "durationMs": duration_ms(job),
    }


def duration_ms(job: Job) -> int:
    """From its first driver to its end, or to its last sign of life."""
    until = job.finished_at or job.updated_at
    if job.started_at is None or until is None:
        return 0
    return max(0, round((until - job.started_at).total_seconds() * 1000))


def submitted_view(job: Job) -> dict[str, Any]:
    """No counts: nothing was done yet, and a zero would read as a result."""
    return {
        "success": True,
        "status": "submitted",
        "jobId": job.job_id,
        "kind": job.kind,
        "follow": f"/api/memory/jobs/{job.job_id}",
        "message": f"Submitted as job {job.job_id}: it has not done anything yet.",
    }


def sweep_view(report: SweepReport) -> dict[str, Any]:
    return {
        "success": True,
        "status": "completed",
        "jobId": None,
        "checkedAt": report.checked_at,
        "durationMs": round(report.duration_s * 1000),
        "totalChecked": report.checked,
        "issuesFound": sum(report.found.values()),
        "issuesRepaired": sum(report.repaired.values()),
        "issues": [
            {
                "type": issue_word(issue.kind),
                "memoryId": issue.memory_id,
                "userId": issue.user_id,
                "pointId": issue.point_id,
                "details": issue.details,
                "repaired": issue.repaired,
            }
            for issue in report.issues
        ],
        "found": {issue_word(kind): number for kind, number in report.found.items()},
        "repaired": {issue_word(kind): number for kind, number in report.repaired.items()},
        "quarantined": report.quarantined,
        "mongoCount": report.truth_count,
        "qdrantCount": report.index_count,
    }


def issue_word(kind: Drift) -> str:
    return ISSUE_WORDS.get(kind, kind.value)


def breaker_view(row: Mapping[str, Any], threshold: int, open_s: float) -> dict[str, Any]:
    """The first client's names for a breaker; when it failed last is not kept."""
    error = row.get("lastError")
    return {
        "isOpen": bool(row.get("isOpen")),
        "failureCount": row.get("failureCount", 0),
        "successCount": row.get("successCount", 0),
        "lastFailure": None,
        "threshold": threshold,
        "openDurationMs": round(open_s * 1000),
        "lastErrorCategory": str(error).split(":", 1)[0] if error else None,
        "lastError": error,
    }
