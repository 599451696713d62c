import pytest

from tests.support.harness import Harness


@pytest.fixture
async def service() -> Harness:
    return await Harness.open()
