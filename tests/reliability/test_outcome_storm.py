"""Concurrent outcomes while a search replica dies: the counters are exactly what was accepted."""

import asyncio

import pytest

from tests.bench.outcome_storm import differences, run_storm
from tests.running import REPLICA, RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.fault]

OUTCOMES, CLIENTS = 800, 8


def test_counters_equal_the_accepted_outcomes(service: RunningService) -> None:
    storm = asyncio.run(
        run_storm(
            service.url,
            "storm",
            outcomes=OUTCOMES,
            clients=CLIENTS,
            at_half=lambda: service.kill(f"{REPLICA}search"),
        )
    )
    assert storm.total == OUTCOMES
    assert storm.repeated > 0  # the replica really was away
    assert differences(service.url, "storm", storm) == []
