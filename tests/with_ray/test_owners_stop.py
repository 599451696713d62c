"""The background owners stop what runs in their process, whatever fails before."""

from types import SimpleNamespace
from typing import Any

import pytest

from rayapp.core.errors import StoreDown
from rayapp.serve.deployments.background import BackgroundDeployment, Indexer, Maintenance
from tests.support.harness import local_settings


class Recorded:
    """Stands for the process, and for a service that fails when it is let go."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.happened: list[str] = []

    def stop(self) -> None:
        self.happened.append("stop")

    async def close(self) -> None:
        self.happened.append("close")
        raise self.error

    async def release(self) -> None:
        self.happened.append("release")
        raise self.error


async def let_go(seen: Recorded, *kinds: Any) -> None:
    roles = [kind(local_settings()) for kind in kinds]
    for role in roles:
        role._service = seen
    replica: Any = SimpleNamespace(_process=seen, _roles=roles)
    await BackgroundDeployment.__del__(replica)  # as Serve does


async def test_an_indexer_whose_model_does_not_close_stops() -> None:
    seen = Recorded(RuntimeError("broken"))
    with pytest.raises(RuntimeError):
        await let_go(seen, Indexer)
    assert seen.happened == ["close", "stop"]


async def test_a_maintenance_owner_that_keeps_its_lease_stops() -> None:
    away, broken = Recorded(StoreDown("away")), Recorded(RuntimeError("broken"))
    await let_go(away, Maintenance)
    with pytest.raises(RuntimeError):
        await let_go(broken, Maintenance)
    assert away.happened == broken.happened == ["release", "stop"]


async def test_of_two_in_one_process_each_ends_whatever_befalls_the_other() -> None:
    seen = Recorded(RuntimeError("broken"))
    with pytest.raises(RuntimeError):
        await let_go(seen, Indexer, Maintenance)
    assert seen.happened == ["close", "release", "stop"]
