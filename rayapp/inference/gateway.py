"""What the gateways of embedding and reranking share: limits of a batch, and a breaker."""

from collections.abc import Awaitable
from contextlib import suppress

from rayapp.core.batching import BackendTraits
from rayapp.core.breaker import Breaker, BreakerSnapshot, BreakerState
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Clock, Metrics
from rayapp.core.settings.model import BatchSettings
from rayapp.inference.batch_queue import BatchCap


class ModelGateway:
    """One model behind a breaker. One event loop owns it."""

    def __init__(
        self,
        batch: BatchSettings,
        traits: BackendTraits,
        *,
        breaker: Breaker,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._text_tokens = traits.text_tokens
        self._breaker = breaker
        self._metrics = metrics
        self._clock = clock
        self._cap = BatchCap(batch.max_size, traits.max_tokens)

    async def breakers(self) -> list[BreakerSnapshot]:
        return [self._snapshot()]

    def _snapshot(self) -> BreakerSnapshot:
        return self._breaker.snapshot(self._clock.monotonic())

    async def _reset(self, question: Awaitable[object]) -> list[str]:
        """Close the breaker, then ask the model once: its answer, or its error, is news."""
        tripped = self._breaker.reset()
        with suppress(RayappError):
            await question
        return [self._breaker.name] if tripped else []

    def _gauge_breaker(self) -> None:
        opened = self._snapshot().state is BreakerState.OPEN
        self._metrics.gauge("breaker_open", float(opened), dependency=self._breaker.name)
