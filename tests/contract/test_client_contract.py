"""The client contract over real HTTP, against the real API on in-memory services."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from starlette.applications import Starlette

from rayapp.api.app import create_api
from tests.client_contract import Report, contract, play, seed
from tests.support.harness import Harness, local_settings
from tests.unit.fake_service import FakeService, serving


def as_the_first_client() -> Harness:
    compat = local_settings().compat.model_copy(update={"first_client": True})
    return Harness.ready(local_settings().model_copy(update={"compat": compat}))


@dataclass
class RealApi(FakeService):
    """The real application on a socket."""

    world: Harness = field(default_factory=as_the_first_client)

    def app(self) -> Starlette:
        return create_api(self.world.services)


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    """One play of all rows."""
    service = RealApi()

    def settle(_http: httpx.Client) -> None:
        """What maintenance does in the background."""
        asyncio.run(service.world.settle())

    with serving(service), httpx.Client(base_url=service.url, timeout=20) as http:
        yield play(http, contract("fakes"), seed(http, settle))


def test_every_listed_route_is_served(report: Report) -> None:
    assert report.failed == set(), "\n".join([str(report), *report.complaints])


def test_every_field_that_a_caller_reads_is_there(report: Report) -> None:
    print(report)
    assert report.complaints == [], "\n".join([str(report), *report.complaints])
    assert report.present == report.fields > 0
