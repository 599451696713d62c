"""The embedded engine behind its Ray actor: what happens to values, errors, and when it dies."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
import ray

from rayapp.core.errors import BadVector, IndexDown, NotFound, SchemaMismatch
from rayapp.core.settings.model import DataSettings, QdrantSettings, Settings
from rayapp.index.records import WHOLE
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.serve.engine_actor import RayTransport, get_or_create_vector_actor
from rayapp.storage.qdrant.edge import QdrantEdgeIndex
from tests.support.index_points import DIMS, SCHEMA, dense_query, index_point, sparse_query, vector
from tests.support.vector_index_cases import ANN


@pytest.fixture(scope="module")
def ray_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    owned = not ray.is_initialized()
    if owned:
        ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    folder = tmp_path_factory.mktemp("ray_edge")
    yield Settings(
        data=DataSettings(dir=folder), qdrant=QdrantSettings(timeout_s=20, flush_interval_s=0.05)
    )
    if owned:
        ray.shutdown()


@pytest.fixture(scope="module")
async def ray_index(ray_settings: Settings) -> AsyncIterator[QdrantEdgeIndex]:
    index = QdrantEdgeIndex(RayTransport(ray_settings), ray_settings.qdrant)
    await index.open(SCHEMA)
    yield index
    ray.kill(get_or_create_vector_actor(ray_settings))


@pytest.mark.ray
@pytest.mark.engine
class TestQdrantEdgeIndexOverRay:
    """The transport; what the engine does is the contract's business."""

    async def test_values_cross_the_actor_whole(self, ray_index: QdrantEdgeIndex) -> None:
        points = [index_point(f"m{i}", tags=["עברית"]) for i in range(5)]
        await ray_index.upsert(points)
        dense, sparse = await ray_index.query(
            ANN, ItemFilter(), [dense_query(limit=3), sparse_query()]
        )
        assert len(dense) == 3
        assert {hit.point_id for hit in sparse} == {p.point_id for p in points}
        (stored,) = await ray_index.retrieve([points[0].point_id], WHOLE)
        assert stored.dense is not None
        assert stored.dense == pytest.approx(points[0].dense, abs=1e-6)
        assert stored.sparse == points[0].sparse
        assert (await ray_index.health()).points == 5

    async def test_errors_keep_their_class(self, ray_index: QdrantEdgeIndex) -> None:
        with pytest.raises(SchemaMismatch, match="rayapp job reindex"):
            await ray_index.open(replace(SCHEMA, model="other"))
        with pytest.raises(BadVector) as caught:
            await ray_index.upsert([replace(index_point("x"), dense=vector(1, 3))])
        assert caught.value.details["dims"] == DIMS
        with pytest.raises(NotFound):
            await ray_index.switch_alias("nothing_here")

    async def test_engine_is_shared_by_name_and_flushes(
        self, ray_index: QdrantEdgeIndex, ray_settings: Settings
    ) -> None:
        other = QdrantEdgeIndex(RayTransport(ray_settings), ray_settings.qdrant)
        await other.open(SCHEMA)
        await other.upsert([index_point("shared", "bob")])
        assert await ray_index.count(ReadScope("bob")) == 1
        for _ in range(500):
            if not (await ray_index.health()).facts["dirty"]:
                return
            await asyncio.sleep(0.02)
        pytest.fail("nothing was flushed")

    async def test_late_answer_is_down(
        self, ray_index: QdrantEdgeIndex, ray_settings: Settings
    ) -> None:
        transport = RayTransport(ray_settings)
        with pytest.raises(IndexDown):
            await transport.call("health", timeout_s=0.000_001)
        assert (await transport.call("health", timeout_s=20)).ready

    @pytest.mark.fault
    async def test_killed_engine_is_down_at_once_and_comes_back_whole(
        self, ray_index: QdrantEdgeIndex, ray_settings: Settings
    ) -> None:
        await ray_index.upsert([index_point(f"k{i}", "eve") for i in range(50)])
        actor = get_or_create_vector_actor(ray_settings)
        os.kill(await actor.pid.remote(), signal.SIGKILL)
        refused = 0
        async with asyncio.timeout(30):
            while True:
                try:
                    assert await ray_index.count(ReadScope("eve")) == 50
                    break
                except IndexDown:
                    refused += 1
                    await asyncio.sleep(0.1)
        assert refused > 0
        health = await ray_index.health()
        assert ".broken-" not in health.detail
        assert len(list((ray_settings.data.dir / "qdrant").glob("*.broken-*"))) == 0
