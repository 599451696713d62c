"""The client contract against the running service: real mongod, real engine, real Ray."""

import httpx
import pytest

from tests.client_contract import USER, contract, known_concept, play, seed
from tests.running import RunningService, until

pytestmark = [pytest.mark.ray, pytest.mark.engine]


def test_every_route_is_served_and_every_field_is_there(service: RunningService) -> None:
    def settle(http: httpx.Client) -> None:
        """Wait until the index, the graphs and the outcomes have what was stored."""
        headers = {"X-User-Id": USER}

        def known() -> bool:
            rollups = http.get("/api/memory/kg/action-rollups", headers=headers).json()["rollups"]
            edges = http.get("/api/memory/graph", headers=headers).json()["edges"]
            return bool(rollups and edges and known_concept(http))

        service.indexed()
        until(known)

    with httpx.Client(base_url=service.url, timeout=30) as http:
        names = seed(http, settle)
        report = play(http, contract("stack"), names)
    print(report)
    assert report.failed == set(), "\n".join([str(report), *report.complaints])
    assert report.complaints == [], "\n".join([str(report), *report.complaints])
    assert report.present == report.fields > 0
