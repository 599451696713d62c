"""Embedder and Reranker over Serve handles: one call per batch, errors mapped at the door."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, RayServeException
from ray.serve.handle import DeploymentHandle

from rayapp.core import errors
from rayapp.core.breaker import BreakerSnapshot
from rayapp.core.vectors import Vector
from rayapp.inference.ports import EmbedderInfo, TextKind

# The replica answers within its own limit; the way there and back gets this much on top, so that
# the replica's reason arrives before the caller's alarm.
HANDLE_GRACE_S = 0.05
# Limit of calls that only read the replica's state.
INFO_TIMEOUT_S = 5.0


def to_rayapp_error(error: Exception, down: type[errors.DependencyDown]) -> errors.RayappError:
    """What a failed handle call means. A replica's own RayappError comes out as it went in."""
    if isinstance(error, RayTaskError):
        cause = error.cause
        if isinstance(cause, errors.RayappError):
            return cause
        return down(f"The replica failed ({type(cause).__name__}); see its log.")
    if isinstance(error, errors.RayappError):
        return error
    if isinstance(error, BackPressureError):
        return errors.Overloaded(
            "The queue of the deployment is full; retry later.", retry_after_s=1.0
        )
    if isinstance(error, TimeoutError):
        return down("The replica did not answer in time; retry later.", code="handle_timeout")
    if isinstance(error, RayActorError):
        return down("The replica died twice during the call; retry later.", code="replica_died")
    if isinstance(error, DeploymentUnavailableError):
        return down("The deployment failed to start; see its log.", code="deployment_unavailable")
    return down(f"The call to the replica failed ({type(error).__name__}); see the logs.")


async def call_once_more(
    make_call: Callable[[], Any], timeout_s: float, down: type[errors.DependencyDown]
) -> Any:
    """An idempotent handle call; repeated once when the replica dies under it.

    `make_call` starts a call and returns its awaitable response.
    """
    try:
        async with asyncio.timeout(timeout_s):
            try:
                return await make_call()
            except RayTaskError:
                raise
            except RayActorError:
                return await make_call()
    except (RayError, RayServeException, TimeoutError, errors.RayappError) as error:
        raise to_rayapp_error(error, down) from error


async def ask_all(
    handle: DeploymentHandle[Any], method: str, down: type[errors.DependencyDown]
) -> Any:
    """The lists that every replica answers, one after the other.

    A replica that dies meanwhile is left out: the one that follows it has closed breakers.
    Raises DependencyDown: as `down`, when none answers in time.
    """
    try:
        answers = await handle.broadcast(method).results_async(
            timeout_s=INFO_TIMEOUT_S, return_exceptions=True
        )
    except (RayError, RayServeException, TimeoutError) as error:
        raise to_rayapp_error(error, down) from error
    failed = [one for one in answers if isinstance(one, Exception)]
    if answers and len(failed) == len(answers):
        raise to_rayapp_error(failed[0], down)
    return [row for one in answers if not isinstance(one, Exception) for row in one]


class _ModelHandle:
    """What the replicas of a model are asked besides its work."""

    def __init__(self, handle: DeploymentHandle[Any], down: type[errors.DependencyDown]) -> None:
        self._handle = handle
        self._down = down

    async def health(self) -> dict[str, Any]:
        health: dict[str, Any] = await self._ask(self._handle.health.remote)
        return health

    async def breakers(self) -> list[BreakerSnapshot]:
        rows: list[BreakerSnapshot] = await ask_all(self._handle, "breakers", self._down)
        return rows

    async def reset_breakers(self) -> list[str]:
        names: list[str] = await ask_all(self._handle, "reset_breakers", self._down)
        return list(dict.fromkeys(names))

    async def _ask(self, remote: Callable[[], Any], timeout_s: float = INFO_TIMEOUT_S) -> Any:
        return await call_once_more(remote, timeout_s, self._down)


class HandleEmbedder(_ModelHandle):
    """Implements `Embedder` over `serve.deployments.gateways.EmbeddingDeployment`."""

    def __init__(self, handle: DeploymentHandle[Any]) -> None:
        super().__init__(handle, errors.EmbedderDown)

    async def info(self) -> EmbedderInfo:
        info: EmbedderInfo = await self._ask(self._handle.info.remote)
        return info

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        """As `EmbeddingService.embed`. The vectors are rows of one read-only array."""
        if timeout_s <= 0:
            raise errors.DeadlineExceeded("No time is left for the embedding; retry later.")
        if not texts:
            return []
        array = await self._ask(
            lambda: self._handle.embed.remote(list(texts), kind, timeout_s),
            timeout_s + HANDLE_GRACE_S,
        )
        return list(array)


class HandleReranker(_ModelHandle):
    """Implements `Reranker` over `serve.deployments.gateways.RerankerDeployment`."""

    def __init__(self, handle: DeploymentHandle[Any]) -> None:
        super().__init__(handle, errors.RerankerDown)

    async def rerank(
        self, query: str, documents: Sequence[str], *, timeout_s: float
    ) -> list[float] | None:
        """As `RerankService.rerank`."""
        if timeout_s <= 0:
            raise errors.DeadlineExceeded("No time is left for the reranker; retry later.")
        scores: list[float] | None = await self._ask(
            lambda: self._handle.rerank.remote(query, list(documents), timeout_s),
            timeout_s + HANDLE_GRACE_S,
        )
        return scores
