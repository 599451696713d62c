"""Ways to build a collection on the real server: opened by the adapter, filled, waited for."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from rayapp.client.progress import Bar, Progress
from rayapp.core.errors import IndexDown
from rayapp.core.settings.model import QdrantSettings
from rayapp.index.ports import VectorIndex
from rayapp.index.records import IndexPoint
from rayapp.storage.qdrant.errors import qdrant_errors
from rayapp.storage.qdrant.server import QdrantServerIndex
from tests.bench.processes import MIB, pss_bytes
from tests.bench.search_profile import cpu_of
from tests.bench.server_points import Corpus
from tests.support.qdrant_binary import start_qdrant

ALIAS = "memories"
HNSW_M = 16  # links, as configs/prod.yaml has it
READ_LIMIT_S, WRITE_LIMIT_S = 30.0, 120.0  # slow answers are measured, not cut off
UPSERT_POINTS, UPSERTS = 256, 4  # points per call, calls in flight
POLL_S = 0.25
QUIET_S = 2.0  # green for this long: no further segment waits for its graph
BUILD_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Mode:
    """How a build is asked; None: as the adapter asks."""

    name: str
    params: models.SearchParams | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """`changes` are made to the collection that the adapter created, before it is filled."""

    name: str
    hnsw_m: int
    modes: tuple[Mode, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)


INT8 = models.ScalarQuantization(
    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
)
# Twice the candidates are compared as int8, then again in full.
RESCORED = models.SearchParams(
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=2.0)
)
NOT_RESCORED = models.SearchParams(quantization=models.QuantizationSearchParams(rescore=False))
# From where on the server walks a graph when nobody tells it, in kB of vectors.
SERVERS_SCAN_KB = 10_000
BUILDS: dict[str, Build] = {
    build.name: build
    for build in (
        Build(name="exact", hnsw_m=0, modes=(Mode("exact"),)),
        Build(name="hnsw", hnsw_m=HNSW_M, modes=(Mode("HNSW"),)),
        Build(
            name="int8",
            hnsw_m=HNSW_M,
            modes=(Mode("HNSW int8", NOT_RESCORED), Mode("HNSW int8, rescored", RESCORED)),
            changes={"quantization_config": INT8},
        ),
        # As "hnsw", with the server's own limit of what is read without a graph.
        Build(
            name="server-scan",
            hnsw_m=HNSW_M,
            modes=(Mode("HNSW, server's limit"),),
            changes={"hnsw_config": models.HnswConfigDiff(full_scan_threshold=SERVERS_SCAN_KB)},
        ),
        # That, and one graph over everything: none per user, tier or language.
        Build(
            name="one-graph",
            hnsw_m=HNSW_M,
            modes=(Mode("HNSW, one graph"),),
            changes={
                "hnsw_config": models.HnswConfigDiff(
                    payload_m=0, full_scan_threshold=SERVERS_SCAN_KB
                )
            },
        ),
        # Graphs per value of a payload index only, as the engine's guide on tenants has it.
        Build(
            name="tenants",
            hnsw_m=HNSW_M,
            modes=(Mode("HNSW, tenants"),),
            changes={
                "hnsw_config": models.HnswConfigDiff(m=0, full_scan_threshold=SERVERS_SCAN_KB)
            },
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A filled collection and what it cost."""

    index: QdrantServerIndex
    client: AsyncQdrantClient
    pid: int
    version: str
    facts: dict[str, Any]


@asynccontextmanager
async def built(
    build: Build, corpus: Corpus, folder: Path, graph_from_kb: int, progress: Progress
) -> AsyncIterator[Built]:
    """A server of its own for the build, ended afterwards."""
    with ExitStack() as stack:
        server = await asyncio.to_thread(start_qdrant, folder)
        stack.callback(server.stop)
        settings = QdrantSettings(
            url=server.url,
            grpc_port=server.grpc_port,
            alias=ALIAS,
            hnsw_m=build.hnsw_m,
            timeout_s=READ_LIMIT_S,
            write_timeout_s=WRITE_LIMIT_S,
        )
        client = AsyncQdrantClient(
            url=server.url,
            grpc_port=server.grpc_port,
            prefer_grpc=True,
            check_compatibility=False,
            timeout=int(READ_LIMIT_S),
        )
        index = QdrantServerIndex(settings)
        try:
            await index.open(corpus.schema)
            for change in (build.changes, sooner(build, graph_from_kb)):
                if change:
                    async with qdrant_errors(WRITE_LIMIT_S):
                        await client.update_collection(ALIAS, **change)
            begun = time.perf_counter()
            await load(index, corpus.points, f"{build.name}: load", progress)
            loaded = time.perf_counter()
            info = await _green(client, build, len(corpus.points), progress)
            facts = {
                "load_s": round(loaded - begun, 1),
                "wait_s": round(time.perf_counter() - loaded - QUIET_S, 1),
                "cpu_s": round(cpu_of(server.process.pid), 1),
                "indexed_vectors": info.indexed_vectors_count,
                "segments": info.segments_count,
            }
            async with qdrant_errors(READ_LIMIT_S):
                version = (await client.info()).version
            yield Built(
                index=index, client=client, pid=server.process.pid, version=version, facts=facts
            )
        finally:
            await index.close()
            await client.close()


def sooner(build: Build, graph_from_kb: int) -> dict[str, Any]:
    """For small runs: graphs, and their use, from this size on in place of the server's."""
    if not graph_from_kb or not build.hnsw_m:
        return {}
    wanted = build.changes.get("hnsw_config", models.HnswConfigDiff())
    return {
        "optimizers_config": models.OptimizersConfigDiff(indexing_threshold=graph_from_kb),
        "hnsw_config": wanted.model_copy(update={"full_scan_threshold": graph_from_kb}),
    }


async def load(
    index: VectorIndex, points: Sequence[IndexPoint], name: str, progress: Progress
) -> None:
    """Several upserts in flight."""
    starts = iter(range(0, len(points), UPSERT_POINTS))
    with progress.step(name, len(points)) as bar:
        async with asyncio.TaskGroup() as group:
            for _ in range(UPSERTS):
                group.create_task(_upserts(index, points, starts, bar))


async def _upserts(index: VectorIndex, points: Sequence[IndexPoint], starts: Any, bar: Bar) -> None:
    for start in starts:
        part = points[start : start + UPSERT_POINTS]
        await index.upsert(part)
        bar.advance(len(part))


async def _green(
    client: AsyncQdrantClient, build: Build, points: int, progress: Progress
) -> models.CollectionInfo:
    """Until the server has nothing left to optimise.

    Raises:
        IndexDown: it takes too long.
    """
    limit = time.monotonic() + BUILD_LIMIT_S
    since: float | None = None
    # The sparse vectors of every point are counted too.
    total = points * (2 if build.hnsw_m else 1)
    with progress.step(f"{build.name}: build", total) as bar:
        while time.monotonic() < limit:
            async with qdrant_errors(READ_LIMIT_S):
                info = await client.get_collection(ALIAS)
            bar.at(min(total, info.indexed_vectors_count or 0))
            if info.status != models.CollectionStatus.GREEN:
                since = None
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() - since >= QUIET_S:
                return info
            await asyncio.sleep(POLL_S)
    raise IndexDown(f"The graph was not built in {BUILD_LIMIT_S:.0f} s: pass fewer --items.")


def pss_mib(pid: int) -> float:
    """Memory of the process, shared pages counted once over all their users."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return round(pss_bytes(rollup) / MIB, 1)
