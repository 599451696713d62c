"""A write with an idempotency key runs once: the same request again gets the first answer."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import orjson
from starlette.responses import Response

from rayapp.admin.ports import IdempotencyRow
from rayapp.api.call import Call
from rayapp.api.errors import error_answer
from rayapp.api.json_answer import answer
from rayapp.core.errors import DependencyDown, IdempotencyConflict, InvalidInput, RayappError
from rayapp.wire.bases import IDEMPOTENCY_KEY_PATTERN

logger = logging.getLogger(__name__)
Endpoint = Callable[[Call], Awaitable[Response]]

HEADERS = (b"idempotency-key", b"x-idempotency-key")
BODY_FIELD = "idempotency_key"
_KEY = re.compile(IDEMPOTENCY_KEY_PATTERN)
# One poll of a caller whose first request is still running.
IN_PROGRESS_RETRY_S = 1.0
# Refusals that pass with time: their key may be used again.
PASSING = frozenset({"busy", "job_starting"})


async def once(call: Call, endpoint: Endpoint) -> Response:
    """Run `endpoint`, or answer as it did the first time, marked `duplicate`.

    Raises:
        IdempotencyConflict: the first request is running, or had another body or query.
        InvalidInput: the key is not 1 to 255 visible ASCII characters.
    """
    key = key_of(call)
    if key is None:
        return await endpoint(call)
    store = call.services.idempotency
    row = IdempotencyRow(
        user_id=call.who.user_id,
        route=f"{call.scope['method']} {call.scope['path']}",
        key=key,
        body_sha256=_digest(call),
        state="running",
        at=call.services.clock.now(),
    )
    first = await store.begin(row)
    if first is not None and _abandoned(call, first, row):
        await store.drop(first)
        first = await store.begin(row)
    if first is not None:
        return _again(first, row)
    return await _run(call, endpoint, row)


def _digest(call: Call) -> str:
    """Of what is asked: the body, and the query where a route has one."""
    query: bytes = call.scope["query_string"]
    return hashlib.sha256(call.body + (b"?" + query if query else b"")).hexdigest()


def key_of(call: Call) -> str | None:
    """The key of the body, else of a header; None when there is none."""
    headers = dict(call.scope["headers"])
    sent = [headers[name].decode("latin-1") for name in HEADERS if name in headers]
    own = call.data.get(BODY_FIELD) if call.body else None
    keys = [*([] if own is None else [own]), *sent]
    for key in keys:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise InvalidInput(
                "The idempotency key must be 1 to 255 visible ASCII characters.",
                code="bad_idempotency_key",
                details={"field": BODY_FIELD},
            )
    return keys[0] if keys else None


async def _run(call: Call, endpoint: Endpoint, row: IdempotencyRow) -> Response:
    store = call.services.idempotency
    try:
        try:
            response = await endpoint(call)
        except RayappError as error:
            if error.retryable or error.code in PASSING:
                raise
            response = error_answer(error)
    except BaseException:
        # Cancelled or failed: a retry may run. Shielded, so that a cancelled request still cleans.
        await asyncio.shield(store.drop(row))
        raise
    if response.status_code >= 500:
        await store.drop(row)
        return response
    done = replace(row, state="done", status=response.status_code, response=bytes(response.body))
    try:
        await store.finish(done)
    except DependencyDown:
        # The write is done: the answer counts, and a retry meets its own result or the time limit.
        logger.warning("the answer under an idempotency key could not be kept")
    return response


def _abandoned(call: Call, first: IdempotencyRow, row: IdempotencyRow) -> bool:
    """True when the first request outlived its time limit: its replica died with it."""
    limit = timedelta(seconds=call.services.settings.serve.request_timeout_s)
    return (
        first.state == "running"
        and first.body_sha256 == row.body_sha256
        and row.at - first.at > limit
    )


def _again(first: IdempotencyRow, row: IdempotencyRow) -> Response:
    if first.body_sha256 != row.body_sha256:
        raise IdempotencyConflict(
            "This idempotency key was used with another body or query; use a new key.",
            details={"key": row.key},
        )
    if first.state == "running" or first.response is None:
        raise IdempotencyConflict(
            "The first request with this idempotency key is still running; try again.",
            details={"key": row.key},
            retry_after_s=IN_PROGRESS_RETRY_S,
        )
    body = orjson.loads(first.response)
    return answer(body | {"duplicate": True}, status=first.status or 200)
