"""build(settings) -> serve.Application: the only file that wraps classes and binds them.

search (HTTP ingress)  --handle-->  embedding, reranker, where the models are not the callers' own
indexer, maintenance   --handle-->  embedding; both in one process where settings say so
search, indexer, maintenance  --actor--> vector engine (embedded profile)
"""

from typing import Any

from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, BackpressureConfig

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
from rayapp.serve.scaling import replicas_for_work

# Serve's own default is 10 s; a replica that died should be noticed sooner.
HEALTH_PERIOD_S = 2.0
# When Serve refuses by itself, it does so as we do.
BUSY = BackpressureConfig(status_code=429, retry_after_s=1)


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
    by_work = AutoscalingPolicy(policy_function=replicas_for_work)  # type: ignore[no-untyped-call]
    return _deployment(ingress, "search", options.search, policy=by_work).bind(
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


def _deployment(
    cls: type[Any],
    name: str,
    options: DeploymentSettings,
    *,
    policy: AutoscalingPolicy | None = None,
) -> serve.Deployment:
    """Options from settings; a GPU in them is what places the replica on a GPU node.

    `policy`: how many replicas there should be; None: by the requests that Serve counts.
    """
    scaling: dict[str, Any] = {"num_replicas": options.replicas}
    if options.max_replicas > options.replicas:
        scaling = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=options.replicas,
                max_replicas=options.max_replicas,
                target_ongoing_requests=options.target_requests,
                upscale_delay_s=options.upscale_delay_s,
                downscale_delay_s=options.downscale_delay_s,
                **({"policy": policy} if policy is not None else {}),
            )
        }
    if options.max_per_node:
        scaling["max_replicas_per_node"] = options.max_per_node
    wrap = serve.deployment(
        name=name,
        ray_actor_options={"num_cpus": options.num_cpus, "num_gpus": options.num_gpus},
        max_ongoing_requests=options.max_ongoing_requests,
        max_queued_requests=options.max_queued_requests,
        graceful_shutdown_timeout_s=options.graceful_shutdown_s,
        graceful_shutdown_wait_loop_s=0.05,
        max_surge_percent=options.surge_percent,
        backpressure_config=BUSY,
        health_check_period_s=HEALTH_PERIOD_S,
        # Ours has a line per request with more in it; the second one is a hundredth of a search.
        logging_config={"enable_access_log": False},
        **scaling,
    )
    deployment: serve.Deployment = wrap(cls)
    return deployment
