"""Settings → backend, and what the gateway must know about it."""

from __future__ import annotations

from pathlib import Path

from rayapp.core.batching import BackendTraits, token_budget
from rayapp.core.settings.model import BatchSettings, EmbeddingSettings, RerankerSettings
from rayapp.inference.backends.gpu import free_gpu_bytes
from rayapp.inference.backends.http_embedding import HttpEmbeddingBackend
from rayapp.inference.backends.http_rerank import HttpRerankBackend
from rayapp.inference.backends.local_embedding import LocalEmbeddingBackend, open_encoder
from rayapp.inference.backends.local_rerank import LocalRerankBackend
from rayapp.inference.backends.static_embedding import StaticBackend
from rayapp.inference.ports import EmbeddingBackend, RerankBackend
from rayapp.search.feature_reranker import FeaturesRerankBackend

# Calls in flight at a model server: one is computed, one is read, two wait at the server so that
# it never idles.
HTTP_CONCURRENCY = 4
# The same at a model on a GPU: one is computed, one is turned into tokens. On a CPU both steps
# need the same cores, so one call at a time, and the next batch waits for late company.
GPU_CONCURRENCY = 2
# Token budget of a model that has none: nothing is padded, so a batch costs what its texts cost.
UNBOUNDED_TOKENS = 1 << 30


def open_embedding_backend(
    settings: EmbeddingSettings,
) -> tuple[EmbeddingBackend, BackendTraits]:
    """Loads a static or local model here and now; an HTTP server may be away. ConfigError."""
    if settings.backend == "static":
        # 0.02 ms per text alone as in a batch: waiting for company would cost 50 times that.
        traits = BackendTraits(max_tokens=settings.batch.max_tokens, gathers=False)
        return StaticBackend(settings.model), traits
    if settings.backend == "http":
        backend = HttpEmbeddingBackend(
            settings.url,
            api=settings.api,
            model=settings.model,
            api_key=settings.api_key,
            dims=settings.dims,
            timeout_s=settings.batch_timeout_s,
        )
        return backend, _http_traits(settings.batch)
    encoder = open_encoder(Path(settings.model), settings.precision)
    return LocalEmbeddingBackend(encoder), _local_traits(settings.batch, encoder.text_tokens)


def open_rerank_backend(
    settings: RerankerSettings,
) -> tuple[RerankBackend | None, BackendTraits]:
    """The same for the reranker; the backend is None when none is configured."""
    if settings.backend == "none":
        return None, BackendTraits(max_tokens=settings.batch.max_tokens)
    if settings.backend == "features":
        traits = BackendTraits(max_tokens=UNBOUNDED_TOKENS, gathers=False)
        return FeaturesRerankBackend(settings.model), traits
    if settings.backend == "http":
        backend = HttpRerankBackend(
            settings.url,
            api=settings.api,
            model=settings.model,
            api_key=settings.api_key,
            timeout_s=settings.timeout_s,
        )
        return backend, _http_traits(settings.batch)
    local = LocalRerankBackend(Path(settings.model), settings.precision)
    return local, _local_traits(settings.batch, local.text_tokens)


def _http_traits(settings: BatchSettings) -> BackendTraits:
    return BackendTraits(max_tokens=settings.max_tokens, concurrency=HTTP_CONCURRENCY)


def _local_traits(settings: BatchSettings, text_tokens: int) -> BackendTraits:
    """Asked after loading, so that the weights are no longer part of the free memory."""
    free = free_gpu_bytes()
    budget = token_budget(
        free, cpu_tokens=settings.max_tokens, tokens_per_free_gib=settings.tokens_per_free_gib
    )
    concurrency = 1 if free is None else GPU_CONCURRENCY
    return BackendTraits(max_tokens=budget, concurrency=concurrency, text_tokens=text_tokens)
