import pytest

from tests.unit.index.reindex.world import World


@pytest.fixture
async def world() -> World:
    return await World.open()
