"""Errors of a Qdrant server as errors of ours: one table."""

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
    **dict.fromkeys(grpc.StatusCode, IndexDown),
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInput,
    grpc.StatusCode.OUT_OF_RANGE: InvalidInput,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
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


def translate_error(status: grpc.StatusCode, text: str, *, named: bool = True) -> RayappError:
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
        raise translate_error(grpc.StatusCode.DEADLINE_EXCEEDED, late) from error
    except grpc.aio.AioRpcError as error:
        raise translate_error(error.code(), error.details() or "", named=named) from error
    except UnexpectedResponse as error:
        status = HTTP_STATUS.get(error.status_code or 0, grpc.StatusCode.UNAVAILABLE)
        raise translate_error(status, str(error), named=named) from error
    except (ResponseHandlingException, ApiException, httpx.HTTPError, OSError) as error:
        raise translate_error(grpc.StatusCode.UNAVAILABLE, str(error)) from error
