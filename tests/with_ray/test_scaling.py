"""How many replicas there are to be, as Serve hears it."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from ray.serve.config import AutoscalingPolicy

from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import IngressSettings
from rayapp.serve.app import _deployment
from rayapp.serve.deployments.search import SearchDeployment
from rayapp.serve.scaling import WORK, replicas_for_work
from rayapp.serve.startup import Startup


def asked(work: dict[str, float] | None, target: float = 20.0) -> float:
    """Of two replicas, which report this."""
    context: Any = SimpleNamespace(
        aggregated_metrics=None if work is None else {WORK: work},
        target_num_replicas=2,
        config=SimpleNamespace(target_ongoing_requests=target),
    )
    found, state = replicas_for_work(context)
    assert state == {}
    return found


@pytest.mark.parametrize(
    ("work", "replicas"),
    [
        (None, 2),
        ({}, 2),
        ({"a": 0.0, "b": 0.0}, 0),
        ({"a": 15.0, "b": 5.0}, 1),
        ({"a": 60.0, "b": 60.0}, 6),
    ],
)
def test_replicas_follow_the_work(work: dict[str, float] | None, replicas: float) -> None:
    assert asked(work) == replicas


def test_serve_is_told_what_the_settings_say() -> None:
    options = IngressSettings(replicas=2, max_replicas=8, surge_percent=100, max_per_node=1)
    policy = AutoscalingPolicy(policy_function=replicas_for_work)
    made = _deployment(SearchDeployment, "search", options, policy=policy)
    config = made._deployment_config
    scaling = config.autoscaling_config
    assert scaling is not None
    assert (scaling.min_replicas, scaling.max_replicas) == (2, 8)
    assert scaling.target_ongoing_requests == 20.0
    assert (scaling.upscale_delay_s, scaling.downscale_delay_s) == (15.0, 600.0)
    assert str(scaling.policy.policy_function).endswith("scaling.replicas_for_work")
    assert config.max_surge_percent == 100
    assert config.backpressure_config.status_code == 429
    assert made._replica_config.max_replicas_per_node == 1


def replica() -> Any:
    made: Any = SearchDeployment.__new__(SearchDeployment)
    made._process = SimpleNamespace(metrics=InMemoryMetrics(), startup=Startup())
    made._open, made._waited = asyncio.Event(), False
    return made


def test_an_open_event_stream_is_no_work() -> None:
    made = replica()
    assert made.record_autoscaling_stats() == {WORK: 0.0}
    made._process.metrics.gauge("http_in_flight", 19.0)
    made._process.metrics.gauge("event_streams", 16.0)
    assert made.record_autoscaling_stats() == {WORK: 3.0}
    made._process.metrics.gauge("http_in_flight", 0.0)  # the streams came after it was counted
    assert made.record_autoscaling_stats() == {WORK: 0.0}


async def test_a_replica_counts_as_ready_when_it_is_open() -> None:
    made = replica()
    checked = asyncio.create_task(made.check_health())
    await asyncio.sleep(0.05)
    assert not checked.done()
    made._open.set()
    await asyncio.wait_for(checked, 5)


async def test_one_that_is_only_slow_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayapp.serve.deployments.search.OPEN_S", 0.01)
    made = replica()
    checked = asyncio.create_task(made.check_health())
    await asyncio.sleep(0.1)
    assert not checked.done()
    made._open.set()
    await asyncio.wait_for(checked, 5)


async def test_one_that_cannot_open_says_why_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayapp.serve.deployments.search.OPEN_S", 0.05)
    made = replica()
    made._process.startup.problems[:] = ["MongoDB does not answer."]
    await made.check_health()
    began = time.monotonic()
    await made.check_health()  # later ones do not wait
    assert time.monotonic() - began < 0.05
