"""The composition root: settings -> adapters -> services. Used by deployments, jobs, cli, tests.

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

from rayapp.adapters.disk import measured
from rayapp.adapters.expansion_files import load_expansions
from rayapp.adapters.in_memory_cache import InMemoryCache
from rayapp.adapters.mongo.api_keys import MongoApiKeyStore
from rayapp.adapters.mongo.database import MongoDatabase
from rayapp.adapters.mongo.events import MongoEventStore
from rayapp.adapters.mongo.exchanges import MongoExchangeQueue
from rayapp.adapters.mongo.graphs import MongoGraphStore
from rayapp.adapters.mongo.idempotency import MongoIdempotencyStore
from rayapp.adapters.mongo.item_scan import MongoItemScan
from rayapp.adapters.mongo.jobs import MongoJobStore
from rayapp.adapters.mongo.leases import MongoLeaseStore
from rayapp.adapters.mongo.lifecycle import MongoLifecycleStore
from rayapp.adapters.mongo.memory_store import MongoMemoryStore
from rayapp.adapters.mongo.outcomes import MongoOutcomeStore
from rayapp.adapters.mongo.quarantine import MongoQuarantine
from rayapp.adapters.mongo.receipts import MongoReceiptStore
from rayapp.adapters.mongo.sessions import MongoSessionStore
from rayapp.adapters.mongo.shared_items import MongoSharedItems
from rayapp.adapters.mongo.usage import MongoUsageStore
from rayapp.adapters.recipe_files import load_calibration, load_recipes
from rayapp.adapters.redis.cache import RedisCache
from rayapp.clock import SystemClock
from rayapp.domain.index import IndexSchema
from rayapp.domain.retrieval.calibration import calibrated
from rayapp.domain.text.analyser import Analyser
from rayapp.domain.tiers import CORE_TIERS
from rayapp.job_protocols import JobLauncher
from rayapp.observability.metrics import InMemoryMetrics
from rayapp.parts import Parts, Stores
from rayapp.protocols import (
    Cache,
    Clock,
    Embedder,
    EmbedderInfo,
    Metrics,
    Reranker,
    VectorIndex,
)
from rayapp.resilience.disk_space import DiskLimits, DiskSpace
from rayapp.service_protocols import Memories, Services
from rayapp.services.arms import SearchArms
from rayapp.services.comparison import Comparison
from rayapp.services.consistency import ConsistencyService
from rayapp.services.dedup import DedupService
from rayapp.services.deferred import DeferredService
from rayapp.services.effects import EffectsService
from rayapp.services.embedding_cache import CachedEmbedder, CacheLayer
from rayapp.services.explain import ExplainingSearch
from rayapp.services.graph_settling import GraphSettling
from rayapp.services.graphs import GraphsService
from rayapp.services.health import Dependencies, HealthService, ProcessBreakers
from rayapp.services.index_watch import IndexWatch
from rayapp.services.indexing import IndexingService
from rayapp.services.jobs import JobsService
from rayapp.services.maintenance import MaintenanceService
from rayapp.services.memory_bank import MemoryBankService
from rayapp.services.outcomes import OutcomesService
from rayapp.services.owner_duties import (
    cleanup_duty,
    drift_duty,
    preload_duty,
    resume_duty,
    sweep_duty,
)
from rayapp.services.preload import DatagovPreload
from rayapp.services.priors import PriorsService
from rayapp.services.promotion import PromotionService
from rayapp.services.reindex_cleanup import ReindexCleanup
from rayapp.services.runtime import Runtime, Texts
from rayapp.services.search import SearchService
from rayapp.services.statistics import StatisticsService
from rayapp.services.sweep_log import SweepLog
from rayapp.settings import CONFIG_DIR, Settings
from rayapp.wiring.context import build_context, build_insights
from rayapp.wiring.data import build_data, mongo_data_stores
from rayapp.wiring.events import build_events, build_tool_results, mongo_event_stream
from rayapp.wiring.extraction import build_learning, prepare_indexing
from rayapp.wiring.hooks import build_hooks, remembered, scored
from rayapp.wiring.inference import breaker
from rayapp.wiring.inference import embedding_service as embedding_service
from rayapp.wiring.inference import rerank_service as rerank_service
from rayapp.wiring.memories import build_memories
from rayapp.wiring.models import build_models
from rayapp.wiring.tools import build_tools

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
    from rayapp.adapters.qdrant.server import QdrantServerIndex

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


def with_calibration(parts: Parts) -> tuple[Parts, str | None]:
    """`parts` with recipes that know how sure this embedder may be, and what is missing for it."""
    model = parts.schema.model
    made = calibrated(
        parts.texts.recipes, load_calibration(CONFIG_DIR / "calibration", model), model
    )
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


def build_outcomes(parts: Parts, memories: Memories) -> OutcomesService:
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
