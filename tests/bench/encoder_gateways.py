"""The product around an encoder: both gateways as their replicas build them, and their callers."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rayapp.container.inference import open_embedding_backend, open_rerank_backend
from rayapp.core.batching import BackendTraits
from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import BatchSettings, EmbeddingSettings, RerankerSettings
from rayapp.inference.backends.model_thread import Precision
from rayapp.inference.embedding import EmbeddingService
from rayapp.inference.reranking import RerankService
from tests.bench.encoder_work import Work

PATIENCE_S = 60.0  # of the reranker, its longest; the product's own limits are for users
LONG_PATIENCE_S = 600.0  # of the embedder
BULK_TEXTS = 64  # of one call of a bulk load
BULK_CALLERS = 4
ONE_TEXT_CALLERS = 128  # two full batches: one is computed, one waits
SEARCH_DOCUMENTS = 30  # of one rerank: reranker.max_candidates
SEARCHES = 8  # at once
POLICY = BreakerPolicy(failures=5, open_s=1.0, successes=1)


class Product(ABC):
    """A gateway over the model in a folder.

    Attributes:
        module: the torch module it computes with.
        traits: what the gateway was told of its backend.
        ways: by name, how callers send their work; each gives the answers in order.
        spent: seconds in the tokenizer's and the model's thread.
    """

    def __init__(
        self,
        opened: tuple[Any, BackendTraits],
        part: str,
        serve: Callable[..., Any],
        settings: EmbeddingSettings | RerankerSettings,
        max_tokens: int | None,
    ) -> None:
        """`part`: the attribute of the backend that is its model. `max_tokens`: instead of what the
        memory allows."""
        backend, traits = opened
        if max_tokens is not None:
            traits = replace(traits, max_tokens=max_tokens)
        model: Any = getattr(backend, part)
        self.module = model.model.module
        self.prepare: Callable[[Sequence[Any]], Any] = model.prepare
        self.compute: Callable[[Any], Any] = model.compute
        self.on_gpu: bool = model.model.device != "cpu"
        self.traits = traits
        self.metrics = InMemoryMetrics()
        self.ways: dict[str, Callable[[Work], Awaitable[list[Any]]]] = {}
        self.spent: dict[str, float] = defaultdict(float)
        for step in ("prepare", "compute"):
            setattr(model, step, self._timed(step, getattr(model, step)))
        self.service = serve(
            backend,
            settings,
            traits,
            breaker=Breaker(type(self).__name__, POLICY),
            metrics=self.metrics,
        )

    @abstractmethod
    async def at_once(self, work: Work) -> list[Any]:
        """All texts in one call of one caller."""

    async def close(self) -> None:
        await self.service.close()

    def _timed(self, step: str, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def timed(given: Any) -> Any:
            begun = time.perf_counter()
            try:
                return call(given)
            finally:
                self.spent[step] += time.perf_counter() - begun

        return timed


class Embedding(Product):
    def __init__(
        self, folder: Path, size: int, precision: Precision, *, max_tokens: int | None = None
    ) -> None:
        settings = EmbeddingSettings(
            backend="local",
            model=str(folder),
            precision=precision,
            batch_timeout_s=LONG_PATIENCE_S,
            query_timeout_s=PATIENCE_S,
            batch=BatchSettings(max_size=size),
        )
        opened = open_embedding_backend(settings)
        super().__init__(opened, "encoder", EmbeddingService, settings, max_tokens)
        self.ways = {"bulk": self.bulk, "one text each": self.one_each}

    async def at_once(self, work: Work) -> list[Any]:
        return await self._callers(work.texts, len(work.texts), 1)

    async def bulk(self, work: Work) -> list[Any]:
        """A few callers with many texts: a bulk load, a reindex."""
        return await self._callers(work.texts, BULK_TEXTS, BULK_CALLERS)

    async def one_each(self, work: Work) -> list[Any]:
        """Many callers with one text: searches and single stores."""
        return await self._callers(work.texts, 1, ONE_TEXT_CALLERS)

    async def _callers(self, texts: Sequence[str], each: int, callers: int) -> list[Any]:
        async def call(part: Sequence[str]) -> list[Any]:
            return list(await self.service.embed(part, "passage", timeout_s=LONG_PATIENCE_S))

        return await _spread(call, _parts(texts, each), callers)


class Reranking(Product):
    def __init__(
        self, folder: Path, size: int, precision: Precision, *, max_tokens: int | None = None
    ) -> None:
        settings = RerankerSettings(
            backend="local",
            model=str(folder),
            precision=precision,
            timeout_s=PATIENCE_S,
            max_candidates=max(SEARCH_DOCUMENTS, min(size, 200)),
            batch=BatchSettings(max_size=size),
        )
        opened = open_rerank_backend(settings)
        super().__init__(opened, "model", RerankService, settings, max_tokens)
        self.ways = {"searches": self.searches}

    async def at_once(self, work: Work) -> list[Any]:
        return await self._callers(work, len(work.texts), 1)

    async def searches(self, work: Work) -> list[Any]:
        """Several searches at once, each with its candidates."""
        return await self._callers(work, SEARCH_DOCUMENTS, SEARCHES)

    async def _callers(self, work: Work, each: int, callers: int) -> list[Any]:
        async def call(part: Sequence[str]) -> list[Any]:
            return list(
                await self.service.rerank(work.query, part, timeout_s=LONG_PATIENCE_S) or []
            )

        return await _spread(call, _parts(work.texts, each), callers)


def _parts(texts: Sequence[str], each: int) -> list[Sequence[str]]:
    return [texts[at : at + each] for at in range(0, len(texts), each)]


async def _spread(
    call: Callable[[Sequence[str]], Awaitable[list[Any]]],
    parts: Sequence[Sequence[str]],
    callers: int,
) -> list[Any]:
    """Answers in order; each caller sends its next part when the last one is answered."""
    answers: list[list[Any]] = [[] for _ in parts]
    waiting = iter(enumerate(parts))

    async def caller() -> None:
        for place, part in waiting:
            answers[place] = await call(part)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(callers, len(parts))):
            group.create_task(caller())
    return [answer for one in answers for answer in one]
