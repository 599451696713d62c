"""The whole service on in-memory fakes and a fake clock, with switches that take parts away."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from rayapp.api.services import Services
from rayapp.container import bootstrap
from rayapp.container.bootstrap import Stores
from rayapp.container.services import Container
from rayapp.core.disk_space import DiskSpace
from rayapp.core.errors import BadVector, RayappError
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.own_folder import own_folder
from rayapp.core.runtime import Runtime
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.core.vectors import IndexSchema, Vector
from rayapp.documents.service import BookWork, Reader
from rayapp.index.passages import PassageIndex
from rayapp.index.service import IndexingService
from rayapp.index.write_barrier import IndexMonitor
from rayapp.inference.backends.static_model import StaticBackend
from rayapp.inference.ports import EmbedderInfo, Opened, TextKind, TextVectors, opened
from rayapp.learning.leader import MaintenanceService
from rayapp.learning.outbox import OutboxService
from rayapp.learning.promotion import PromotionService
from rayapp.memory.requests import NewMemory
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.search.requests import SearchAnswer, SearchQuery
from rayapp.storage.mongo.rows import to_row
from tests.support.clock import FakeClock
from tests.support.jobs import FakeLauncher
from tests.support.models import NoBreakers
from tests.support.patience import patient
from tests.support.stores import stores
from tests.support.stores.conversations import InMemoryConversationStore
from tests.support.stores.data import data_stores
from tests.support.stores.derived import InMemoryDerivedStore, InMemoryUnderstoodStore
from tests.support.stores.documents import InMemoryBookStore
from tests.support.stores.event_stream import InMemoryEventStream
from tests.support.stores.exchanges import InMemoryExchangeQueue
from tests.support.stores.index import InMemoryIndex
from tests.support.stores.jobs import InMemoryItemScan, InMemoryJobStore, InMemoryQuarantine
from tests.support.stores.knowledge import InMemoryKnowledgeStore
from tests.support.stores.learned import learned_stores
from tests.support.stores.lifecycle import InMemoryLifecycleStore
from tests.support.stores.ontology import InMemoryRegistryStore
from tests.support.stores.personality import InMemoryWindowStore
from tests.support.stores.sessions import InMemorySessionStore
from tests.support.stores.shared_items import InMemorySharedItems
from tests.support.stores.understandings import InMemoryUnderstandingStore
from tests.support.stores.usage import InMemoryUsageStore
from tests.support.stores.user_archive import InMemoryUserArchive
from tests.support.stores.webhooks import InMemoryWebhookStore, RecordingSender

Found = TypeVar("Found")

# A question of a feed of events that nobody answers is over after this time, real seconds.
STREAM_POLL_S = 0.05


@lru_cache(maxsize=1)
def bundled_model() -> StaticBackend:
    """The real embedded default, loaded once per test process."""
    return StaticBackend("bilingual-static-1")


def without_encoder(embedding: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The settings of `embedding`, without the encoder unless they name it: most tests do not
    concern it, and each memory would be read."""
    return {"encoder": {"enabled": False}, **embedding}


@lru_cache(maxsize=1)
def local_settings() -> Settings:
    """Those that are shipped for one machine, without the encoder; read once per test process."""
    overrides = {"search": AT_ONCE, "embedding": without_encoder()}
    return load_settings("local", env={}, overrides=overrides)


@lru_cache(maxsize=1)
def backup_folder() -> Path:
    """Where every service has a folder of its archives, one per test process; it goes with it."""
    owned = contextlib.ExitStack()
    folder = owned.enter_context(own_folder("rayapp-backups-"))
    # A forked process ends without what is registered in `atexit`.
    Finalize(None, owned.close, exitpriority=0)
    return folder


# Numbers of services.
counted = itertools.count()


def with_own_archives(settings: Settings) -> Settings:
    """Those of one service: its archives lie in a folder of its own, unless they name another.

    Users have the same names in most tests, and what one service removes is not another's.
    """
    if settings.backup.dir != local_settings().backup.dir:
        return settings
    folder = backup_folder() / str(next(counted))
    return settings.model_copy(
        update={"backup": settings.backup.model_copy(update={"dir": folder})}
    )


# A receipt is there when the answer is: what groups of them do is tested where they are.
AT_ONCE = {"receipt_window_s": 0.0}


class Switchable:
    """Stands before a part; while `error` is set, every awaited call raises it, of views too."""

    def __init__(self, inner: Any, switch: Any = None) -> None:
        self.inner, self._switch = inner, switch or self
        self.error: RayappError | None = None
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found

        async def guarded(*args: Any, **kwargs: Any) -> Any:
            self._switch.calls.append(name)
            if self._switch.error is not None:
                raise self._switch.error
            return await found(*args, **kwargs)

        return guarded

    def at(self, collection: str) -> Switchable:
        """The view that an index gives of one of its collections."""
        return Switchable(self.inner.at(collection), self._switch)


class ModelEmbedder(NoBreakers):
    """Implements `Embedder` on the bundled model; `hang` blocks until cancelled."""

    def __init__(self) -> None:
        self.hang = False
        self.state: dict[str, Any] = {"healthy": True, "breaker": {"state": "closed"}}

    async def info(self) -> EmbedderInfo:
        return await bundled_model().info()

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        if self.hang:
            await asyncio.sleep(timeout_s)
            raise TimeoutError
        vectors = await bundled_model().encode(texts, kind)
        return [vector / float((vector @ vector) ** 0.5) for vector in vectors]

    async def health(self) -> dict[str, Any]:
        return self.state


class FixedReranker(NoBreakers):
    """Implements `Reranker`: `score` decides; None = no reranker."""

    def __init__(self, score: Callable[[str, str], float] | None = None) -> None:
        self.score = score

    async def rerank(
        self, query: str, documents: Sequence[str], *, timeout_s: float
    ) -> list[float] | None:
        if self.score is None:
            return None
        return [self.score(query, document) for document in documents]

    async def health(self) -> dict[str, Any]:
        return {"healthy": True}


class WordEncoder(NoBreakers):
    """Implements `Encoder`: texts are near as far as their words begin alike, in either language.

    `bad`: a text with this word has no vector.
    """

    DIMS = 64

    def __init__(self) -> None:
        self.read_texts: list[str] = []
        self.bad = ""

    async def info(self) -> EmbedderInfo:
        return EmbedderInfo(backend="fake", model="words-1", dims=self.DIMS)

    async def read(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[TextVectors]:
        wrong = [n for n, text in enumerate(texts) if self.bad and self.bad in text]
        if wrong:
            raise BadVector("No vector of this text.", details={"positions": wrong})
        self.read_texts += texts
        return [TextVectors(self._vector(text), self._vector(text)) for text in texts]

    def _vector(self, text: str) -> Vector:
        vector = np.full(self.DIMS, 0.2, np.float32)
        for word in text.casefold().split():
            vector[crc32(word[:4].encode()) % self.DIMS] += 1.0
        unit: Vector = vector / np.linalg.norm(vector)
        return unit

    async def health(self) -> dict[str, Any]:
        return {"healthy": True}


class InMemoryStores(Stores):
    """Those of a harness, in place of MongoDB."""

    def __init__(self, world: Harness) -> None:
        self.items = world.items
        self.changes = stores.InMemoryChangeLog(world.items, world.graphs.inner._rows)
        self.receipts = world.receipts
        self.events = world.events
        self.leases = world.leases
        self.api_keys = stores.InMemoryApiKeyStore()
        self.audit_log = stores.InMemoryAuditStore()
        self.holds = stores.InMemoryHoldStore()
        self.days = stores.InMemoryDayStore()
        self.idempotency = world.idempotency
        self.outcomes = world.outcomes
        self.lifecycle = world.lifecycle
        self.graphs = world.graphs
        self.knowledge = world.knowledge
        self.registry = world.registry
        self.derived = world.derived
        self.understood = InMemoryUnderstoodStore(world.knowledge, world.derived)
        self.jobs = world.jobs
        self.scan = world.scan
        self.usage = InMemoryUsageStore(world.clock)
        self.quarantine = world.quarantine
        self.shared = world.shared
        self.stream = world.stream
        self.user_rows = world.data.rows
        self.housekeeping = world.data.housekeeping
        self.legacy = world.data.legacy
        self.personality = world.data.personality
        self.windows = world.windows
        self.exchanges = world.exchanges
        self.sessions = world.sessions
        self.conversations = world.conversations
        self.books = world.books
        self.archive = world.archive
        self.webhooks = world.webhooks
        self.understandings = world.understandings
        world.archive.also("idempotency", self.idempotency._rows)
        kept = world.understandings._rows
        world.archive.also("understandings", kept, lambda key, one: to_row(one.row))


def unsuspended(work: Coroutine[Any, Any, Found]) -> Found:
    """What it answers: nothing in memory waits, so no event loop is needed."""
    try:
        work.send(None)
    except StopIteration as end:
        found: Found = end.value
        return found
    raise AssertionError("It waits for something that is not in memory.")


class Harness:
    """`await Harness.open()` or `Harness.ready()`; then `services` and the switchable parts."""

    container: Container
    services: Services

    def __init__(self, settings: Settings, clock: Any = None) -> None:
        encodes = settings.embedding.encoder.enabled
        self.clock: Any = clock or FakeClock()
        self.disk: DiskSpace | None = None
        self.metrics = InMemoryMetrics()
        self.settings = patient(with_own_archives(settings))
        items, receipts, outcomes, graphs = learned_stores(self.clock, settings.graph)
        self.events = stores.InMemoryEventStore(self.clock)
        self.leases = stores.InMemoryLeaseStore(self.clock)
        self.sessions = InMemorySessionStore(self.clock)
        self.idempotency = stores.InMemoryIdempotencyStore()
        self.windows = InMemoryWindowStore()
        self.items: Any = Switchable(items)
        self.receipts: Any = Switchable(receipts)
        self.outcomes: Any = Switchable(outcomes)
        self.graphs: Any = Switchable(graphs)
        self.lifecycle: Any = Switchable(
            InMemoryLifecycleStore(items, self.events, self.leases, graphs)
        )
        self.jobs: Any = Switchable(InMemoryJobStore(self.clock))
        self.stream = InMemoryEventStream(self.clock, STREAM_POLL_S)
        self.scan: Any = Switchable(InMemoryItemScan(items))
        self.quarantine: Any = Switchable(InMemoryQuarantine(self.clock))
        self.exchanges: Any = Switchable(InMemoryExchangeQueue(self.clock))
        self.knowledge = InMemoryKnowledgeStore()
        self.registry = InMemoryRegistryStore(self.knowledge)
        self.derived = InMemoryDerivedStore()
        self.shared: Any = Switchable(InMemorySharedItems(items, graphs))
        self.index: Any = Switchable(PassageIndex(InMemoryIndex()))
        self.model = ModelEmbedder()
        self.embedder: Any = Switchable(self.model)
        self.reranker: Any = Switchable(FixedReranker())
        self.encoder: Any = Switchable(WordEncoder()) if encodes else None
        self.problems: list[str] = []
        self.launcher = FakeLauncher()
        self.books = InMemoryBookStore(items, self.clock)
        self.understandings = InMemoryUnderstandingStore(self.clock, items)
        # Over what is behind the switches: these stores reach into the rows.
        behind = (items, graphs, receipts)
        self.conversations = InMemoryConversationStore(
            self.sessions, self.exchanges.inner._rows, receipts, self.events, self.idempotency
        )
        self.data = data_stores(
            *behind,
            self.sessions.rows,
            self.exchanges.inner._rows,
            self.books,
            turns=self.conversations.words,
            conversations=self.sessions.kept,
            knowledge=self.knowledge,
        )
        self.archive = InMemoryUserArchive(
            items,
            graphs,
            receipts,
            outcomes,
            self.events,
            self.sessions.rows,
            self.exchanges.inner,
            self.books,
            self.data.personality,
            clock=self.clock,
            knowledge=self.knowledge,
            derived=self.derived,
        )
        self.archive.keeping(self.conversations, self.windows)
        self.webhooks = InMemoryWebhookStore(self.clock)
        self.sender = RecordingSender()

    @classmethod
    async def open(cls, **overrides: Any) -> Harness:
        """A started service; `overrides` are settings."""
        overrides["embedding"] = without_encoder(overrides.get("embedding", {}))
        overrides["search"] = AT_ONCE | overrides.get("search", {})
        return await cls(load_settings(env={}, overrides=overrides)).opened()

    @classmethod
    def ready(
        cls, settings: Settings | None = None, *, disk: DiskSpace | None = None, **replaced: Any
    ) -> Harness:
        """One that is open, where nothing can be awaited; `replaced` swaps fields of `Services`."""
        world = cls(settings or local_settings())
        world.disk = disk
        unsuspended(world.opened())
        world.services = replace(world.services, **replaced)
        return world

    async def opened(self) -> Harness:
        """Itself, with an index and services."""
        runtime = bootstrap.runtime_of(
            self.settings, self.metrics, self.clock, problems=self.problems
        )
        self.container = Container(
            replace(runtime, disk=self.disk or runtime.disk),
            InMemoryStores(self),
            index=self.index,
            embedder=Opened(self.embedder, await self.model.info()),
            launcher=self.launcher,
            reranker=self.reranker,
            encoder=None if self.encoder is None else await opened(self.encoder),
        )
        self.container.webhook_sender = self.sender
        await self.index.open(self.schema)
        await self.index.rebuilt()
        self.services = self.container.services()
        return self

    def reading(self, read: Reader) -> BookWork:
        """The owner's work on documents, with a reader of one's own."""
        return BookWork(self.books, self.container.memories, read, runtime=self.runtime)

    @property
    def runtime(self) -> Runtime:
        return self.container.runtime

    @property
    def schema(self) -> IndexSchema:
        return self.container.schema

    @property
    def watch(self) -> IndexMonitor:
        return self.container.watch

    @property
    def indexing(self) -> IndexingService:
        return self.container.indexing

    @property
    def promotion(self) -> PromotionService:
        return self.container.promotion

    @property
    def outbox(self) -> OutboxService:
        return self.container.outbox

    @property
    def maintenance(self) -> MaintenanceService:
        return self.container.maintenance

    async def indexed(self) -> None:
        """Run the indexer until nothing waits."""
        while await self.indexing.run_once():
            pass

    async def encoded(self) -> int:
        """Give points the encoder's vectors until none lacks one; how many were looked at."""
        encoding = self.container.encoding
        assert encoding is not None
        total = 0
        while worked := await encoding.run_once():
            total += worked
        return total

    async def settle(self) -> int:
        """Run the outbox until nothing is owed; how much was settled."""
        total = 0
        while settled := await self.outbox.run_once():
            total += settled
        return total

    async def store(self, text: str, *, user: str = "dana", **fields: Any) -> str:
        """Store one memory and give its id."""
        result = await self.services.memories.store(
            WriteScope(user), NewMemory(text=text, **fields)
        )
        assert result.memory_id is not None
        return result.memory_id

    async def drain(self) -> int:
        """Run the indexer until nothing is due; the number of items worked on."""
        total = 0
        while worked := await self.indexing.run_once():
            total += worked
        return total

    async def search(self, query: str, *, user: str = "dana", **fields: Any) -> SearchAnswer:
        return await self.services.search.search(
            ReadScope(user), SearchQuery(query=query, **fields)
        )

    async def found(self, query: str, **fields: Any) -> list[str]:
        """Ids of the hits, in order."""
        answer = await self.search(query, **fields)
        return [hit.item.memory_id for hit in answer.hits]
