"""The fake, the embedded engine and a real server behind one contract."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_edge import UpdateOperation

from rayapp.core.errors import IndexDown, SchemaMismatch
from rayapp.core.settings.model import QdrantSettings
from rayapp.index.passages import PassageIndex
from rayapp.index.ports import VectorIndex
from rayapp.storage.qdrant.edge import QdrantEdgeIndex
from rayapp.storage.qdrant.edge_engine import EdgeEngine
from rayapp.storage.qdrant.server import QdrantServerIndex
from rayapp.storage.qdrant.server_convert import metadata_of, sparse_config, vectors_config
from tests.support.in_process_engine import InProcessTransport
from tests.support.index_points import DIMS, SCHEMA, index_point
from tests.support.qdrant_binary import QdrantServer, start_qdrant
from tests.support.stores.index import InMemoryIndex
from tests.support.vector_index_cases import MakeIndex
from tests.support.vector_index_contract import VectorIndexContract
from tests.support.vector_index_write_contract import WithoutRev

PAGE = 1_000
DOT = models.VectorParams(size=DIMS, distance=models.Distance.DOT)
WIDE = models.VectorParams(size=DIMS + 1, distance=models.Distance.COSINE)
# What is different on the server, and what the error says about it.
LAYOUTS: dict[str, tuple[dict[str, Any], str]] = {
    "distance": ({"vectors_config": {"dense": DOT}}, "distance Dot"),
    "size": ({"vectors_config": {"dense": WIDE}}, f"dims is {DIMS + 1}"),
    "vector name": ({"vectors_config": {"other": WIDE}}, "no vector named dense"),
    "unnamed vector": ({"vectors_config": WIDE}, "no vector named dense"),
    "no sparse": ({"sparse_vectors_config": None}, "no sparse vector named bm25"),
    "no idf": ({"sparse_vectors_config": {"bm25": models.SparseVectorParams()}}, "IDF"),
    "no metadata": ({"metadata": None}, "model is ''"),
    "analyser": ({"metadata": {"model": SCHEMA.model, "analyser": "a0"}}, "analyser is 'a0'"),
}


async def emptied(index: VectorIndex) -> VectorIndex:
    points, _ = await index.scroll(after=None, limit=PAGE)
    await index.delete([p.point_id for p in points])
    return index


class TestInMemoryIndex(VectorIndexContract):
    @pytest.fixture
    async def index(self) -> VectorIndex:
        index = PassageIndex(InMemoryIndex())
        await index.open(SCHEMA)
        return index

    @pytest.fixture
    def make_index(self) -> MakeIndex:
        async def make() -> VectorIndex:
            return PassageIndex(InMemoryIndex())

        return make

    @pytest.fixture
    def without_rev(self, index: Any) -> WithoutRev:
        async def take_out(point_ids: Sequence[str]) -> None:
            points = index._engine._rows().points
            for point_id in point_ids:
                payload = {k: v for k, v in points[point_id].payload.items() if k != "rev"}
                points[point_id] = replace(points[point_id], payload=payload, rev=0)

        return take_out


@pytest.fixture(scope="module")
def edge_engine(tmp_path_factory: pytest.TempPathFactory) -> EdgeEngine:
    return EdgeEngine(tmp_path_factory.mktemp("edge"), "memories")


@pytest.fixture(scope="module")
async def edge_index(edge_engine: EdgeEngine) -> AsyncIterator[VectorIndex]:
    index = PassageIndex(QdrantEdgeIndex(InProcessTransport(edge_engine), QdrantSettings()))
    await index.open(SCHEMA)
    yield index
    await index.close()


def edge_at(folder: Path) -> VectorIndex:
    engine = InProcessTransport(EdgeEngine(folder, "memories"))
    return PassageIndex(QdrantEdgeIndex(engine, QdrantSettings()))


@pytest.mark.engine
class TestQdrantEdgeIndex(VectorIndexContract):
    @pytest.fixture
    async def index(self, edge_index: VectorIndex) -> VectorIndex:
        return await emptied(edge_index)

    @pytest.fixture
    def without_rev(self, edge_engine: EdgeEngine) -> WithoutRev:
        async def take_out(point_ids: Sequence[str]) -> None:
            with edge_engine._engine(edge_engine._target(None)) as shard:
                shard.update(UpdateOperation.delete_payload(list(point_ids), ["rev"]))

        return take_out

    @pytest.fixture
    async def make_index(self, tmp_path: Path) -> AsyncIterator[MakeIndex]:
        made: list[VectorIndex] = []

        async def make() -> VectorIndex:
            made.append(edge_at(tmp_path / f"edge{len(made)}"))
            return made[-1]

        yield make
        for index in made:
            await index.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    running = start_qdrant(tmp_path_factory.mktemp("qdrant"))
    yield running
    running.stop()


def server_settings(server: QdrantServer, alias: str, *, prefer_grpc: bool) -> QdrantSettings:
    return QdrantSettings(
        url=server.url,
        grpc_port=server.grpc_port,
        prefer_grpc=prefer_grpc,
        alias=alias,
        timeout_s=10,
    )


@pytest.fixture(scope="module", params=[True, False], ids=["grpc", "rest"])
def transport(request: pytest.FixtureRequest) -> bool:
    """True for gRPC."""
    return bool(request.param)


@pytest.fixture(scope="module")
async def server_index(server: QdrantServer, transport: bool) -> AsyncIterator[VectorIndex]:
    alias = f"shared{int(transport)}"
    index = PassageIndex(QdrantServerIndex(server_settings(server, alias, prefer_grpc=transport)))
    await index.open(SCHEMA)
    yield index
    await index.close()


alias_numbers = itertools.count(1)


@pytest.mark.engine
class TestQdrantServerIndex(VectorIndexContract):
    """Each transport of the client is held to the contract."""

    @pytest.fixture(autouse=True)
    async def own_collections(
        self, server: QdrantServer, server_index: VectorIndex
    ) -> AsyncIterator[None]:
        """What a test makes goes with it, but for what all share: a server maps hundreds of files
        for a collection, and no process may map more than 65,530."""
        client = AsyncQdrantClient(url=server.url, check_compatibility=False)
        shared = {one.name for one in (await client.get_collections()).collections}
        yield
        for one in (await client.get_collections()).collections:
            if one.name not in shared:
                await client.delete_collection(one.name)
        await client.close()

    @pytest.fixture
    async def index(self, server_index: VectorIndex) -> VectorIndex:
        return await emptied(server_index)

    @pytest.fixture
    def without_rev(self, server: QdrantServer, transport: bool) -> WithoutRev:
        async def take_out(point_ids: Sequence[str]) -> None:
            client = AsyncQdrantClient(url=server.url, check_compatibility=False)
            await client.delete_payload(
                f"shared{int(transport)}", ["rev"], list(point_ids), wait=True
            )
            await client.close()

        return take_out

    @pytest.fixture
    async def make_index(self, server: QdrantServer, transport: bool) -> AsyncIterator[MakeIndex]:
        made: list[VectorIndex] = []

        async def make() -> VectorIndex:
            alias = f"alias{next(alias_numbers)}"
            settings = server_settings(server, alias, prefer_grpc=transport)
            made.append(PassageIndex(QdrantServerIndex(settings)))
            return made[-1]

        yield make
        for index in made:
            await index.close()

    async def test_parts_and_copies_are_those_of_the_settings(
        self, server: QdrantServer, transport: bool
    ) -> None:
        alias = f"alias{next(alias_numbers)}"
        spread = {"shards": 3, "copies": 2, "copies_written": 1}
        settings = server_settings(server, alias, prefer_grpc=transport).model_copy(update=spread)
        index = QdrantServerIndex(settings)
        await index.open(SCHEMA)
        client = AsyncQdrantClient(url=server.url, check_compatibility=False)
        made = (await client.get_collection(alias)).config.params
        assert (made.shard_number, made.replication_factor) == (3, 2)
        assert made.write_consistency_factor == 1
        await client.close()
        await index.close()

    @pytest.mark.parametrize("case", LAYOUTS, ids=str)
    async def test_other_layout_is_a_mismatch(
        self, server: QdrantServer, transport: bool, case: str
    ) -> None:
        layout, problem = LAYOUTS[case]
        alias = f"alias{next(alias_numbers)}"
        settings = server_settings(server, alias, prefer_grpc=transport)
        client = AsyncQdrantClient(url=server.url, check_compatibility=False)
        wanted: dict[str, Any] = {
            "vectors_config": vectors_config(SCHEMA),
            "sparse_vectors_config": sparse_config(),
            "metadata": metadata_of(SCHEMA, needs_rebuild=False),
        }
        await client.create_collection(f"{alias}_x", **(wanted | layout))
        create = models.CreateAlias(collection_name=f"{alias}_x", alias_name=alias)
        operation = models.CreateAliasOperation(create_alias=create)
        await client.update_collection_aliases([operation])
        await client.close()
        index = QdrantServerIndex(settings)
        with pytest.raises(SchemaMismatch, match="rayapp job reindex") as caught:
            await index.open(SCHEMA)
        await index.close()
        assert problem in str(caught.value)

    async def test_processes_that_start_together_share_one_collection(
        self, server: QdrantServer, transport: bool
    ) -> None:
        settings = server_settings(server, f"alias{next(alias_numbers)}", prefer_grpc=transport)
        indexes = [QdrantServerIndex(settings) for _ in range(3)]
        await asyncio.gather(*(index.open(SCHEMA) for index in indexes))
        assert len(await indexes[0].collections()) == 1
        await indexes[1].upsert([index_point("m1")])
        assert await indexes[2].count() == 1
        for index in indexes:
            await index.close()


@pytest.mark.engine
@pytest.mark.parametrize("prefer_grpc", [True, False])
async def test_server_that_is_away_is_down(prefer_grpc: bool) -> None:
    settings = QdrantSettings(
        url="http://127.0.0.1:9", grpc_port=9, prefer_grpc=prefer_grpc, timeout_s=1
    )
    index = QdrantServerIndex(settings)
    with pytest.raises(IndexDown) as caught:
        await index.count()
    assert caught.value.retryable
    with pytest.raises(IndexDown):
        await index.health()
    await index.close()


@pytest.mark.engine
@pytest.mark.fault
async def test_server_that_comes_back_has_every_point(tmp_path: Path) -> None:
    first = start_qdrant(tmp_path)
    index = QdrantServerIndex(server_settings(first, "memories", prefer_grpc=True))
    await index.open(SCHEMA)
    await index.upsert([index_point(f"m{i}") for i in range(20)])
    first.process.kill()
    first.process.wait()
    with pytest.raises(IndexDown):
        await index.count()
    await index.close()
    second = start_qdrant(tmp_path)
    again = QdrantServerIndex(server_settings(second, "memories", prefer_grpc=True))
    await again.open(SCHEMA)
    assert await again.count() == 20
    await again.close()
    second.stop()
