"""What the gateways of embedding and reranking share: limits of a batch, and a breaker."""

from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from time import monotonic
from typing import Generic, TypeVar

from rayapp.core.batching import BackendTraits
from rayapp.core.breaker import Breaker, BreakerSnapshot, BreakerState
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Metrics
from rayapp.core.settings.model import EmbeddingSettings, RerankerSettings
from rayapp.inference.batch_queue import BatchCap

Backend = TypeVar("Backend")
Batched = TypeVar("Batched", EmbeddingSettings, RerankerSettings)


@dataclass(eq=False)
class ModelGateway(Generic[Backend, Batched]):
    """One model behind a breaker. One event loop owns it."""

    backend: Backend
    settings: Batched
    traits: BackendTraits
    _: KW_ONLY
    breaker: Breaker
    metrics: Metrics

    def __post_init__(self) -> None:
        self._cap = BatchCap(self.settings.batch.max_size, self.traits.max_tokens)

    async def breakers(self) -> list[BreakerSnapshot]:
        return [self._snapshot()]

    def _snapshot(self) -> BreakerSnapshot:
        return self.breaker.snapshot(monotonic())

    async def _reset(self, question: Awaitable[object]) -> list[str]:
        """Close the breaker, then ask the model once: its answer, or its error, is news."""
        tripped = self.breaker.reset()
        with suppress(RayappError):
            await question
        return [self.breaker.name] if tripped else []

    def _gauge_breaker(self) -> None:
        opened = self._snapshot().state is BreakerState.OPEN
        self.metrics.gauge("breaker_open", float(opened), dependency=self.breaker.name)
