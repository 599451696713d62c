"""Old data, for administrators: the old memory bank moves in, encoded files leave texts."""

from __future__ import annotations

from starlette.responses import Response

from rayapp.admin.ports import SanitizeReport
from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.wire import upkeep as shapes
from rayapp.wire.examples.ops import MIGRATION, SANITIZED
from rayapp.wire.views import upkeep as views

OPS = "/api/memory/ops"

# --- the old memory bank


async def migrate_status(call: Call) -> Response:
    query = call.query_as(shapes.MigrateQuery, shapes.MIGRATE_ALIASES)
    scope = _writes(call, query.user_id)
    would = await call.services.upkeep.migrate(scope, dry_run=True)
    return answer({"success": True, "status": views.migrate_status(would), "degraded": []})


async def migrate(call: Call) -> Response:
    body = shapes.MigrateBody()
    if call.body:
        body = call.body_as(shapes.MigrateBody, shapes.MIGRATE_ALIASES)
    scope = _writes(call, body.user_id)
    done = await call.services.upkeep.migrate(scope, dry_run=body.dry_run)
    word = "would be moved" if body.dry_run else "were moved"
    message = f"{done.migrated} of {done.total} old facts {word}; {done.duplicates} are there."
    if not done.complete:
        message = f"{message} The time was up; ask again to go on."
    return answer(
        {
            "success": True,
            "dryRun": body.dry_run,
            "stats": views.migration_view(done),
            "message": message,
            "degraded": [],
        }
    )


async def migrate_verify(call: Call) -> Response:
    body = shapes.VerifyBody()
    if call.body:
        body = call.body_as(shapes.VerifyBody, shapes.MIGRATE_ALIASES)
    scope = ReadScope(body.user_id or call.user_id, include_shared=False)
    found = await call.services.upkeep.verify_migration(scope)
    view = views.verification_view(found)
    return answer({"success": True, "verification": view, "degraded": []})


def _writes(call: Call, user_id: str | None) -> WriteScope:
    return WriteScope(user_id or call.user_id, call.principal)


# --- encoded files in texts


async def sanitize_look(call: Call) -> Response:
    query = call.query_as(shapes.SanitizeQuery, shapes.SANITIZE_ALIASES)
    return _sanitized(
        call,
        await call.services.upkeep.sanitize(
            call.writes, query.tier, dry_run=True, cursor=query.cursor
        ),
    )


async def sanitize(call: Call) -> Response:
    body = shapes.SanitizeBody()
    if call.body:
        body = call.body_as(shapes.SanitizeBody, shapes.SANITIZE_ALIASES)
    return _sanitized(
        call,
        await call.services.upkeep.sanitize(
            call.writes, body.tier, dry_run=body.dry_run, cursor=body.cursor
        ),
    )


def _sanitized(call: Call, report: SanitizeReport) -> Response:
    view = views.sanitize_view(report, call.documents)
    return answer({"success": True, **view, "degraded": []})


_TAG = "upkeep"

OPERATIONS = (
    Operation(
        method="GET",
        path=f"{OPS}/migrate",
        tag=_TAG,
        summary="What of the old memory bank is not moved in yet",
        handler=migrate_status,
        query=shapes.MigrateQuery,
        aliases=shapes.MIGRATE_ALIASES,
        answer=shapes.MigrateStatusAnswer,
        example={
            "success": True,
            "status": {
                "legacy_total": 3,
                "pending": 2,
                "already_there": 1,
                "unusable": 0,
                "needed": True,
                "complete": True,
            },
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path=f"{OPS}/migrate",
        tag=_TAG,
        summary="Move the old memory bank in",
        description="Rows of the collection `memoryBank` become memories under their old ids; the "
        "old rows stay, marked as moved, so that what is deleted afterwards does not come back. "
        "Harmless to repeat.",
        handler=migrate,
        body=shapes.MigrateBody,
        body_required=False,
        example_body={"dryRun": False},
        aliases=shapes.MIGRATE_ALIASES,
        answer=shapes.MigrateAnswer,
        example={
            "success": True,
            "dryRun": False,
            "stats": MIGRATION,
            "message": "2 of 3 old facts were moved; 1 are there.",
            "degraded": [],
        },
        writes=True,
    ),
    Operation(
        method="PUT",
        path=f"{OPS}/migrate",
        tag=_TAG,
        summary="Prove that the old memory bank was moved in",
        handler=migrate_verify,
        body=shapes.VerifyBody,
        body_required=False,
        example_body={"userId": "admin"},
        aliases=shapes.MIGRATE_ALIASES,
        answer=shapes.VerifyAnswer,
        example={
            "success": True,
            "verification": {
                "total": 3,
                "present": 3,
                "unusable": 0,
                "missing": [],
                "verified": True,
                "complete": True,
            },
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path=f"{OPS}/sanitize",
        tag=_TAG,
        summary="Look for encoded files in texts",
        handler=sanitize_look,
        query=shapes.SanitizeQuery,
        example_query={"tier": "working"},
        aliases=shapes.SANITIZE_ALIASES,
        answer=shapes.SanitizeAnswer,
        example=SANITIZED,
    ),
    Operation(
        method="POST",
        path=f"{OPS}/sanitize",
        tag=_TAG,
        summary="Take encoded files out of texts",
        description="Of the caller's user. Each is an edit like any other, with its old version; "
        "a memory that is nothing but a file is archived.",
        handler=sanitize,
        body=shapes.SanitizeBody,
        body_required=False,
        example_body={"tier": "working", "dry_run": True},
        aliases=shapes.SANITIZE_ALIASES,
        answer=shapes.SanitizeAnswer,
        example=SANITIZED,
        writes=True,
    ),
)
