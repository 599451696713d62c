"""What a replica opens when the index does not fit, without a cluster and without a server."""

from typing import Any

import pytest

from rayapp.container.services import Container
from rayapp.core.errors import SchemaMismatch
from rayapp.serve.deployments.process import NO_PLACE, Process
from rayapp.serve.startup import Startup
from tests.support.harness import Harness

ON: dict[str, Any] = {"encoder": {"enabled": True}}


class Opening(Process):
    """A process whose index has no place for the encoder's vectors, or is of another model."""

    def __init__(self, world: Harness, *, other_model: bool) -> None:
        self.settings, self.metrics, self.startup = world.settings, world.metrics, Startup()  # type: ignore[assignment]
        self._embedder, self._encoder, self._reranker = world.model, world.encoder, world.reranker
        self._clients = world.container.stores, world.index
        self._other_model = other_model

    async def _with_index(self, container: Container) -> Container:
        if self._other_model or container.schema.encoder:
            raise SchemaMismatch("It does not fit: run `rayapp job reindex`.")
        return container


async def test_an_index_without_its_place_is_served_without_the_encoder() -> None:
    world = await Harness.open(embedding=ON)
    container = await Opening(world, other_model=False)._container()
    assert container.encoding is None
    assert container.schema == world.schema.first
    assert NO_PLACE in (await container.health.diagnostics())["recommendations"]


async def test_an_index_of_another_model_is_served_by_nobody() -> None:
    world = await Harness.open(embedding=ON)
    with pytest.raises(SchemaMismatch):
        await Opening(world, other_model=True)._container()
