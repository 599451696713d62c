"""The model sides of embedding and reranking, apart from the rest of the composition root.

Their replicas need nothing else: without its imports they start in half the time.
"""

from __future__ import annotations

from rayapp.container.backends import open_embedding_backend, open_rerank_backend
from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.clock import SystemClock
from rayapp.core.ports import Metrics
from rayapp.core.settings.model import Settings
from rayapp.inference.embedding import EmbeddingService
from rayapp.inference.reranking import RerankService


def breaker(name: str, settings: Settings) -> Breaker:
    """A breaker with the limits of its dependency (the embedder has its own)."""
    rules = settings.breaker
    embedder = name == "embedding"
    return Breaker(
        name,
        BreakerPolicy(
            failures=rules.embedder_failures if embedder else rules.failures,
            open_s=rules.embedder_open_s if embedder else rules.open_s,
            successes=rules.successes,
        ),
    )


def embedding_service(settings: Settings, metrics: Metrics) -> EmbeddingService:
    """The gateway's model side: batch, breaker, backend. Loads a local model."""
    backend, traits = open_embedding_backend(settings.embedding)
    return EmbeddingService(
        backend,
        settings.embedding,
        traits,
        breaker=breaker("embedding", settings),
        metrics=metrics,
        clock=SystemClock(),
    )


def rerank_service(settings: Settings, metrics: Metrics) -> RerankService:
    """The reranker's model side; answers None for everything when none is configured."""
    reranker = settings.reranker
    backend, traits = open_rerank_backend(reranker)
    if reranker.backend == "features":
        # Its candidates are compared with each other, so all of them go in one call.
        whole = reranker.batch.model_copy(update={"max_size": reranker.max_candidates})
        reranker = reranker.model_copy(update={"batch": whole})
    return RerankService(
        backend,
        reranker,
        traits,
        breaker=breaker("reranker", settings),
        metrics=metrics,
        clock=SystemClock(),
    )
