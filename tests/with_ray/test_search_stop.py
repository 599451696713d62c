"""A search replica that stops leaves no connection of a model endpoint open and no receipt
unwritten."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI

from rayapp.serve.deployments.search import SearchDeployment


@dataclass
class Recorded:
    """Stands for the process and for the calls of a model."""

    happened: list[str] = field(default_factory=list)

    def start(self, when_open: Any) -> None:
        self.happened.append("start")

    def stop(self) -> None:
        self.happened.append("stop")

    async def close(self) -> None:
        self.happened.append("close")

    async def flush(self) -> None:
        self.happened.append("flush")


async def course(*, served: bool) -> list[str]:
    seen = Recorded()
    replica: Any = SearchDeployment.__new__(SearchDeployment)
    replica._process = seen
    replica._services = replica._container = None
    async with replica._lifespan(FastAPI()):
        if served:
            replica._services = SimpleNamespace(models=seen, completions=seen)
            replica._container = seen
    return seen.happened


async def test_the_endpoint_is_let_go_after_the_background_work() -> None:
    assert await course(served=True) == ["start", "stop", "close", "close", "flush"]


async def test_a_replica_that_never_served_stops_too() -> None:
    assert await course(served=False) == ["start", "stop"]
