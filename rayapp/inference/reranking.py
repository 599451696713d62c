"""Reranking gateway: caps → batch → breaker → backend → sigmoid."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import asdict
from time import monotonic
from typing import Any

from rayapp.core.batching import estimate_tokens
from rayapp.core.breaker import BreakerSnapshot, BreakerState
from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, InvalidInput, Overloaded, RayappError, RerankerDown
from rayapp.core.settings.model import RerankerSettings
from rayapp.inference.batch_queue import Splitter
from rayapp.inference.gateway import ModelGateway
from rayapp.inference.ports import InlineRerankBackend, RerankBackend

# Searches that may wait for the model before the next one keeps its ranked order at once.
WAITING_SEARCHES = 32
# Share of a caller's time after which a call no longer begins: its caller would be gone before its
# scores are there, and everybody behind it late as well. Our choice.
BEGIN_SHARE = 0.5


def sigmoid(logit: float) -> float:
    """Probability of a raw score, 0..1, without overflow for any finite logit."""
    if logit >= 0:
        return 1.0 / (1.0 + math.exp(-logit))
    power = math.exp(logit)
    return power / (1.0 + power)


class _LongTexts(Exception):
    """They are not scored in the caller's turn of the event loop."""


class RerankService(ModelGateway[RerankBackend | None, RerankerSettings]):
    """Implements `Reranker`. With `backend` None every call answers None.

    Scores of a backend are taken as logits. A server that sends probabilities keeps its order
    under the sigmoid, only the spread shrinks: to .50-.73.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._inline = self.backend if isinstance(self.backend, InlineRerankBackend) else None
        self._slots = asyncio.Semaphore(self.traits.concurrency)
        self._waiting = 0
        self._tasks: set[asyncio.Task[list[float]]] = set()

    async def rerank(
        self, query: str, documents: Sequence[str], *, timeout_s: float
    ) -> list[float] | None:
        """Probabilities of the first `max_candidates` documents in order; None without a backend.

        Query and documents are cut to `max_chars`.

        Raises:
            RerankerDown: backend away, breaker open, unusable scores, or no answer in time.
            DeadlineExceeded: `timeout_s` is not above 0. Overloaded: too many calls wait.
        """
        if self.backend is None:
            return None
        if timeout_s <= 0:
            raise DeadlineExceeded("No time is left for the reranker; retry later.")
        if self._waiting >= WAITING_SEARCHES:
            raise Overloaded(f"{self._waiting} searches wait for the reranker; retry later.")
        cut = [text[: self.settings.max_chars] for text in documents]
        cut = cut[: self.settings.max_candidates]
        if not cut:
            return []
        query = query[: self.settings.max_chars]
        if self._inline is not None:
            scores = await self._at_once(self._inline, query, cut)
            if scores is not None:
                return scores
        self._waiting += 1
        begin = Deadline(BEGIN_SHARE * timeout_s, monotonic)
        task = asyncio.get_running_loop().create_task(self._score(self.backend, query, cut, begin))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        # A caller who gives up leaves a call that began running to its own limit: only so does the
        # breaker learn of a backend that hangs longer than its callers wait.
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
        if not done:
            raise RerankerDown(
                f"No rerank scores within {timeout_s:.2f} s; retry later.", code="reranker_timeout"
            )
        return task.result()

    async def warm_up(self) -> None:
        """One call through the model, so that the first search does not pay for it."""
        if self.backend is not None:
            await self.rerank("warm up", ["warm up"], timeout_s=self.settings.timeout_s)

    async def breakers(self) -> list[BreakerSnapshot]:
        """Empty without a backend."""
        return await super().breakers() if self.backend else []

    async def reset_breakers(self) -> list[str]:
        return await self._reset(self.warm_up())

    async def health(self) -> dict[str, Any]:
        snapshot = self._snapshot()
        return {
            "healthy": snapshot.state is not BreakerState.OPEN,
            "backend": self.backend.name if self.backend else "none",
            "breaker": asdict(snapshot),
            "waiting": self._waiting,
        }

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.backend is not None:
            await self.backend.close()

    def _finished(self, task: asyncio.Task[list[float]]) -> None:
        self._waiting -= 1
        self._tasks.discard(task)
        if not task.cancelled():
            # Read here, because the caller may be gone and an unread error would be logged.
            task.exception()
        self._gauge_breaker()

    async def _at_once(
        self, backend: InlineRerankBackend, query: str, documents: list[str]
    ) -> list[float] | None:
        """Nothing is waited for, so nothing is late; None: the texts take too long for that."""

        async def score() -> list[float]:
            logits = backend.at_once(query, documents)
            if logits is None:
                raise _LongTexts  # tells the breaker nothing
            return _checked(logits, len(documents))

        start = monotonic()
        try:
            logits = await self.breaker.call(score, monotonic, RerankerDown)
        except _LongTexts:
            return None
        finally:
            self._gauge_breaker()
        self.metrics.observe("rerank_latency_s", monotonic() - start)
        return [sigmoid(logit) for logit in logits]

    async def _score(
        self, backend: RerankBackend, query: str, documents: list[str], begin: Deadline
    ) -> list[float]:
        """The batches run one after another inside `reranker.timeout_s`.

        Raises RerankerDown where they could not begin in time, which says nothing of the backend.
        """
        async with self._slots:
            if begin.expired:
                raise RerankerDown(
                    "Too many searches wait for the reranker; retry later.", code="reranker_timeout"
                )
            deadline = Deadline(self.settings.timeout_s, monotonic)
            start = monotonic()
            scores = await self._score_batches(backend, query, documents, deadline)
            self.metrics.observe("rerank_latency_s", monotonic() - start)
            return scores

    async def _score_batches(
        self, backend: RerankBackend, query: str, documents: list[str], deadline: Deadline
    ) -> list[float]:
        joined = [query + document for document in documents]
        pairs = list(zip(documents, estimate_tokens(joined, self.traits.text_tokens), strict=True))

        async def call(batch: Sequence[tuple[str, int]]) -> list[float]:
            return await self._call(backend, query, [document for document, _ in batch], deadline)

        splitter: Splitter[tuple[str, int], float] = Splitter(
            call=call,
            tokens=lambda pair: pair[1],
            cap=self._cap,
            metrics=self.metrics,
            oom_metric="rerank_oom",
        )
        scores = [0.0] * len(pairs)
        for positions in self._cap.plan([count for _, count in pairs]):
            logits = await splitter.run([pairs[position] for position in positions])
            for position, logit in zip(positions, logits, strict=True):
                if isinstance(logit, InvalidInput):
                    # Our own request was refused: for the search this is a reranker that is away.
                    raise RerankerDown(f"The reranker refused a document: {logit.message}")
                if isinstance(logit, RayappError):
                    raise logit
                scores[position] = sigmoid(logit)
        return scores

    async def _call(
        self, backend: RerankBackend, query: str, documents: list[str], deadline: Deadline
    ) -> list[float]:
        async def score() -> list[float]:
            try:
                async with asyncio.timeout(deadline.remaining()):
                    logits = await backend.logits(query, documents)
            except TimeoutError:
                raise RerankerDown(
                    "The reranker gave no answer in time; retry later.", code="reranker_timeout"
                ) from None
            return _checked(logits, len(documents))

        return await self.breaker.call(score, monotonic, RerankerDown)


def _checked(logits: list[float], documents: int) -> list[float]:
    if len(logits) != documents or not all(map(math.isfinite, logits)):
        raise RerankerDown("The reranker gave missing, NaN or infinite scores; check reranker.api.")
    return logits
