"""The composition root: settings -> storage -> services. Used by serve, local, jobs and tests.

Nothing here waits for a server: constructors assign and connect lazily, `open_*` coroutines talk.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import uuid
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache, partial

import uuid6

from rayapp.admin.health import Dependencies, HealthService, ProcessBreakers
from rayapp.admin.statistics import StatisticsService
from rayapp.api.services import Services
from rayapp.bulk.ports import JobLauncher
from rayapp.bulk.service import JobsService
from rayapp.container.inference import breaker
from rayapp.container.inference import embedding_service as embedding_service
from rayapp.container.inference import rerank_service as rerank_service
from rayapp.container.leader_tasks import (
    cleanup_duty,
    drift_duty,
    preload_duty,
    resume_duty,
    sweep_duty,
)
from rayapp.container.parts import Parts, Stores
from rayapp.container.services import (
    build_context,
    build_data,
    build_events,
    build_hooks,
    build_insights,
    build_learning,
    build_memories,
    build_models,
    build_tool_results,
    build_tools,
    mongo_data_stores,
    mongo_event_stream,
    prepare_indexing,
    remembered,
    scored,
)
from rayapp.core.disk_space import DiskLimits, DiskSpace
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import Clock, Metrics, Runtime, SystemClock
from rayapp.core.settings.model import CONFIG_DIR, Settings
from rayapp.core.vectors import IndexSchema
from rayapp.datagov.service import DatagovPreload
from rayapp.graphs.service import GraphsService
from rayapp.index.consistency.comparison import Comparison
from rayapp.index.consistency.service import ConsistencyService, SweepLog
from rayapp.index.deferred import DeferredService
from rayapp.index.ports import VectorIndex
from rayapp.index.reindex.switch import ReindexCleanup
from rayapp.index.service import IndexingService
from rayapp.index.write_barrier import IndexWatch
from rayapp.inference.embedding import CachedEmbedder, CacheLayer
from rayapp.inference.ports import Cache, Embedder, EmbedderInfo, Reranker
from rayapp.learning.dedup import DedupService
from rayapp.learning.leader import MaintenanceService
from rayapp.learning.outbox import EffectsService, GraphSettling
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.promotion import PromotionService
from rayapp.memory.bank import MemoryBankService
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import CORE_TIERS
from rayapp.search.explain import ExplainingSearch
from rayapp.search.priors import PriorsService
from rayapp.search.retrievers import SearchArms
from rayapp.search.rules.confidence import Calibration, calibrated
from rayapp.search.rules.recipes import Texts
from rayapp.search.service import SearchService
from rayapp.storage.files import load_calibration, load_expansions, load_recipes, measured
from rayapp.storage.mongo.api_keys import MongoApiKeyStore
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.event_stream import MongoEventStore
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.item_scan import MongoItemScan
from rayapp.storage.mongo.jobs import MongoJobStore, MongoLeaseStore
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.outcomes import MongoOutcomeStore
from rayapp.storage.mongo.quarantine import MongoQuarantine
from rayapp.storage.mongo.receipts import MongoIdempotencyStore, MongoReceiptStore
from rayapp.storage.mongo.sessions import MongoExchangeQueue, MongoSessionStore
from rayapp.storage.mongo.shared_items import MongoSharedItems
from rayapp.storage.mongo.usage import MongoUsageStore
from rayapp.storage.process_cache import InMemoryCache
from rayapp.storage.redis import RedisCache
from rayapp.text.analyser import Analyser

log = logging.getLogger("rayapp.bootstrap")


def mongo_stores(settings: Settings) -> Stores:
    """Stores on one MongoDB client; ConfigError without a URI."""
    database = MongoDatabase(settings.mongo)
    return Stores(
        items=MongoMemoryStore(database),
        receipts=MongoReceiptStore(database),
        events=MongoEventStore(database),
        leases=MongoLeaseStore(database),
        api_keys=MongoApiKeyStore(database),
        idempotency=MongoIdempotencyStore(database),
        outcomes=MongoOutcomeStore(database),
        lifecycle=MongoLifecycleStore(database),
        graphs=MongoGraphStore(database, settings.graph),
        jobs=MongoJobStore(database),
        scan=MongoItemScan(database),
        quarantine=MongoQuarantine(database),
        shared=MongoSharedItems(database),
        stream=mongo_event_stream(settings),
        data=mongo_data_stores(database),
        exchanges=MongoExchangeQueue(database),
        usage=MongoUsageStore(database),
        sessions=MongoSessionStore(database, timedelta(days=settings.hooks.session_ttl_days)),
    )


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
    )


def schema_of(info: EmbedderInfo, analyser: Analyser) -> IndexSchema:
    return IndexSchema(model=info.model, dims=info.dims, analyser=analyser.version)


def remote_cache(settings: Settings) -> Cache | None:
    """Redis when it is configured."""
    if not settings.redis.url:
        return None
    return RedisCache(
        settings.redis.url,
        timeout_s=settings.redis.timeout_s,
        refresh_ttl_s=settings.embedding.cache_ttl_s,
    )


def cached(inner: Embedder, settings: Settings, metrics: Metrics, *, remote: bool) -> Embedder:
    """`inner` behind the in-process LRU and, with `remote`, behind Redis."""
    clock = SystemClock()
    layers = [CacheLayer("lru", InMemoryCache(settings.embedding.lru_items, clock))]
    shared = remote_cache(settings) if remote else None
    if shared is not None:
        layers.append(CacheLayer("redis", shared, breaker("cache", settings)))
    return CachedEmbedder(inner, layers, settings.embedding, metrics=metrics, clock=clock)


def build_services(
    parts: Parts,
    reranker: Reranker,
    cache: Cache | None,
    start_problems: list[str],
    launcher: JobLauncher,
) -> Services:
    """Everything the HTTP layer asks for. `start_problems` is read at every readiness check."""
    runtime, settings = parts.runtime, parts.runtime.settings
    deferred = build_deferred(parts)
    memories = build_memories(parts)
    parts, notice = with_calibration(parts)
    search = build_search(parts, reranker)
    search.on_empty = deferred.nudge
    models = build_models(runtime, parts.stores.usage)
    used = Dependencies(
        store=parts.stores.items,
        index=parts.index,
        embedder=parts.embedder,
        reranker=reranker,
        cache=cache,
        outcomes=parts.stores.outcomes,
        leases=parts.stores.leases,
        events=parts.stores.events,
        models=models,
    )
    found = ExplainingSearch(search, parts.stores.items, runtime)
    insights = build_insights(parts)
    context = remembered(build_context(parts, found, insights), parts)
    data = build_data(parts, memories)
    bank = MemoryBankService(memories, parts.stores.items)
    outcomes = scored(build_outcomes(parts, memories), parts)
    return Services(
        settings=settings,
        clock=runtime.clock,
        metrics=runtime.metrics,
        disk=runtime.disk,
        memories=memories,
        bank=bank,
        search=found,
        outcomes=outcomes,
        promotion=build_promotion(parts),
        graphs=GraphsService(
            parts.stores.graphs, parts.stores.items, texts=parts.texts, runtime=runtime
        ),
        insights=insights,
        context=context,
        hooks=build_hooks(parts, context, memories, outcomes),
        tools=build_tools(
            parts, memories=memories, bank=bank, search=found, outcomes=outcomes, insights=insights
        ),
        tool_results=build_tool_results(parts, memories, models),
        events=build_events(parts),
        models=models,
        jobs=build_jobs(parts, launcher),
        consistency=build_consistency(parts),
        deferred=deferred,
        health=HealthService(
            used,
            schema=parts.schema,
            breakers={
                "process": ProcessBreakers([parts.watch.breaker, models.breaker], runtime.clock),
                "embedding": parts.embedder,
                "reranker": reranker,
            },
            start_problems=start_problems,
            notices=[notice] if notice else [],
            runtime=runtime,
        ),
        statistics=StatisticsService(parts.stores.items, parts.stores.events, runtime=runtime),
        personality=data.personality,
        user_data=data.user_data,
        upkeep=data.upkeep,
        api_keys=parts.stores.api_keys,
        idempotency=parts.stores.idempotency,
        tiers_default=CORE_TIERS,
    )


@lru_cache
def calibration_of(model: str) -> Calibration | None:
    """The shipped one of an embedder; read once per process."""
    return load_calibration(CONFIG_DIR / "calibration", model)


def with_calibration(parts: Parts) -> tuple[Parts, str | None]:
    """`parts` with recipes that know how sure this embedder may be, and what is missing for it."""
    model = parts.schema.model
    made = calibrated(parts.texts.recipes, calibration_of(model), model)
    if made.notice is not None:
        log.warning("%s", made.notice)
    return replace(parts, texts=replace(parts.texts, recipes=made.recipes)), made.notice


def build_search(parts: Parts, reranker: Reranker) -> SearchService:
    """The one search."""
    arms = SearchArms(
        parts.stores.items,
        parts.index,
        parts.embedder,
        parts.texts.analyser,
        schema=parts.schema,
        watch=parts.watch,
        runtime=parts.runtime,
    )
    return SearchService(
        arms,
        reranker,
        parts.stores.receipts,
        parts.texts,
        priors=PriorsService(parts.stores.graphs, parts.texts, runtime=parts.runtime),
        langs=parts.langs,
        runtime=parts.runtime,
    )


def build_deferred(parts: Parts) -> DeferredService:
    """What waits for the index, and the look after an empty search."""
    stores = parts.stores
    return DeferredService(stores.items, parts.index, stores.scan, runtime=parts.runtime)


def build_jobs(parts: Parts, launcher: JobLauncher) -> JobsService:
    """Bulk jobs as operators, and the owner of maintenance, see them."""
    stores = parts.stores
    return JobsService(stores.jobs, stores.leases, launcher, runtime=parts.runtime)


def build_comparison(stores: Stores, index: VectorIndex) -> Comparison:
    """Truth and index side by side."""
    return Comparison(stores.scan, index, stores.quarantine)


def build_consistency(parts: Parts) -> ConsistencyService:
    """Sampled sweeps, for operators and for the owner of maintenance."""
    return ConsistencyService(
        build_comparison(parts.stores, parts.index),
        SweepLog(parts.stores.events, "sampled_sweep", parts.runtime),
        runtime=parts.runtime,
    )


def build_indexing(parts: Parts) -> IndexingService:
    """The indexer's service."""
    service = IndexingService(
        parts.stores.items,
        parts.index,
        parts.embedder,
        parts.texts.analyser,
        parts.stores.leases,
        schema=parts.schema,
        runtime=parts.runtime,
    )
    prepare_indexing(service, parts)
    return service


def build_promotion(parts: Parts) -> PromotionService:
    """The only code that changes a tier by rule."""
    stores = parts.stores
    return PromotionService(stores.lifecycle, stores.leases, runtime=parts.runtime)


def build_outcomes(parts: Parts, memories: MemoriesService) -> OutcomesService:
    """What is recorded is in the graphs before it is answered, if that is quick."""
    stores, runtime = parts.stores, parts.runtime
    service = OutcomesService(stores.outcomes, stores.receipts, memories, runtime=runtime)
    service.on_recorded = GraphSettling(
        stores.graphs, parts.texts.expansions, runtime=runtime
    ).at_once
    return service


def build_effects(parts: Parts) -> EffectsService:
    """The drain of the outbox."""
    return EffectsService(
        parts.stores.outcomes,
        parts.stores.graphs,
        build_promotion(parts),
        build_dedup(parts),
        texts=parts.texts,
        runtime=parts.runtime,
    )


def build_maintenance(parts: Parts, launcher: JobLauncher) -> MaintenanceService:
    """The maintenance deployment's service."""
    settings, jobs = parts.runtime.settings, build_jobs(parts, launcher)
    return MaintenanceService(
        build_promotion(parts),
        build_effects(parts),
        parts.stores.leases,
        duties=[
            sweep_duty(build_consistency(parts), settings.consistency),
            drift_duty(parts.stores.events, parts.runtime),
            resume_duty(jobs),
            cleanup_duty(ReindexCleanup(parts.index, parts.stores.jobs, runtime=parts.runtime).run),
            preload_duty(DatagovPreload(jobs, settings.datagov)),
        ],
        learning=build_learning(parts),
        runtime=parts.runtime,
    )


def build_dedup(parts: Parts) -> DedupService:
    """The static embedder has its own scale: its threshold is off until it was measured."""
    settings = parts.runtime.settings
    static = settings.embedding.backend == "static"
    similarity = settings.dedup.static_similarity if static else settings.dedup.similarity
    return DedupService(
        parts.stores.lifecycle,
        parts.stores.items,
        parts.index,
        similarity=similarity if settings.dedup.enabled else 0.0,
        runtime=parts.runtime,
    )


def disk_space(settings: Settings) -> DiskSpace:
    """The disk of the data directory; nothing to look at when MongoDB is on another machine."""
    data = settings.data
    limits = DiskLimits(warn_bytes=data.warn_free_bytes, min_bytes=data.min_free_bytes)
    measure = partial(measured, data.dir.absolute()) if data.holds_store else None
    return DiskSpace(str(data.dir.absolute()), limits, measure)


def runtime_of(settings: Settings, metrics: InMemoryMetrics, clock: Clock | None = None) -> Runtime:
    """The runtime of this process."""
    return Runtime(
        settings=settings,
        clock=clock or SystemClock(),
        metrics=metrics,
        new_id=new_id,
        random=random.random,
        process=process_token(),
        disk=disk_space(settings),
    )


def index_watch(settings: Settings) -> IndexWatch:
    return IndexWatch(breaker("qdrant", settings))


def new_id() -> str:
    """UUIDv7: ids made later sort later, so the newest rows stay together in every index."""
    return str(uuid6.uuid7())


def process_token() -> str:
    """Names this process, for claims and leases."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
