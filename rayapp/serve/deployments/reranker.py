"""Ray replica of the reranker: own deployment, because models, GPUs and batches live here.

Undecorated: `app.py` wraps and binds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rayapp.core.breaker import BreakerSnapshot
from rayapp.core.errors import DependencyDown
from rayapp.inference.reranking import RerankService


class RerankerDeployment:
    """A shim over `RerankService`."""

    def __init__(self, build: Callable[[], RerankService]) -> None:
        """`build` runs in the replica, because a loaded model cannot be sent to it."""
        self._service = build()
        self._warm = False

    async def rerank(
        self, query: str, documents: list[str], timeout_s: float
    ) -> list[float] | None:
        return await self._service.rerank(query, documents, timeout_s=timeout_s)

    async def health(self) -> dict[str, Any]:
        return await self._service.health()

    async def breakers(self) -> list[BreakerSnapshot]:
        return await self._service.breakers()

    async def reset_breakers(self) -> list[str]:
        return await self._service.reset_breakers()

    async def check_health(self) -> None:
        """Warms the model up before the replica counts as ready; depends on nothing else later."""
        if self._warm:
            return
        self._warm = True
        try:
            await self._service.warm_up()
        except DependencyDown:
            # The replica serves anyway: `health` shows it and searches keep their ranked order.
            return
