"""Errors of a Qdrant server as errors of ours: one table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import httpx
from qdrant_client.http.exceptions import (
    ApiException,
    ResponseHandlingException,
    UnexpectedResponse,
)

from rayapp.core.errors import Conflict, IndexDown, InvalidInput, NotFound, RayappError

RETRY_AFTER_S = 1.0

# Every gRPC status; HTTP answers are mapped to one of them first.
STATUS_ERRORS: dict[grpc.StatusCode, type[RayappError]] = {
    grpc.StatusCode.OK: IndexDown,
    grpc.StatusCode.CANCELLED: IndexDown,
    grpc.StatusCode.UNKNOWN: IndexDown,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInput,
    grpc.StatusCode.DEADLINE_EXCEEDED: IndexDown,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
    grpc.StatusCode.PERMISSION_DENIED: IndexDown,
    grpc.StatusCode.RESOURCE_EXHAUSTED: IndexDown,
    grpc.StatusCode.FAILED_PRECONDITION: IndexDown,
    grpc.StatusCode.ABORTED: IndexDown,
    grpc.StatusCode.OUT_OF_RANGE: InvalidInput,
    grpc.StatusCode.UNIMPLEMENTED: IndexDown,
    grpc.StatusCode.INTERNAL: IndexDown,
    grpc.StatusCode.UNAVAILABLE: IndexDown,
    grpc.StatusCode.DATA_LOSS: IndexDown,
    grpc.StatusCode.UNAUTHENTICATED: IndexDown,
}
HTTP_STATUS: dict[int, grpc.StatusCode] = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    404: grpc.StatusCode.NOT_FOUND,
    409: grpc.StatusCode.ALREADY_EXISTS,
    422: grpc.StatusCode.INVALID_ARGUMENT,
}
ADVICE: dict[type[RayappError], str] = {
    IndexDown: "check the Qdrant server with `rayapp doctor`",
    InvalidInput: "report this request, it should have been refused earlier",
    NotFound: "create the collection, or run `rayapp job reindex`",
    Conflict: "use another name",
}


def translated(status: grpc.StatusCode, text: str, *, named: bool = True) -> RayappError:
    kind = STATUS_ERRORS[status]
    if kind is NotFound and not named:
        kind = IndexDown
    retry = RETRY_AFTER_S if kind is IndexDown else None
    return kind(
        f"The vector index answered {status.name}: {ADVICE[kind]}.",
        details={"error": text[:500]},
        retry_after_s=retry,
    )


@asynccontextmanager
async def qdrant_errors(timeout_s: float, *, named: bool = False) -> AsyncIterator[None]:
    """Limit the block to `timeout_s` seconds and raise only errors of ours from it.

    `named`: the caller chose the collection, so a missing one is its NotFound; otherwise the
    alias is missing, and the index is down.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        late = f"no answer within {timeout_s} s"
        raise translated(grpc.StatusCode.DEADLINE_EXCEEDED, late) from error
    except grpc.aio.AioRpcError as error:
        raise translated(error.code(), error.details() or "", named=named) from error
    except UnexpectedResponse as error:
        status = HTTP_STATUS.get(error.status_code or 0, grpc.StatusCode.UNAVAILABLE)
        raise translated(status, str(error), named=named) from error
    except (ResponseHandlingException, ApiException, httpx.HTTPError, OSError) as error:
        raise translated(grpc.StatusCode.UNAVAILABLE, str(error)) from error
