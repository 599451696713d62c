"""A user's data leave and come back: estimate, export, import, restore, and what is kept."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

import orjson
from starlette.responses import Response, StreamingResponse

from rayapp.api.auth import BACKUP
from rayapp.api.call import Call, check_confirmed
from rayapp.api.responses import JSON, file_form, merged, raises, raises_code
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.api.routes.books import form_of
from rayapp.core.errors import InvalidInput, NotFound, Overloaded, TooLarge
from rayapp.core.settings.model import CompatSettings
from rayapp.portability.archive import Archive, of_payload, open_zip
from rayapp.portability.ports import ExportRequest, ImportRequest, KeptArchive, RowsWanted
from rayapp.portability.rules.kinds import Merge, Origin
from rayapp.wire import backup as wire

routes = router("backup")
UPLOAD = f"{BACKUP}/upload"
FROM = f"{BACKUP}/import-from"
FORM_PATHS = frozenset({UPLOAD, FROM})
# They take an archive as JSON.
BATCH_PATHS = frozenset({f"{BACKUP}/import", f"{BACKUP}/restore"})
ZIP = "application/zip"
CHUNK = 1 << 20
AS_ZIP: dict[int | str, dict[str, Any]] = {
    200: {"content": {ZIP: {"schema": {"type": "string", "format": "binary"}, "example": "PK"}}}
}
FORM = file_form(wire.UploadedImport, {"file": "(the bytes of rayapp-export.zip)", "dryRun": True})
FROM_FORM = file_form(
    wire.ForeignImport,
    {"file": "(the bytes of conversations.json)", "source": "chatgpt", "dryRun": True},
)
FILE_ERRORS = merged(
    raises(TooLarge, Overloaded),
    *map(raises_code, ("bad_archive", "malformed_form", "unsupported_media_type")),
)


@routes.get(f"{BACKUP}/estimate", summary="Size of an export")
async def estimate(call: CurrentCall, query: InQuery[wire.ExportQuery]) -> wire.BackupEstimate:
    """Counts and bytes of what an export with the same fields holds."""
    found = await call.services.exports.estimate(call.reads.own, _wanted(query))
    points = await call.services.exports.points(call.reads.own)
    return wire.BackupEstimate.from_estimate(found, points)


@routes.get(
    f"{BACKUP}/export",
    summary="Export the user's data",
    response_model=wire.ExportDocument,
    responses={**AS_ZIP, **raises(NotFound)},
)
async def export(call: CurrentCall, query: InQuery[wire.DownloadQuery]) -> Response:
    """Everything as it stood at one moment, as a file: `format=zip` for JSON Lines per collection
    with a manifest of counts, schema versions and SHA-256, `format=json` for one document. The
    manifest lists the fields that an import makes anew."""
    exports, scope = call.services.exports, call.reads.own
    if query.name is not None:
        stream = _kept_file(call, query.name)
        first = await anext(stream)
        name = query.name
    else:
        as_document = call.services.settings.compat.first_client
        request = replace(_wanted(query), format=query.format, as_document=as_document)
        stream, name = exports.stream(scope, request), exports.name(request)
        first = await anext(stream)  # what cannot be begun is answered as an error
    media = ZIP if name.endswith(".zip") else JSON
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_after(first, stream), media_type=media, headers=headers)


@routes.get(f"{BACKUP}/list", summary="List the archives that are kept")
async def listed(call: CurrentCall) -> wire.BackupsAnswer:
    """Of the caller's user, newest first; `GET /api/memory/backup/export?name=` answers one."""
    kept = await call.services.exports.kept(call.reads.own)
    return wire.BackupsAnswer(backups=kept, total=len(kept))


@routes.delete(f"{BACKUP}/cleanup", summary="Remove old archives", **writes())
async def cleanup(call: CurrentCall, query: InQuery[wire.CleanupQuery]) -> wire.BackupsGone:
    """All of the user's but the newest `keep`."""
    gone = await call.services.exports.cleanup(call.reads.own, query.keep)
    left = await call.services.exports.kept(call.reads.own)
    names = tuple(one.name for one in gone)
    said = f"{len(names)} archives removed, {len(left)} are kept."
    return wire.BackupsGone(removed=names, kept=len(left), message=said)


@routes.post(
    f"{BACKUP}/import",
    summary="Import an export",
    responses={**raises(NotFound, TooLarge), **raises_code("bad_archive")},
)
async def import_(call: CurrentCall, body: wire.ImportBody) -> wire.ImportAnswer:
    """An export as JSON, or one that is kept, by its name; files go to
    `POST /api/memory/backup/upload`. It is checked as a whole before anything is written. Ids stay,
    memories are indexed anew. A repeat changes nothing, or goes on where one was cut short."""
    await _check_replaced(call, body, unasked=call.services.settings.compat)
    with _archive(call, body) as found:
        report = await call.services.imports.run(call.writes, found, _asked(body))
    return wire.ImportAnswer.from_report(report, dry_run=body.dryRun)


@routes.post(UPLOAD, summary="Import an archive file", responses=FILE_ERRORS, openapi_extra=FORM)
async def upload(call: CurrentCall) -> wire.ImportAnswer:
    """The zip or the JSON file of an export, in the field `file` of a form; else as the import."""
    async with form_of(call, wire.UploadedImport) as (file, name, form):
        await _check_replaced(call, form)
        limit = call.services.settings.backup.max_unpacked_bytes
        with _read(file, name, limit) as found:
            report = await call.services.imports.run(call.writes, found, _asked(form))
    return wire.ImportAnswer.from_report(report, dry_run=form.dryRun)


@routes.post(
    FROM, summary="Import from another system", responses=FILE_ERRORS, openapi_extra=FROM_FORM
)
async def import_from(call: CurrentCall) -> wire.ForeignImportAnswer:
    """What `source` exported, as its zip or JSON file: memories of mem0, conversations of ChatGPT
    or Claude, a zip of Markdown files, a backup of Roampal. Read as a whole before anything is
    written; ids are made of what it holds, so that a repeat adds nothing. Times stay, and nothing
    of it ends by itself."""
    async with form_of(call, wire.ForeignImport) as (file, name, form):
        source = Origin(form.source)
        done = await call.services.foreign_imports.run(
            call.writes, source, file, name, dry_run=form.dryRun
        )
    return wire.ForeignImportAnswer.from_foreign(done, source, dry_run=form.dryRun)


@routes.post(
    f"{BACKUP}/restore",
    summary="Restore an export",
    responses={**raises(NotFound, TooLarge), **raises_code("bad_archive")},
)
async def restore(call: CurrentCall, body: wire.RestoreExportBody) -> wire.RestoredExport:
    """As an import that replaces what is there, after an export of all of it, which is kept."""
    if body.dryRun:
        raise InvalidInput("A restore has no dry run; send dryRun to the import.")
    with _archive(call, body) as found:
        done = await call.services.imports.restore(call.writes, found, _asked(body))
    result = wire.ImportAnswer.from_report(done.report, dry_run=False)
    safety = await _safety(call, done.before)
    return wire.RestoredExport.model_validate({"preRestore": safety, "import": result})


def _wanted(query: wire.ExportQuery) -> ExportRequest:
    wanted = RowsWanted(tiers=query.tiers(), archived=query.includeArchived != wire.OFF)
    return ExportRequest(kinds=query.kinds(), without=query.without(), wanted=wanted)


def _asked(body: wire.ImportBody | wire.UploadedImport) -> ImportRequest:
    return ImportRequest(
        merge=Merge(body.mergeStrategy), dry_run=body.dryRun, map_user=body.mapUser
    )


async def _check_replaced(
    call: Call,
    body: wire.ImportBody | wire.UploadedImport,
    *,
    unasked: CompatSettings | None = None,
) -> None:
    """`unasked`: of the route of the first client, which sends no word.

    Raises InvalidInput: what is there would go first, and the word is missing; Conflict: an
    operator holds it.
    """
    if _asked(body).merge is Merge.REPLACE and not body.dryRun:
        check_confirmed(body.confirm, "What is here of these kinds goes first", unasked=unasked)
        await call.services.holds.check(call.who.user_id)


@contextmanager
def _archive(call: Call, body: wire.ImportBody) -> Iterator[Archive]:
    """What the body names."""
    if (body.payload is None) == (body.name is None):
        raise InvalidInput(
            "payload: send an export, or the `name` of one that is kept; one of them.",
            details={"field": "payload"},
        )
    if body.payload is not None:
        yield of_payload(body.payload)
        return
    assert body.name is not None
    with (
        call.services.exports.files.opened(call.who.user_id, body.name) as file,
        _read(file, body.name, call.services.settings.backup.max_unpacked_bytes) as found,
    ):
        yield found


@contextmanager
def _read(file: IO[bytes], name: str, max_bytes: int) -> Iterator[Archive]:
    """An archive by the name of its file."""
    if not name.endswith(".json"):
        yield open_zip(file, max_bytes=max_bytes)
        return
    try:
        payload = orjson.loads(file.read())
    except orjson.JSONDecodeError:
        payload = None
    yield of_payload(payload if isinstance(payload, dict) else {})


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _kept_file(call: Call, name: str) -> AsyncIterator[bytes]:
    with call.services.exports.files.opened(call.who.user_id, name) as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


async def _safety(call: Call, kept: KeptArchive) -> wire.SafetyView:
    payload = None
    if kept.name.endswith(".json"):
        with call.services.exports.files.opened(call.who.user_id, kept.name) as file:
            payload = orjson.loads(file.read())
    return wire.SafetyView.of(kept, payload=payload)
