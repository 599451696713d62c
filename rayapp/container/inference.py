"""The model sides of embedding and reranking: settings to backends."""

from pathlib import Path

from rayapp.core.batching import BackendTraits, token_budget
from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.runtime import Metrics
from rayapp.core.settings.model import BatchSettings, EmbeddingSettings, RerankerSettings, Settings
from rayapp.inference.backends.encoder_model import EncoderBackend, EncoderModel
from rayapp.inference.backends.http import HttpEmbeddingBackend, HttpRerankBackend
from rayapp.inference.backends.local import LocalEmbeddingBackend, LocalRerankBackend, open_encoder
from rayapp.inference.backends.model_thread import free_gpu_bytes
from rayapp.inference.backends.static_model import StaticBackend
from rayapp.inference.embedding import EmbeddingService
from rayapp.inference.ports import EmbeddingBackend, RerankBackend
from rayapp.inference.reranking import RerankService
from rayapp.search.feature_reranker import FeaturesRerankBackend

# Calls in flight at a model server: one is computed, one is read, two wait at the server so that
# it never idles.
HTTP_CONCURRENCY = 4
# Without a text for so long, the encoder of a process that answers no questions is let go.
ENCODER_IDLE_S = 60.0
# The same at a model on a GPU: one is computed, one is turned into tokens. On a CPU both steps
# need the same cores, so one call at a time, and the next batch waits for late company.
GPU_CONCURRENCY = 2
# Token budget of a model that has none: nothing is padded, so a batch costs what its texts cost.
UNBOUNDED_TOKENS = 1 << 30


def open_embedding_backend(settings: EmbeddingSettings) -> tuple[EmbeddingBackend, BackendTraits]:
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


def open_rerank_backend(settings: RerankerSettings) -> tuple[RerankBackend | None, BackendTraits]:
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


def breaker(name: str, settings: Settings) -> Breaker:
    """A breaker with the limits of its dependency (the embedder has its own)."""
    rules = settings.breaker
    embedder = name in ("embedding", "encoder")
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
    own = breaker("embedding", settings)
    return EmbeddingService(backend, settings.embedding, traits, breaker=own, metrics=metrics)


def encoder_service(settings: Settings, metrics: Metrics, *, kept: bool) -> EmbeddingService:
    """The gateway's model side of the encoder. ConfigError.

    `kept`: it is loaded here and now and stays, so that no question waits for it. Otherwise it is
    loaded when there is a text, and its memory is given back when for a while there was none.
    """
    encoder = settings.embedding.encoder
    model = EncoderModel(encoder.model)
    if kept:
        model.load()
    changes = {
        "backend": "local",
        "model": model.name,
        "dims": model.dims,
        "query_prefix": model.prefixes["query"],
        "passage_prefix": model.prefixes["passage"],
        "max_text_chars": encoder.max_text_chars,
        "batch": encoder.batch,
    }
    # Texts are computed one by one: nothing waits for company.
    traits = BackendTraits(
        max_tokens=encoder.batch.max_tokens, text_tokens=model.text_tokens, gathers=False
    )
    return EmbeddingService(
        EncoderBackend(model, idle_s=None if kept else ENCODER_IDLE_S),
        settings.embedding.model_copy(update=changes),
        traits,
        breaker=breaker("encoder", settings),
        metrics=metrics,
    )


def rerank_service(settings: Settings, metrics: Metrics) -> RerankService:
    """The reranker's model side; answers None for everything when none is configured."""
    reranker = settings.reranker
    backend, traits = open_rerank_backend(reranker)
    if reranker.backend == "features":
        # Its candidates are compared with each other, so all of them go in one call.
        whole = reranker.batch.model_copy(update={"max_size": reranker.max_candidates})
        reranker = reranker.model_copy(update={"batch": whole})
    own = breaker("reranker", settings)
    return RerankService(backend, reranker, traits, breaker=own, metrics=metrics)
