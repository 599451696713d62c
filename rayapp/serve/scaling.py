"""How many replicas the work asks for."""

from typing import Any

from ray.serve.config import AutoscalingContext

# What the replicas of the ingress report: requests in work.
WORK = "work"


def replicas_for_work(context: AutoscalingContext) -> tuple[float, dict[str, Any]]:
    """A policy of Ray Serve, which applies bounds and delays to what it returns.

    By Serve's own count an open event stream is a request, and sixteen idle readers kept eight
    replicas.
    """
    reported = (context.aggregated_metrics or {}).get(WORK) or {}
    if not reported:  # as from replicas that have just started
        return context.target_num_replicas, {}
    config: Any = context.config
    return sum(reported.values()) / config.target_ongoing_requests, {}
