"""Upkeep of the whole store for administrators: sizes, compaction, cleanup, reset."""

from __future__ import annotations

import time

from starlette.responses import Response

from rayapp.admin.ports import Cleanup
from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.core.errors import Conflict, InvalidInput
from rayapp.wire import upkeep as shapes
from rayapp.wire.examples.ops import CLEANUP_STATS, COLLECTION, RESET_PREVIEW, RESET_RESULTS
from rayapp.wire.views import upkeep as views

OPS = "/api/memory/ops"
CLEANUP = "/api/memory/cleanup"
RESET_WARNING = (
    "A reset removes all memories of all users, with their versions, outcomes and graphs, the "
    "index with its older collections, and the old memory bank. It cannot be undone. API keys, "
    "jobs and leases stay."
)
MEGABYTE = 1 << 20


async def data_sizes(call: Call) -> Response:
    started = time.perf_counter()
    sizes = await call.services.upkeep.sizes()
    rows = sizes.collections
    return answer(
        {
            "success": True,
            "mongo": [views.collection_view(size) for size in rows],
            "qdrant": views.index_view(sizes.index),
            "meta": {
                "built_ms": round((time.perf_counter() - started) * 1000, 1),
                "total_bytes": sum(size.storage_bytes + size.index_bytes for size in rows),
                "free_bytes": sum(size.free_bytes for size in rows),
            },
            "degraded": sizes.degraded,
        }
    )


async def compact(call: Call) -> Response:
    done, complete = await call.services.upkeep.compact()
    freed = sum(one.freed_bytes for one in done)
    worked = sum(one.error is None for one in done)
    message = "No collection has space worth giving back."
    if done:
        message = f"{worked} of {len(done)} collections were compacted."
    if not complete:
        message = f"{message} The time was up; ask again for the rest."
    return answer(
        {
            "success": True,
            "space_reclaimed_mb": round(freed / MEGABYTE, 2),
            "space_reclaimed_bytes": freed,
            "collections_compacted": worked,
            "compact_results": [views.compaction_view(one) for one in done],
            "complete": complete,
            "message": message,
            "timestamp": call.services.clock.now(),
        }
    )


# --- users that were browser sessions


async def cleanup_stats(call: Call) -> Response:
    query = call.query_as(shapes.QuietQuery, shapes.CLEANUP_ALIASES)
    report = await call.services.upkeep.cleanup(dry_run=True, quiet_days=query.quiet_days)
    stats = views.cleanup_stats(report, query.quiet_days)
    return answer({"success": True, "stats": stats, "degraded": []})


async def cleanup(call: Call) -> Response:
    body = shapes.CleanupBody()
    if call.body:
        body = call.body_as(shapes.CleanupBody, shapes.CLEANUP_ALIASES)
    report = await call.services.upkeep.cleanup(dry_run=body.dry_run, quiet_days=body.quiet_days)
    return answer(
        {
            "success": True,
            "dryRun": body.dry_run,
            "stats": views.cleanup_stats(report, body.quiet_days),
            "result": views.cleanup_result(report),
            "message": _cleanup_message(report),
            "degraded": [],
        }
    )


def _cleanup_message(report: Cleanup) -> str:
    if report.dry_run:
        return f"{len(report.orphans)} users would go; send dryRun false to remove them."
    if report.left:
        return f"{report.removed_users} users removed; {report.left} are left, ask again."
    return f"{report.removed_users} users removed."


# --- reset


async def reset_preview(call: Call) -> Response:
    found = await call.services.upkeep.reset_preview()
    return answer(
        {
            "success": True,
            "preview": views.preview_view(found),
            "warning": RESET_WARNING,
            "confirmationRequired": True,
            "degraded": [] if found.index else ["vector_index"],
        }
    )


async def reset(call: Call) -> Response:
    body = call.body_as(shapes.ResetBody) if call.body else shapes.ResetBody()
    if not body.confirm:
        raise InvalidInput(
            f"{RESET_WARNING} Send confirm: true if you mean it.",
            code="confirm_needed",
            details={"field": "confirm"},
        )
    report = await call.services.upkeep.reset()
    steps = ["Start the DataGov job if open data is wanted: POST /api/memory/ops/datagov."]
    if not report.complete:
        steps = ["The time was up: send the same request again until complete is true."]
    return answer(
        {
            "success": True,
            "message": "Everything is removed." if report.complete else "A part is removed.",
            "complete": report.complete,
            "results": views.reset_view(report),
            "nextSteps": steps,
            "degraded": [],
        }
    )


_TAG = "upkeep"

OPERATIONS = (
    Operation(
        method="GET",
        path="/api/system/data-sizes",
        tag=_TAG,
        summary="What the data takes on disk",
        handler=data_sizes,
        answer=shapes.SizesAnswer,
        example={
            "success": True,
            "mongo": [COLLECTION],
            "qdrant": {
                "collection": "memories_static_256_20250504",
                "points_count": 1200,
                "vectors_count": 1200,
                "segments_count": 4,
            },
            "meta": {"built_ms": 12.5, "total_bytes": 4_800_000, "free_bytes": 65_536},
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path="/api/data/compact-database",
        tag=_TAG,
        summary="Give free space back to the file system",
        description="One collection at a time, those with at least 1 MiB free. The server goes on "
        "serving meanwhile. It reuses free space by itself, so that this is needed only after "
        "much was deleted, and it may give nothing back.",
        handler=compact,
        answer=shapes.CompactAnswer,
        example={
            "success": True,
            "space_reclaimed_mb": 4.0,
            "space_reclaimed_bytes": 4_194_304,
            "collections_compacted": 1,
            "compact_results": [
                {
                    "collection": "memory_items",
                    "success": True,
                    "before_bytes": 8_388_608,
                    "after_bytes": 4_194_304,
                    "freed_bytes": 4_194_304,
                    "error": None,
                }
            ],
            "complete": True,
            "message": "1 of 1 collections were compacted.",
            "timestamp": "2025-05-04T09:30:00Z",
        },
    ),
    Operation(
        method="GET",
        path=CLEANUP,
        tag=_TAG,
        summary="Count session users that nobody can be any more",
        description="A session user has an id of 64 hexadecimal digits. It counts as orphaned "
        "when no key is bound to it and nothing of it changed for `quiet_days`.",
        handler=cleanup_stats,
        query=shapes.QuietQuery,
        example_query={"quiet_days": "30"},
        aliases=shapes.CLEANUP_ALIASES,
        answer=shapes.CleanupCountAnswer,
        example={"success": True, "stats": CLEANUP_STATS, "degraded": []},
    ),
    Operation(
        method="POST",
        path=CLEANUP,
        tag=_TAG,
        summary="Remove session users that nobody can be any more",
        handler=cleanup,
        body=shapes.CleanupBody,
        body_required=False,
        example_body={"dryRun": True},
        aliases=shapes.CLEANUP_ALIASES,
        answer=shapes.CleanupAnswer,
        example={
            "success": True,
            "dryRun": True,
            "stats": CLEANUP_STATS,
            "result": {
                "users_removed": 0,
                "memories_removed": 0,
                "rows_removed": 0,
                "remaining": 0,
            },
            "message": "1 users would go; send dryRun false to remove them.",
            "degraded": [],
        },
        writes=True,
    ),
    Operation(
        method="GET",
        path=f"{OPS}/reset",
        tag=_TAG,
        summary="What a reset would remove",
        handler=reset_preview,
        answer=shapes.ResetPreviewAnswer,
        example={
            "success": True,
            "preview": RESET_PREVIEW,
            "warning": RESET_WARNING,
            "confirmationRequired": True,
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path=f"{OPS}/reset",
        tag=_TAG,
        summary="Remove the data of all users",
        description=f"{RESET_WARNING} Refused while a job goes on.",
        handler=reset,
        body=shapes.ResetBody,
        example_body={"confirm": True},
        answer=shapes.ResetAnswer,
        example={
            "success": True,
            "message": "Everything is removed.",
            "complete": True,
            "results": RESET_RESULTS,
            "nextSteps": [
                "Start the DataGov job if open data is wanted: POST /api/memory/ops/datagov."
            ],
            "degraded": [],
        },
        errors=(Conflict,),
    ),
)
