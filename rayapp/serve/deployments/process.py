"""What search, indexer and maintenance replicas share, opened in the background."""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from ray.serve.handle import DeploymentHandle
from ray.serve.metrics import Counter, Gauge, Histogram

from rayapp.container import bootstrap
from rayapp.container.services import Container
from rayapp.core.errors import SchemaMismatch
from rayapp.core.logging import configure_logging
from rayapp.core.metrics import METRICS, InMemoryMetrics
from rayapp.core.settings.model import Settings
from rayapp.index.passages import PassageIndex
from rayapp.index.ports import VectorIndex
from rayapp.index.reindex.switch import adopt_ready
from rayapp.inference.ports import Embedder, Reranker, opened
from rayapp.memory.ports import IndexBacklog
from rayapp.serve.engine_actor import RayTransport
from rayapp.serve.handles import HandleEmbedder
from rayapp.serve.job_launcher import RayJobLauncher
from rayapp.serve.startup import Startup
from rayapp.storage.qdrant.edge import QdrantEdgeIndex


class RayMetrics(InMemoryMetrics):
    """Every registered metric as a Ray metric, made once per process."""

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, spec in METRICS.items():
            full = f"rayapp_{name}"
            labels: Any = spec.labels  # of any number, whatever Ray's types say
            if spec.kind == "counter":
                self._counters[name] = Counter(full, spec.help, labels)
            elif spec.kind == "gauge":
                self._gauges[name] = Gauge(full, spec.help, labels)
            else:
                bounds = list(spec.buckets)
                self._histograms[name] = Histogram(
                    full, spec.help, boundaries=bounds, tag_keys=labels
                )

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        super().count(name, value, **labels)
        if value > 0:  # Ray raises for zero, and a count must never end what is counted
            self._counters[name].inc(value, labels)

    def observe(self, name: str, value: float, **labels: str) -> None:
        super().observe(name, value, **labels)
        self._histograms[name].observe(value, labels)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        super().gauge(name, value, **labels)
        self._gauges[name].set(value, labels)


def vector_index(settings: Settings) -> VectorIndex:
    """The Qdrant server when one is configured, else the embedded engine's actor."""
    if settings.qdrant.url:
        return PassageIndex(bootstrap.server_index(settings))
    return PassageIndex(QdrantEdgeIndex(RayTransport(settings), settings.qdrant))


def query_embedder(
    settings: Settings, embedding: DeploymentHandle[Any] | None, metrics: RayMetrics
) -> Embedder:
    """The gateway behind its caches; the static model right here (decision 0009).

    A static text costs 0.02 ms to embed and 2 ms to send: no cache and no hop can beat computing.
    """
    if embedding is None:
        return bootstrap.embedding_service(settings, metrics)
    return bootstrap.with_cache(HandleEmbedder(embedding), settings, metrics, remote=True)


log = logging.getLogger("rayapp.process")
# New containers before the collector looks at the youngest. A search makes a few thousand, none of
# them in a cycle: at 700, the default, it looked ten times per search for nothing, and the full
# looks stopped a search for 30 ms (our benchmark, decision 0032).
YOUNGEST, MIDDLE, OLDEST = 50_000, 20, 20
NO_PLACE = (
    "The index has no place for the encoder's vectors, so searches do without it: run `rayapp job "
    "reindex` and restart, or set embedding.encoder.enabled to false."
)
EMPTY_BACKLOG = IndexBacklog(pending=0, synced=0, failed=0, oldest_pending_s=0.0)


class Process:
    """Opens stores, embedder and index in the background, until they answered once."""

    def __init__(
        self,
        settings: Settings,
        embedding: DeploymentHandle[Any] | None,
        reranker: Reranker | None = None,
        *,
        answers: bool = False,
    ) -> None:
        """`answers`: questions come here, so the encoder stays in memory."""
        configure_logging(settings.logging)
        self.settings = settings
        self.metrics = RayMetrics()
        self.startup = Startup()
        self._embedder = query_embedder(settings, embedding, self.metrics)
        self._encoder = bootstrap.text_encoder(settings, self.metrics, kept=answers)
        self._reranker = reranker
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: tuple[bootstrap.Stores, VectorIndex] | None = None

    def start(self, when_open: Callable[[Container], None]) -> None:
        """Open in the background; needs a running loop. `when_open` is called once, at the end."""
        self.keep(self._open(when_open))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` until it ends or the replica stops."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)
            self.startup.failed(error)

    async def _open(self, when_open: Callable[[Container], None]) -> None:
        when_open(await self.startup.until_open(self._container))
        calm_collector()

    async def _container(self) -> Container:
        if self._clients is None:
            # For all tries: clients connect again by themselves, and each try's own would stay.
            self._clients = bootstrap.Stores(self.settings), vector_index(self.settings)
        stores, index = self._clients
        await stores.items.ensure_schema()
        problems = self.startup.problems
        make = partial(
            Container,
            bootstrap.runtime_of(self.settings, self.metrics, problems=problems),
            stores,
            index=index,
            embedder=await opened(self._embedder),
            launcher=RayJobLauncher(self.settings),
            reranker=self._reranker,
        )
        if self._encoder is None:
            return await self._with_index(make())
        try:
            return await self._with_index(make(encoder=await opened(self._encoder)))
        except SchemaMismatch:
            # A Qdrant server cannot make room in a collection that it has (decision 0096).
            container = make()
            container.notices.append(NO_PLACE)
            return await self._with_index(container)

    async def _with_index(self, container: Container) -> Container:
        """Itself, its index open or being opened. SchemaMismatch."""
        index, stores, schema = container.index, container.stores, container.schema

        async def open_index() -> None:
            """Also onto a collection that a reindex filled for the model of this process."""
            try:
                await index.open(schema)
            except SchemaMismatch:
                parts = (index, stores.jobs, stores.scan, stores.leases)
                if not await adopt_ready(*parts, schema=schema, sleep=asyncio.sleep):
                    raise
                await index.open(schema)

        if not await self.startup.index_opened(open_index):
            self.keep(self.startup.reopen(open_index, container.watch))
        elif (await stores.items.backlog()) == EMPTY_BACKLOG:
            await index.rebuilt()  # nothing was ever stored: the new index is complete
        return container


def calm_collector() -> None:
    """What was made at the start lives as long as the process: do not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
