"""Texts that are kept if they matter, and what was decided of each."""

from typing import Any

from rayapp.api.auth import RAW_DATA
from rayapp.api.json_body import read_model
from rayapp.api.paths import MemoryIdPart
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, router, writes
from rayapp.core import errors
from rayapp.memory.requests import NewMemory
from rayapp.wire import raw_data as wire

routes = router("understanding")


@routes.post(
    RAW_DATA,
    summary="Keep a text if it matters",
    status_code=202,
    **writes(errors.TooLarge, errors.DuplicateMemory, errors.Conflict),
)
async def add(call: CurrentCall, body: wire.RawDataBody) -> wire.RawDataAnswer:
    """Scored at once: up to the threshold it is archived with the reason `importance`, above it it
    is kept without an expiry, and what it means is derived in the background. 409
    `understanding_off`: understanding is off for this tenant."""
    found = await call.services.raw_data.add(call.writes, body.new_memory())
    return wire.RawDataAnswer.from_decided(found)


@routes.post(
    f"{RAW_DATA}/batch",
    summary="Keep texts if they matter",
    status_code=202,
    **writes(errors.TooLarge, errors.Conflict),
)
async def add_many(call: CurrentCall, body: wire.RawDataBatchBody) -> wire.RawDataBatchAnswer:
    """One result per text, in order; a bad one is refused alone."""
    most = call.services.settings.http.batch_limit_items
    if len(body.items) > most:
        raise errors.TooLarge(
            f"The batch has {len(body.items)} items; send at most {most} at once.",
            details={"field": "items", "limit": most},
        )
    found = await call.services.raw_data.add_many(
        call.writes, [_new_or_refused(one) for one in body.items]
    )
    return wire.RawDataBatchAnswer(
        success=not found or any(one.error is None for one in found),
        results=tuple(map(wire.RawDataResult.from_decided, found)),
    )


def _new_or_refused(data: Any) -> NewMemory | errors.RayappError:
    """One bad text refuses itself only."""
    try:
        if not isinstance(data, dict):
            raise errors.InvalidInput("An item must be a JSON object.")
        return read_model(wire.RawDataItem, data).new_memory()
    except errors.InvalidInput as error:
        return error


@routes.get(
    f"{RAW_DATA}/{{memory_id}}",
    summary="Why a text matters, or not",
    responses=raises(errors.NotFound),
)
async def get(call: CurrentCall, memory_id: MemoryIdPart) -> wire.RawDataAnswer:
    """The whole decision, of any memory: score, signals, overrides, threshold, trace id."""
    return wire.RawDataAnswer.from_decided(await call.services.raw_data.get(call.reads, memory_id))


@routes.post(
    f"{RAW_DATA}/{{memory_id}}/reprocess",
    summary="Decide on a text anew",
    status_code=202,
    **writes(errors.NotFound, errors.Conflict),
)
async def reprocess(
    call: CurrentCall, memory_id: MemoryIdPart, body: wire.ReprocessBody | None = None
) -> wire.RawDataAnswer:
    """As things stand now: an archived text comes back if it matters by now. The body may be left
    out."""
    force = body.force if body is not None else False
    found = await call.services.raw_data.reprocess(call.writes, memory_id, force=force)
    return wire.RawDataAnswer.from_decided(found)
