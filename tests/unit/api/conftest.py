from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.fake_services import World, fake_world
from tests.unit.api.serving import client_of


@pytest.fixture
def world() -> World:
    return fake_world()


@pytest.fixture
async def api(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world.services) as client:
        yield client
