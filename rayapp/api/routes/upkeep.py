"""Upkeep of the whole store for administrators: sizes, cleanup, retention, tenants, reset."""

import asyncio
import time

from rayapp.admin.ports import Cleanup
from rayapp.api.auth import DAILY, HOLDS, INTEGRITY, RETENTION, TENANTS
from rayapp.api.call import Call, check_confirmed
from rayapp.api.paths import OrgId
from rayapp.api.responses import raises, raises_code
from rayapp.api.route import IDEMPOTENT, CurrentCall, InQuery, router, writes
from rayapp.core.errors import Conflict, NotFound
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.wire import retention as keeping
from rayapp.wire import tenants as owners
from rayapp.wire import upkeep as wire
from rayapp.wire.data import EraseQuery

routes = router("upkeep")
OPS, CLEANUP = "/api/memory/ops", "/api/memory/cleanup"
RESET_WARNING = (
    "A reset removes all memories of all users, with their versions, outcomes and graphs, the "
    "index with its older collections, the old memory bank, and the archives that are kept of "
    "users. It cannot be undone. API keys, jobs and leases stay."
)
MEGABYTE = 1 << 20


@routes.get("/api/system/data-sizes", summary="What the data takes on disk")
async def data_sizes(call: CurrentCall) -> wire.SizesAnswer:
    started = time.perf_counter()
    sizes = await call.services.upkeep.sizes()
    rows = sizes.collections
    return wire.SizesAnswer.of(
        sizes,
        mongo=rows,
        qdrant=sizes.index,
        meta={
            "built_ms": round((time.perf_counter() - started) * 1000, 1),
            "total_bytes": sum(size.storage_bytes + size.index_bytes for size in rows),
            "free_bytes": sum(size.free_bytes for size in rows),
        },
    )


@routes.get(INTEGRITY, summary="Whether the stores agree, and how old the last backup is")
async def integrity(call: CurrentCall) -> wire.IntegrityAnswer:
    """Each check with the command that repairs what it found. Differences between the database and
    the index are those that the last sweep left."""
    report = call.services.storage_report
    sizes, backups, checks = await asyncio.gather(
        call.services.upkeep.sizes(), report.backups(), report.checks()
    )
    rows = {one.name: one.count for one in sizes.collections}
    return wire.IntegrityAnswer(
        well=all(one.well for one in checks),
        store_bytes=sum(one.storage_bytes + one.index_bytes for one in sizes.collections),
        conversations=rows.get("sessions", 0),
        turns=rows.get("turns", 0),
        backups=backups,
        checks=checks,
        degraded=sizes.degraded,
    )


@routes.get(DAILY, summary="What the service held, day by day")
async def daily(call: CurrentCall, query: InQuery[wire.DaysQuery]) -> wire.DaysAnswer:
    """A row per UTC day, kept for 400 days. Counts of outcomes and deletions only grow: what a day
    brought is the difference to the day before."""
    found = await call.services.storage_report.days(query.days)
    return wire.DaysAnswer(days=found)


@routes.post("/api/data/compact-database", summary="Give free space back to the file system")
async def compact(call: CurrentCall) -> wire.CompactAnswer:
    """One collection at a time, those with at least 1 MiB free. The server goes on serving
    meanwhile. It reuses free space by itself, so that this is needed only after much was deleted,
    and it may give nothing back."""
    done, complete = await call.services.upkeep.compact()
    freed = sum(one.freed_bytes for one in done)
    worked = sum(one.success for one in done)
    message = "No collection has space worth giving back."
    if done:
        message = f"{worked} of {len(done)} collections were compacted."
    if not complete:
        message = f"{message} The time was up; ask again for the rest."
    return wire.CompactAnswer(
        space_reclaimed_mb=round(freed / MEGABYTE, 2),
        space_reclaimed_bytes=freed,
        collections_compacted=worked,
        compact_results=done,
        complete=complete,
        message=message,
        timestamp=call.services.clock.now(),
    )


# --- users that were browser sessions


@routes.get(CLEANUP, summary="Count session users that nobody can be any more")
async def cleanup_stats(
    call: CurrentCall, query: InQuery[wire.QuietQuery]
) -> wire.CleanupCountAnswer:
    """A session user has an id of 64 hexadecimal digits. It counts as orphaned when no key is bound
    to it and nothing of it changed for `quiet_days`."""
    report = await call.services.upkeep.cleanup(dry_run=True, quiet_days=query.quiet_days)
    return wire.CleanupCountAnswer(stats=wire.CleanupStats.from_report(report, query.quiet_days))


@routes.post(CLEANUP, summary="Remove session users that nobody can be any more", **writes())
async def cleanup(call: CurrentCall, body: wire.CleanupBody | None = None) -> wire.CleanupAnswer:
    how, compat = body or wire.CleanupBody(), call.services.settings.compat
    if not how.dry_run:
        check_confirmed(how.confirm, "This removes users for good", unasked=compat)
    report = await call.services.upkeep.cleanup(dry_run=how.dry_run, quiet_days=how.quiet_days)
    return wire.CleanupAnswer(
        dry_run=how.dry_run,
        stats=wire.CleanupStats.from_report(report, how.quiet_days),
        result=report,
        message=_cleanup_message(report),
    )


def _cleanup_message(report: Cleanup) -> str:
    if report.dry_run:
        found = f"{len(report.orphans)} users would go"
        return f"{found}; send dryRun false and confirm DELETE to remove them."
    if report.remaining:
        return f"{report.users_removed} users removed; {report.remaining} are left, ask again."
    return f"{report.users_removed} users removed."


# --- the old memory bank


@routes.get(f"{OPS}/migrate", summary="What of the old memory bank is not moved in yet")
async def migrate_status(
    call: CurrentCall, query: InQuery[wire.MigrateQuery]
) -> wire.MigrateStatusAnswer:
    would = await call.services.upkeep.moving.move(_writes(call, query), dry_run=True)
    return wire.MigrateStatusAnswer(status=wire.MigrateStatus.from_migration(would))


@routes.post(f"{OPS}/migrate", summary="Move the old memory bank in", **writes())
async def migrate(call: CurrentCall, body: wire.MigrateBody | None = None) -> wire.MigrateAnswer:
    """Rows of the collection `memoryBank` become memories under their old ids; the old rows stay,
    marked as moved, so that what is deleted afterwards does not come back. Harmless to repeat."""
    how = body or wire.MigrateBody()
    done = await call.services.upkeep.moving.move(_writes(call, how), dry_run=how.dry_run)
    word = "would be moved" if how.dry_run else "were moved"
    message = f"{done.migrated} of {done.total} old facts {word}; {done.duplicates} are there."
    if not done.complete:
        message = f"{message} The time was up; ask again to go on."
    return wire.MigrateAnswer.of(how, stats=done, message=message)


def _writes(call: Call, whose: wire.MigrateQuery) -> WriteScope:
    return WriteScope(whose.user_id or call.who.user_id, call.who.principal)


@routes.put(f"{OPS}/migrate", summary="Prove that the old memory bank was moved in")
async def migrate_verify(
    call: CurrentCall, body: wire.VerifyBody | None = None
) -> wire.VerifyAnswer:
    scope = ReadScope((body and body.user_id) or call.who.user_id).own
    found = await call.services.upkeep.moving.verify(scope)
    return wire.VerifyAnswer(verification=wire.VerificationView.from_verification(found))


# --- encoded files in texts


@routes.get(f"{OPS}/sanitize", summary="Look for encoded files in texts")
async def sanitize_look(
    call: CurrentCall, query: InQuery[wire.SanitizeQuery]
) -> wire.SanitizeAnswer:
    return await _sanitize(call, query, dry_run=True)


@routes.post(f"{OPS}/sanitize", summary="Take encoded files out of texts", **writes())
async def sanitize(call: CurrentCall, body: wire.SanitizeBody | None = None) -> wire.SanitizeAnswer:
    """Of the caller's user. Each is an edit like any other, with its old version; a memory that is
    nothing but a file is archived."""
    how = body or wire.SanitizeBody()
    unasked = not call.services.settings.compat.first_client
    dry_run = unasked if how.dry_run is None else how.dry_run
    return await _sanitize(call, how, dry_run=dry_run)


async def _sanitize(call: Call, where: wire.SanitizeQuery, *, dry_run: bool) -> wire.SanitizeAnswer:
    report = await call.services.upkeep.sanitizing.run(
        call.writes, where.tier, dry_run=dry_run, cursor=where.cursor
    )
    return wire.SanitizeAnswer.from_report(report, call.documents)


# --- retention and legal holds


@routes.get(RETENTION, summary="What is past its age and would go")
async def retention_preview(call: CurrentCall) -> keeping.RetentionAnswer:
    """By the limits of the settings (`retention.…_days`; without any, nothing goes). The owner of
    maintenance deletes it within `retention.every_h`."""
    return keeping.RetentionAnswer.from_report(
        await call.services.retention.preview(), dry_run=True
    )


@routes.post(
    RETENTION,
    summary="Delete now what is past its age",
    responses=raises_code("confirm_needed"),
    dependencies=[IDEMPOTENT],
)
async def retention(call: CurrentCall, body: keeping.RunBody) -> keeping.RetentionAnswer:
    """As each kind's own route deletes; within the time of a request. Held users are left alone."""
    check_confirmed(body.confirm, "This deletes what is past its age, for good")
    return keeping.RetentionAnswer.from_report(await call.services.retention.run(), dry_run=False)


@routes.get(HOLDS, summary="List the users whose data are held")
async def holds(call: CurrentCall) -> keeping.HoldsAnswer:
    found = await call.services.holds.all()
    return keeping.HoldsAnswer(holds=found)


@routes.post(HOLDS, summary="Hold the data of a user", **writes())
async def hold(call: CurrentCall, body: keeping.HoldBody) -> keeping.HoldAnswer:
    """A legal hold: nothing of the user is deleted, neither by age nor by a route (409
    `legal_hold`), until it is released. What expires within hours or days (receipts, queues) still
    does. A repeat answers the hold that is there."""
    call.ids["held"] = body.user_id
    kept = await call.services.holds.place(body.user_id, body.reason, call.who.principal)
    return keeping.HoldAnswer(hold=kept)


@routes.delete(HOLDS, summary="Release the data of a user", **writes(NotFound))
async def release(
    call: CurrentCall, query: InQuery[keeping.ReleaseQuery]
) -> keeping.ReleasedAnswer:
    call.ids["released"] = query.user_id
    await call.services.holds.release(query.user_id, call.who.principal)
    return keeping.ReleasedAnswer(user_id=query.user_id, message="The hold is released.")


# --- tenants


@routes.get(TENANTS, summary="List the tenants")
async def tenants(call: CurrentCall) -> owners.TenantsAnswer:
    """Those that a key was ever made for. A key with a tenant never reaches this route."""
    return owners.TenantsAnswer(tenants=await call.services.tenants.all())


@routes.get(f"{TENANTS}/{{org_id}}/users", summary="List the users of a tenant")
async def tenant_users(call: CurrentCall, org_id: OrgId) -> owners.TenantUsersAnswer:
    """Those of whom anything is kept, with how many memories."""
    return owners.TenantUsersAnswer(users=await call.services.tenants.users(org_id))


@routes.delete(
    f"{TENANTS}/{{org_id}}",
    summary="Erase a tenant",
    responses={**raises_code("confirm_needed"), **raises(NotFound, Conflict)},
)
async def erase_tenant(
    call: CurrentCall, org_id: OrgId, query: InQuery[EraseQuery]
) -> owners.TenantErasedAnswer:
    """Its keys are revoked, then all that is kept of each of its users goes, as by
    `DELETE /api/memory/user`; nothing while one of them is held. A replica may accept a revoked key
    for `auth.cache_s` more seconds: what is written by it goes with the next call."""
    check_confirmed(query.confirm, "Erasing a tenant cannot be undone")
    return owners.TenantErasedAnswer.from_erased(await call.services.tenants.erase(org_id))


# --- reset


@routes.get(f"{OPS}/reset", summary="What a reset would remove")
async def reset_preview(call: CurrentCall) -> wire.ResetPreviewAnswer:
    found = await call.services.upkeep.reset_preview()
    return wire.ResetPreviewAnswer(
        preview=wire.ResetPreviewView.from_preview(found),
        warning=RESET_WARNING,
        degraded=() if found.index else ("vector_index",),
    )


@routes.post(
    f"{OPS}/reset",
    summary="Remove the data of all users",
    description=f"{RESET_WARNING} Refused while a job goes on.",
    responses=raises(Conflict),
    # Without a body it is refused like one that does not confirm: with the warning.
    openapi_extra={"requestBody": {"required": True}},
)
async def reset(call: CurrentCall, body: wire.ResetBody | None = None) -> wire.ResetAnswer:
    word, compat = body.confirm if body else "", call.services.settings.compat
    # The first client confirms too, by another value.
    check_confirmed(word, RESET_WARNING.rstrip("."), unasked=compat if word is True else None)
    report = await call.services.upkeep.reset()
    step = "Start the DataGov job if open data is wanted: POST /api/memory/ops/datagov."
    if not report.complete:
        step = "The time was up: send the same request again until complete is true."
    return wire.ResetAnswer(
        message="Everything is removed." if report.complete else "A part is removed.",
        complete=report.complete,
        results=wire.ResetResults.from_report(report),
        next_steps=(step,),
    )
