"""The background owners stop what runs in their process, whatever fails before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rayapp.core.errors import StoreDown
from rayapp.serve.deployments.background import IndexerDeployment, MaintenanceDeployment
from rayapp.serve.deployments.loops import Loops


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


async def let_go(kind: Any, seen: Recorded) -> None:
    owner = SimpleNamespace(_loops=Loops(), _process=seen, _service=seen)
    owner._release = lambda: kind._release(owner)
    await kind.__del__(owner)  # as Serve does


async def test_an_indexer_whose_model_does_not_close_stops() -> None:
    seen = Recorded(RuntimeError("broken"))
    with pytest.raises(RuntimeError):
        await let_go(IndexerDeployment, seen)
    assert seen.happened == ["close", "stop"]


async def test_a_maintenance_owner_that_keeps_its_lease_stops() -> None:
    away, broken = Recorded(StoreDown("away")), Recorded(RuntimeError("broken"))
    await let_go(MaintenanceDeployment, away)
    with pytest.raises(RuntimeError):
        await let_go(MaintenanceDeployment, broken)
    assert away.happened == broken.happened == ["release", "stop"]
