"""build(settings) -> serve.Application: the only file that wraps classes and binds them.

search (HTTP ingress)  --handle-->  embedding, reranker, where the models are not the callers' own
indexer, maintenance   --handle-->  embedding; both in one process where settings say so
search, indexer, maintenance  --actor--> vector engine (embedded profile)
"""

from typing import Any

from ray import serve
from ray.serve.config import AutoscalingConfig

from rayapp.core.settings.model import DeploymentSettings, Settings
from rayapp.serve.deployments.background import (
    BackgroundDeployment,
    Indexer,
    Maintenance,
    Role,
    Understanding,
)
from rayapp.serve.deployments.gateways import Embedding, Rerank
from rayapp.serve.deployments.search import SearchDeployment

# Serve's own default is 10 s; a replica that died should be noticed sooner.
HEALTH_PERIOD_S = 2.0


def build(settings: Settings) -> serve.Application:
    """The application of these settings; validated before anything starts."""
    options = settings.serve
    embedding = reranker = None
    # A replica for a model that its callers run themselves would hold 240 MB for nobody.
    if settings.embedding.backend != "static":
        embedding = _deployment(Embedding, "embedding", options.embedding).bind(settings)
    if settings.reranker.backend in ("http", "local"):
        reranker = _deployment(Rerank, "reranker", options.reranker).bind(settings)
    owners = [
        _deployment(BackgroundDeployment, name, scaling).bind(settings, embedding, roles)
        for name, scaling, roles in _background(settings)
    ]
    ingress = serve.ingress()(SearchDeployment)
    return _deployment(ingress, "search", options.search).bind(
        settings, embedding, reranker, owners
    )


def _background(settings: Settings) -> list[tuple[str, DeploymentSettings, list[type[Role]]]]:
    """Deployments of what runs by itself: apart on a cluster, in one process on a laptop."""
    indexer, maintenance = settings.serve.indexer, settings.serve.maintenance
    if settings.serve.background_together:
        return [("indexer", indexer, [Indexer, Maintenance, Understanding])]
    return [
        ("indexer", indexer, [Indexer]),
        ("maintenance", maintenance, [Maintenance, Understanding]),
    ]


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
