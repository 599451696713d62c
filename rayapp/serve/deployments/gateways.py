"""Ray replicas of embedding and reranking, apart for their models, GPUs and batches."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rayapp.container.inference import embedding_service, rerank_service
from rayapp.core.breaker import BreakerSnapshot
from rayapp.core.errors import DependencyDown
from rayapp.core.logging import configure_logging
from rayapp.core.settings.model import Settings
from rayapp.core.vectors import Vector
from rayapp.inference.embedding import EmbeddingService
from rayapp.inference.ports import EmbedderInfo, TextKind
from rayapp.inference.reranking import RerankService
from rayapp.serve.deployments.process import RayMetrics


class _ModelDeployment:
    """What the replicas of a model share. Undecorated: `serve/app.py` wraps and binds them. Many
    callers share the batches of one replica, so they are scaled by GPUs, not by traffic."""

    _service: EmbeddingService | RerankService

    def __init__(self, build: Callable[[], Any]) -> None:
        """`build` runs in the replica, because a loaded model cannot be sent to it."""
        self._service = build()
        self._warm = False

    async def health(self) -> dict[str, Any]:
        return await self._service.health()

    async def breakers(self) -> list[BreakerSnapshot]:
        return await self._service.breakers()

    async def reset_breakers(self) -> list[str]:
        return await self._service.reset_breakers()

    async def check_health(self) -> None:
        """Serve calls it before the replica counts as ready: the model is warmed up here, once.

        Later calls tell only that the event loop runs: a model server that is away is a matter of
        the breaker, and restarting replicas would not bring it back.
        """
        if self._warm:
            return
        self._warm = True
        try:
            await self._service.warm_up()
        except DependencyDown:
            # The replica serves anyway: `health` shows it, callers get EmbedderDown and searches
            # keep their ranked order.
            return


class EmbeddingDeployment(_ModelDeployment):
    """A shim over `EmbeddingService`."""

    _service: EmbeddingService

    async def embed(self, texts: list[str], kind: TextKind, timeout_s: float) -> Vector:
        """float32 `[n, dims]`: one array crosses the handle, not n lists of floats."""
        vectors = await self._service.embed(texts, kind, timeout_s=timeout_s)
        if not vectors:
            return np.empty((0, 0), dtype=np.float32)
        return np.stack(vectors)

    async def info(self) -> EmbedderInfo:
        return await self._service.info()


class RerankerDeployment(_ModelDeployment):
    """A shim over `RerankService`."""

    _service: RerankService

    async def rerank(
        self, query: str, documents: list[str], timeout_s: float
    ) -> list[float] | None:
        return await self._service.rerank(query, documents, timeout_s=timeout_s)


class Embedding(EmbeddingDeployment):
    """The embedding gateway; its caches sit in the callers, where a hit costs no hop."""

    def __init__(self, settings: Settings) -> None:
        configure_logging(settings.logging)
        super().__init__(lambda: embedding_service(settings, RayMetrics()))


class Rerank(RerankerDeployment):
    """The reranker."""

    def __init__(self, settings: Settings) -> None:
        configure_logging(settings.logging)
        super().__init__(lambda: rerank_service(settings, RayMetrics()))
