"""The embedding and reranker deployments as Serve runs them, apart from `app.py`.

A replica imports the module of its class: here that is nothing but the models' side.
"""

from __future__ import annotations

from rayapp.container.inference import embedding_service, rerank_service
from rayapp.core.logging import configure_logging
from rayapp.core.settings.model import Settings
from rayapp.serve.deployments.embedding import EmbeddingDeployment
from rayapp.serve.deployments.reranker import RerankerDeployment
from rayapp.serve.metrics import RayMetrics


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
