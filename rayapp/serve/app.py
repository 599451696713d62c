"""build(settings) -> serve.Application: the only file that wraps classes and binds them.

search (HTTP ingress)  --handle-->  embedding, reranker
indexer, maintenance   --handle-->  embedding
search, indexer, maintenance  --actor--> vector engine (embedded profile)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray import serve
from ray.serve.config import AutoscalingConfig
from ray.serve.handle import DeploymentHandle

from rayapp.core.settings.model import DeploymentSettings, Settings
from rayapp.serve.deployments.background import IndexerDeployment, MaintenanceDeployment
from rayapp.serve.deployments.gateways import Embedding, Rerank
from rayapp.serve.deployments.search import SearchDeployment

# Serve's own default is 10 s; a replica that died should be noticed sooner.
HEALTH_PERIOD_S = 2.0


class Search(SearchDeployment):
    """The ingress. The owners are bound here so that one application holds all of them."""

    def __init__(
        self,
        settings: Settings,
        embedding: DeploymentHandle[Any],
        reranker: DeploymentHandle[Any],
        owners: Sequence[DeploymentHandle[Any]],
    ) -> None:
        super().__init__(settings, embedding, reranker)
        self._owners = owners


def build(settings: Settings) -> serve.Application:
    """The application of these settings; validated before anything starts."""
    serve_settings = settings.serve
    embedding = _deployment(Embedding, "embedding", serve_settings.embedding).bind(settings)
    reranker = _deployment(Rerank, "reranker", serve_settings.reranker).bind(settings)
    indexer = _deployment(IndexerDeployment, "indexer", serve_settings.indexer).bind(
        settings, embedding
    )
    maintenance = _deployment(
        MaintenanceDeployment, "maintenance", serve_settings.maintenance
    ).bind(settings, embedding)
    ingress = serve.ingress()(Search)
    return _deployment(ingress, "search", serve_settings.search).bind(
        settings, embedding, reranker, [indexer, maintenance]
    )


def _deployment(cls: type[Any], name: str, options: DeploymentSettings) -> serve.Deployment:
    """Options from settings; a GPU in them is what places the replica on a GPU node."""
    scaling: dict[str, Any] = {"num_replicas": options.replicas}
    if options.max_replicas > options.replicas:
        scaling = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=options.replicas, max_replicas=options.max_replicas
            )
        }
    wrap = serve.deployment(
        name=name,
        ray_actor_options={"num_cpus": options.num_cpus, "num_gpus": options.num_gpus},
        max_ongoing_requests=options.max_ongoing_requests,
        max_queued_requests=options.max_queued_requests,
        graceful_shutdown_timeout_s=options.graceful_shutdown_s,
        graceful_shutdown_wait_loop_s=0.05,
        health_check_period_s=HEALTH_PERIOD_S,
        # Ours has a line per request with more in it; the second one is a hundredth of a search.
        logging_config={"enable_access_log": False},
        **scaling,
    )
    deployment: serve.Deployment = wrap(cls)
    return deployment
