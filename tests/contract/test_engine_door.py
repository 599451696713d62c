"""The local door of the engine's actor, on a real actor."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
import ray

from rayapp.adapters.qdrant.edge import QdrantEdgeIndex
from rayapp.adapters.serve.engine_door import SOCKET_NAME
from rayapp.adapters.serve.vector_actor import (
    RayTransport,
    engine_folder,
    engine_transport,
    get_or_create_vector_actor,
)
from rayapp.domain.scope import ItemFilter, ReadScope
from rayapp.errors import IndexDown
from rayapp.settings import DataSettings, QdrantSettings, Settings
from rayapp.testing.index_points import SCHEMA, dense_arm, index_point, sparse_arm
from rayapp.testing.vector_index_cases import ANN

pytestmark = [pytest.mark.ray, pytest.mark.engine]


@pytest.fixture(scope="module")
def ray_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    owned = not ray.is_initialized()
    if owned:
        ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    folder = tmp_path_factory.mktemp("door")
    yield Settings(
        data=DataSettings(dir=folder), qdrant=QdrantSettings(timeout_s=20, flush_interval_s=0.05)
    )
    ray.kill(get_or_create_vector_actor(Settings(data=DataSettings(dir=folder))))
    if owned:
        ray.shutdown()


@pytest.fixture
async def indexes(ray_settings: Settings) -> AsyncIterator[tuple[QdrantEdgeIndex, QdrantEdgeIndex]]:
    """Past the door, and through it."""
    past = QdrantEdgeIndex(RayTransport(ray_settings), ray_settings.qdrant)
    through = QdrantEdgeIndex(engine_transport(ray_settings), ray_settings.qdrant)
    await past.open(SCHEMA)
    await past.upsert([index_point(f"m{i}", tags=["עברית"]) for i in range(5)])
    yield past, through
    await through.close()
    await past.close()


async def test_both_ways_give_the_same_answer(
    indexes: tuple[QdrantEdgeIndex, QdrantEdgeIndex], ray_settings: Settings
) -> None:
    past, through = indexes
    assert (engine_folder(ray_settings) / SOCKET_NAME).is_socket()
    arms = [dense_arm(limit=3), sparse_arm()]
    answer = await through.query(ANN, ItemFilter(), arms)
    assert answer == await past.query(ANN, ItemFilter(), arms)
    assert [len(hits) for hits in answer] == [3, 5]


@pytest.mark.fault
async def test_after_a_kill_questions_are_answered_again_and_none_is_wrong(
    indexes: tuple[QdrantEdgeIndex, QdrantEdgeIndex], ray_settings: Settings
) -> None:
    _, through = indexes
    whole = await through.query(ANN, ItemFilter(), [sparse_arm()])
    os.kill(await get_or_create_vector_actor(ray_settings).pid.remote(), signal.SIGKILL)
    async with asyncio.timeout(60):
        while True:
            try:
                assert await through.query(ANN, ItemFilter(), [sparse_arm()]) == whole
                break
            except IndexDown:
                await asyncio.sleep(0.1)
    nobody = ReadScope("nobody")
    assert await through.query(nobody, ItemFilter(), [sparse_arm()]) == [[]]
