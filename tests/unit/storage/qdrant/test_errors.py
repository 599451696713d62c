"""Errors of a Qdrant server become ours, all of them."""

import asyncio

import grpc  # type: ignore[import-untyped]  # grpcio ships no type information
import httpx
import pytest
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from rayapp.core.errors import Conflict, IndexDown, InvalidInput, NotFound, RayappError
from rayapp.core.settings.model import QdrantSettings
from rayapp.storage.qdrant.errors import ADVICE, STATUS_ERRORS, qdrant_errors
from rayapp.storage.qdrant.server import QdrantServerIndex


def test_every_status_has_an_error_and_every_error_advice() -> None:
    assert set(STATUS_ERRORS) == set(grpc.StatusCode)
    assert set(STATUS_ERRORS.values()) == set(ADVICE)


def rpc(status: grpc.StatusCode) -> grpc.aio.AioRpcError:
    empty = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(status, empty, empty, details="why")


def http(status: int) -> UnexpectedResponse:
    return UnexpectedResponse(status, "reason", b"why", httpx.Headers())


CASES: list[tuple[Exception, type[RayappError]]] = [
    (rpc(grpc.StatusCode.UNAVAILABLE), IndexDown),
    (rpc(grpc.StatusCode.NOT_FOUND), NotFound),
    (rpc(grpc.StatusCode.INVALID_ARGUMENT), InvalidInput),
    (rpc(grpc.StatusCode.ALREADY_EXISTS), Conflict),
    (http(400), InvalidInput),
    (http(404), NotFound),
    (http(409), Conflict),
    (http(401), IndexDown),
    (http(500), IndexDown),
    (ResponseHandlingException(httpx.ConnectError("refused")), IndexDown),
    (httpx.ReadTimeout("late"), IndexDown),
    (ConnectionRefusedError(), IndexDown),
]


@pytest.mark.parametrize(("error", "kind"), CASES, ids=lambda v: repr(v)[:40])
async def test_client_error_is_translated(error: Exception, kind: type[RayappError]) -> None:
    with pytest.raises(kind) as caught:
        async with qdrant_errors(1.0, named=True):
            raise error
    assert type(caught.value) is kind
    assert (caught.value.retry_after_s is not None) == (kind is IndexDown)


@pytest.mark.parametrize("error", [rpc(grpc.StatusCode.NOT_FOUND), http(404)])
async def test_missing_alias_means_the_index_is_down(error: Exception) -> None:
    with pytest.raises(IndexDown):
        async with qdrant_errors(1.0):
            raise error


async def test_late_answer_is_down() -> None:
    with pytest.raises(IndexDown) as caught:
        async with qdrant_errors(0.01):
            await asyncio.sleep(1)
    assert "0.01 s" in caught.value.details["error"]


async def test_our_own_errors_and_bugs_pass_through() -> None:
    for error in (Conflict("x"), KeyError("bug")):
        with pytest.raises(type(error)):
            async with qdrant_errors(1.0):
                raise error


def test_server_index_needs_a_url() -> None:
    with pytest.raises(IndexDown, match="QDRANT_URL"):
        QdrantServerIndex(QdrantSettings())
