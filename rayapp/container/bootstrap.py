"""What services are built of: settings -> stores, caches, texts, runtime.

Nothing here waits for a server: constructors assign and connect lazily, `open_*` coroutines talk.
"""

import os
import random
import socket
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache, partial

import uuid6

from rayapp.admin import ports
from rayapp.admin.webhooks.ports import WebhookStore
from rayapp.assistant.ports import (
    ConversationStore,
    ExchangeQueue,
    PersonalityStore,
    SessionStore,
    WindowStore,
)
from rayapp.bulk.ports import JobStore, LeaseStore
from rayapp.container.inference import breaker, encoder_service
from rayapp.container.inference import embedding_service as embedding_service
from rayapp.container.inference import rerank_service as rerank_service
from rayapp.core.disk_space import DiskSpace, measured
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import Clock, Metrics, Runtime, SystemClock
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.core.settings.model import Settings
from rayapp.core.vectors import IndexSchema
from rayapp.datagov.ports import SharedItems
from rayapp.documents.ports import BookStore
from rayapp.graphs.ports import GraphStore
from rayapp.index.ports import ItemScan, QuarantineStore, VectorIndex
from rayapp.inference.embedding import CachedEmbedder, CacheLayer, TextEncoder
from rayapp.inference.ports import Cache, Embedder, EmbedderInfo, Encoder, UsageStore
from rayapp.learning.ports import LifecycleStore, OutcomeStore
from rayapp.memory.ports import ChangeLog, EventStore, MemoryStore, UserRows
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.service import MemoriesService
from rayapp.portability.ports import UserArchive
from rayapp.search.ports import ReceiptStore
from rayapp.search.rules.recipes import Texts
from rayapp.storage.files import load_expansions, load_latest, load_recipes
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.conversations import MongoConversationStore
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.derived import MongoDerivedStore, MongoUnderstoodStore
from rayapp.storage.mongo.documents import MongoBookStore
from rayapp.storage.mongo.event_stream import MongoEventStore, MongoEventStream
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.housekeeping import MongoHousekeeping
from rayapp.storage.mongo.item_scan import MongoItemScan
from rayapp.storage.mongo.jobs import MongoJobStore, MongoLeaseStore
from rayapp.storage.mongo.knowledge import MongoKnowledgeStore
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.ontology import MongoRegistryStore
from rayapp.storage.mongo.operator_rows import (
    MongoApiKeyStore,
    MongoAuditStore,
    MongoDayStore,
    MongoHoldStore,
)
from rayapp.storage.mongo.outcomes import MongoOutcomeStore
from rayapp.storage.mongo.personality import MongoPersonalityStore, MongoWindowStore
from rayapp.storage.mongo.quarantine import MongoQuarantine
from rayapp.storage.mongo.receipts import MongoIdempotencyStore, MongoReceiptStore
from rayapp.storage.mongo.sessions import MongoExchangeQueue, MongoSessionStore
from rayapp.storage.mongo.shared_items import MongoSharedItems
from rayapp.storage.mongo.understandings import MongoUnderstandingStore
from rayapp.storage.mongo.usage import MongoUsageStore
from rayapp.storage.mongo.user_archive import MongoUserArchive
from rayapp.storage.mongo.user_rows import MongoLegacyBank, MongoUserRows
from rayapp.storage.mongo.webhooks import MongoWebhookStore
from rayapp.storage.process_cache import InMemoryCache
from rayapp.storage.redis import RedisCache
from rayapp.text import passages
from rayapp.text.analyser import Analyser
from rayapp.understanding.derived.ports import DerivedStore, UnderstoodStore
from rayapp.understanding.ports import UnderstandingStore
from rayapp.understanding.statements.ports import KnowledgeStore, RegistryStore

# A stream that just ended may still hold its connection when the next one opens.
SPARE_CONNECTIONS = 4


class Stores:
    """The truth behind its ports, on one MongoDB client; ConfigError without a URI."""

    def __init__(self, settings: Settings) -> None:
        database = MongoDatabase(settings.mongo)
        self.items: MemoryStore = MongoMemoryStore(database)
        self.changes: ChangeLog = MongoChangeLog(database)
        self.receipts: ReceiptStore = MongoReceiptStore(database)
        self.events: EventStore = MongoEventStore(database)
        self.leases: LeaseStore = MongoLeaseStore(database)
        self.api_keys: ports.ApiKeyStore = MongoApiKeyStore(database)
        self.audit_log: ports.AuditStore = MongoAuditStore(database)
        self.days: ports.DayStore = MongoDayStore(database)
        self.holds: ports.HoldStore = MongoHoldStore(database)
        self.idempotency: ports.IdempotencyStore = MongoIdempotencyStore(database)
        self.outcomes: OutcomeStore = MongoOutcomeStore(database)
        self.lifecycle: LifecycleStore = MongoLifecycleStore(database)
        self.graphs: GraphStore = MongoGraphStore(database, settings.graph)
        self.knowledge: KnowledgeStore = MongoKnowledgeStore(database)
        self.registry: RegistryStore = MongoRegistryStore(database)
        self.derived: DerivedStore = MongoDerivedStore(database)
        self.understood: UnderstoodStore = MongoUnderstoodStore(database)
        self.jobs: JobStore = MongoJobStore(database)
        self.scan: ItemScan = MongoItemScan(database)
        self.quarantine: QuarantineStore = MongoQuarantine(database)
        self.shared: SharedItems = MongoSharedItems(database)
        self.user_rows: UserRows = MongoUserRows(database)
        self.housekeeping: ports.Housekeeping = MongoHousekeeping(database)
        self.legacy: ports.LegacyBank = MongoLegacyBank(database)
        self.personality: PersonalityStore = MongoPersonalityStore(database)
        self.windows: WindowStore = MongoWindowStore(database)
        self.exchanges: ExchangeQueue = MongoExchangeQueue(database)
        self.usage: UsageStore = MongoUsageStore(database)
        self.books: BookStore = MongoBookStore(database)
        self.archive: UserArchive = MongoUserArchive(database)
        self.webhooks: WebhookStore = MongoWebhookStore(database)
        self.understandings: UnderstandingStore = MongoUnderstandingStore(database)
        lifetime = timedelta(days=settings.hooks.session_ttl_days)
        self.sessions: SessionStore = MongoSessionStore(database, lifetime)
        self.conversations: ConversationStore = MongoConversationStore(database)
        # On a client of its own, which connects with the first stream.
        size = settings.events.max_streams + SPARE_CONNECTIONS
        own = settings.mongo.model_copy(update={"pool_size": size})
        self.stream: ports.EventStream = MongoEventStream(MongoDatabase(own))


def server_index(settings: Settings) -> VectorIndex:
    """The client of a Qdrant server, imported where one is used: it costs half a second."""
    from rayapp.storage.qdrant.server import QdrantServerIndex

    return QdrantServerIndex(settings.qdrant)


@lru_cache(maxsize=1)
def load_texts() -> Texts:
    """Expansions, recipes and the analyser from `configs/`; read once per process."""
    # The analyser does not know the dictionary: an edited entry must not ask for a reindex.
    return Texts(
        analyser=Analyser(),
        expansions=load_expansions(CONFIG_DIR / "expansions"),
        recipes=load_recipes(CONFIG_DIR / "recipes"),
        latest=load_latest(CONFIG_DIR / "latest.yaml"),
    )


def schema_of(
    info: EmbedderInfo, analyser: Analyser, encoder: EmbedderInfo | None = None
) -> IndexSchema:
    made = f"{analyser.version}-{passages.VERSION}"
    schema = IndexSchema(model=info.model, dims=info.dims, analyser=made)
    if encoder is None:
        return schema
    return replace(schema, encoder=encoder.model, encoder_dims=encoder.dims)


def remote_cache(settings: Settings) -> Cache | None:
    """Redis when it is configured."""
    if not settings.redis.url:
        return None
    return RedisCache(
        settings.redis.url,
        timeout_s=settings.redis.timeout_s,
        refresh_ttl_s=settings.embedding.cache_ttl_s,
    )


def with_cache(inner: Embedder, settings: Settings, metrics: Metrics, *, remote: bool) -> Embedder:
    """`inner` behind the in-process LRU and, with `remote`, behind Redis."""
    layers = [CacheLayer("lru", InMemoryCache(settings.embedding.lru_items, SystemClock()))]
    shared = remote_cache(settings) if remote else None
    if shared is not None:
        layers.append(CacheLayer("redis", shared, breaker("cache", settings)))
    return CachedEmbedder(inner, layers, settings.embedding, metrics=metrics)


def text_encoder(settings: Settings, metrics: Metrics, *, kept: bool = False) -> Encoder | None:
    """The encoder in this process, its latest texts kept; None where it is off. ConfigError.

    `kept`: see `encoder_service`.
    """
    encoder = settings.embedding.encoder
    if not encoder.enabled:
        return None
    service = encoder_service(settings, metrics, kept=kept)
    layers = [CacheLayer("lru", InMemoryCache(encoder.lru_items, SystemClock()))]
    return TextEncoder(CachedEmbedder(service, layers, service.settings, metrics=metrics))


def disk_space(settings: Settings) -> DiskSpace:
    """The disk of the data directory; nothing to look at when MongoDB is on another machine."""
    data = settings.data
    measure = partial(measured, data.dir.absolute()) if data.holds_store else None
    return DiskSpace(str(data.dir.absolute()), data.disk_limits, measure)


def runtime_of(
    settings: Settings,
    metrics: InMemoryMetrics | None = None,
    clock: Clock | None = None,
    problems: Sequence[str] = (),
) -> Runtime:
    """The runtime of this process. `problems` is read at every readiness check."""
    return Runtime(
        settings=settings,
        clock=clock or SystemClock(),
        metrics=metrics or InMemoryMetrics(),
        new_id=new_id,
        random=random.random,
        process=process_token(),
        disk=disk_space(settings),
        problems=problems,
    )


def text_limits(settings: Settings) -> TextLimits:
    return TextLimits(
        text=settings.http.text_limit_chars, memory_bank=settings.memory_bank.text_limit_chars
    )


def memories_service(stores: Stores, runtime: Runtime) -> MemoriesService:
    """Whoever stores, stores through the same rules."""
    settings = runtime.settings
    return MemoriesService(
        stores.items,
        clock=runtime.clock,
        metrics=runtime.metrics,
        limits=text_limits(settings),
        capacity=settings.memory_bank.capacity,
        new_id=runtime.new_id,
    )


def new_id() -> str:
    """UUIDv7: ids made later sort later, so the newest rows stay together in every index."""
    return str(uuid6.uuid7())


def process_token() -> str:
    """Names this process, for claims and leases."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
