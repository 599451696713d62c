from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.harness import Harness
from tests.unit.api.serving import client_of


@pytest.fixture
def world() -> Harness:
    return Harness.ready()


@pytest.fixture
async def api(world: Harness) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world.services) as client:
        yield client
