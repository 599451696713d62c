import pytest

from tests.unit.learning.outcome_world import World


@pytest.fixture
async def world() -> World:
    """With memories a, b and c of dana."""
    made = World()
    for name in "abc":
        await made.memory(name)
    return made
