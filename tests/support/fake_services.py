"""All services in one process without a server: the real ones where memory is enough.

Memories, memory bank and statistics are the real services over the in-memory store. Search ranks
by shared words, and health says what a test sets.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rayapp.admin.event_stream import EventStreamService
from rayapp.admin.ports import Component
from rayapp.admin.statistics import StatisticsService
from rayapp.api.services import Services
from rayapp.assistant.context.service import ContextService
from rayapp.assistant.tool_results.service import ToolResultService
from rayapp.container import bootstrap
from rayapp.container.parts import DataStores
from rayapp.container.services import build_models
from rayapp.core.errors import NotFound
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import Clock, Runtime
from rayapp.core.settings.model import Settings, load_settings
from rayapp.memory.bank import MemoryBankService
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import CORE_TIERS, DATAGOV_ANSWERS, Tier
from rayapp.search.requests import (
    ExplainStage,
    Explanation,
    Hit,
    ScoreSummary,
    SearchAnswer,
    SearchQuery,
)
from tests.support.clock import FakeClock
from tests.support.fake_data import data_stores, fake_data_services
from tests.support.fake_hooks import HookParts, fake_hooks, hook_parts
from tests.support.fake_jobs import JobParts, job_parts, job_services
from tests.support.fake_learning import LearningStores, learning_services, learning_stores
from tests.support.fake_tools import fake_tools
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.event_stream import InMemoryEventStream
from tests.support.stores.stores import InMemoryApiKeyStore, InMemoryIdempotencyStore
from tests.support.stores.usage import InMemoryUsageStore

DEFAULT_LIMIT = 10
MOST_CANDIDATES = 1_000
# A look at the events that waits for nobody is over after this time, real seconds.
STREAM_POLL_S = 0.05


class WordSearch:
    """Implements `Search`: `$text`-like scores over the in-memory store, scaled to 0..1."""

    def __init__(self, store: InMemoryMemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def search(self, scope: ReadScope, query: SearchQuery) -> SearchAnswer:
        tiers = _tiers(query)
        where = _within(query.where, tiers, self._clock)
        ranked = await self._store.text_search(scope, where, query.query, MOST_CANDIDATES)
        best = ranked[0][1] if ranked else 1.0
        limit = query.limit or DEFAULT_LIMIT
        end = query.offset + limit
        hits = tuple(
            Hit(
                position=position,
                item=item,
                summary=ScoreSummary(
                    final_score=score / best,
                    text_similarity=score / best,
                    text_rank=position,
                    weights={
                        "dense": 0.0,
                        "text": 1.0,
                        "identifier": 0.0,
                        "embedding": 1.0,
                        "learned": 0.0,
                    },
                ),
            )
            for position, (item, score) in enumerate(ranked, start=1)
        )
        return SearchAnswer(
            receipt_id=str(uuid.uuid4()) if query.receipt else None,
            hits=hits[query.offset : end],
            total=len(hits),
            confidence="high" if hits else "low",
            relevance=1.0 if hits else 0.0,
            next_offset=end if len(hits) > end else None,
            timings_ms={"text": 0.1},
            sort_by=query.sort_by or "relevance",
            tiers=tiers,
        )

    async def explain(self, scope: ReadScope, memory_id: str, query: SearchQuery) -> Explanation:
        if await self._store.get(scope, memory_id) is None:
            raise NotFound(f"No memory {memory_id}.")
        found = await self.search(scope, query)
        position = next((h.position for h in found.hits if h.item.memory_id == memory_id), None)
        kept = position is not None
        stage = ExplainStage(
            stage="text", kept=kept, detail="shares words" if kept else "shares no word"
        )
        return Explanation(
            memory_id=memory_id,
            query=query.query,
            found=kept,
            position=position,
            lost_at=None if kept else "text",
            stages=(stage,),
        )


def _tiers(query: SearchQuery) -> tuple[Tier, ...]:
    chosen = CORE_TIERS if query.tiers is None else query.tiers
    if query.include_datagov:
        chosen = tuple(dict.fromkeys((*chosen, *DATAGOV_ANSWERS)))
    return chosen


def _within(where: ItemFilter, tiers: tuple[Tier, ...], clock: Clock) -> ItemFilter:
    conditions = {name: getattr(where, name) for name in ItemFilter.__slots__}
    return ItemFilter(**(conditions | {"tiers": tiers, "now": clock.now()}))


class SetHealth:
    """Implements `Health` with what a test sets; the backlog is that of the store."""

    def __init__(self, store: InMemoryMemoryStore) -> None:
        self._store = store
        self.reasons: list[str] = []
        self.tripped: dict[str, dict[str, Any]] = {}
        self.after_reset: dict[str, dict[str, Any]] = {}
        self.found: list[Component] = [
            Component(name="mongodb", healthy=True, latency_ms=0.1, message="ok", critical=True),
            Component(name="qdrant", healthy=True, latency_ms=0.1, message="ok"),
        ]

    async def not_ready(self) -> list[str]:
        return self.reasons

    async def components(self) -> list[Component]:
        return self.found

    async def breakers(self) -> dict[str, dict[str, Any]]:
        return dict(self.tripped)

    async def reset_breakers(self) -> list[str]:
        names, self.tripped = list(self.tripped), dict(self.after_reset)
        return names

    async def diagnostics(self, *, metrics: bool = False) -> dict[str, Any]:
        backlog = await self._store.backlog()
        counts = await self._store.tier_counts(None)
        body: dict[str, Any] = {
            "by_tier": [{"tier": count.tier.value, "mongoCount": count.active} for count in counts],
            "index": {
                "pending": backlog.pending,
                "synced": backlog.synced,
                "failed": backlog.failed,
                "oldest_pending_s": backlog.oldest_pending_s,
            },
        }
        return body | {"metrics": {"uptime_ms": 1}} if metrics else body


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The services, and the handles by which a test moves them."""

    services: Services
    clock: FakeClock
    store: InMemoryMemoryStore
    health: SetHealth
    metrics: InMemoryMetrics
    learning: LearningStores
    jobs: JobParts
    data: DataStores
    stream: InMemoryEventStream
    hooks: HookParts


def _context(
    chosen: Mapping[str, Any],
    store: InMemoryMemoryStore,
    learning: LearningStores,
    runtime: Runtime,
) -> ContextService:
    """Over the very search and insights that the world has."""
    return ContextService(
        chosen["search"],
        chosen["insights"],
        store,
        learning.receipts,
        texts=bootstrap.load_texts(),
        runtime=runtime,
    )


def fake_world(settings: Settings | None = None, **replaced: Any) -> World:
    """Services over one new in-memory store; `replaced` swaps fields of `Services`."""
    settings = settings or load_settings("local", env={})
    clock = FakeClock()
    store = InMemoryMemoryStore(clock)
    metrics = InMemoryMetrics()
    health = SetHealth(store)
    memories = MemoriesService(
        store,
        clock=clock,
        metrics=metrics,
        limits=TextLimits(
            text=settings.http.text_limit_chars,
            memory_bank=settings.memory_bank.text_limit_chars,
        ),
        capacity=settings.memory_bank.capacity,
        new_id=lambda: str(uuid.uuid4()),
    )
    runtime = bootstrap.runtime_of(settings, metrics, clock)
    runtime = replace(runtime, disk=replaced.get("disk", runtime.disk))
    learning = learning_stores(store, runtime)
    jobs = job_parts(runtime)
    parts: dict[str, Any] = {
        **learning_services(learning, store, memories, runtime),
        "settings": settings,
        "clock": clock,
        "metrics": metrics,
        "memories": memories,
        "bank": MemoryBankService(memories, store),
        "search": WordSearch(store, clock),
        **job_services(jobs, store, learning.leases, runtime),
        "health": health,
        "statistics": StatisticsService(store, learning.events, runtime=runtime),
        "api_keys": InMemoryApiKeyStore(),
        "idempotency": InMemoryIdempotencyStore(),
        "tiers_default": CORE_TIERS,
    }
    stream = InMemoryEventStream(clock, STREAM_POLL_S)
    parts["events"] = EventStreamService(stream, runtime=runtime)
    parts["tool_results"] = ToolResultService(memories, store, runtime=runtime)
    hooks = hook_parts(runtime)
    parts["outcomes"] = hooks.scored(parts["outcomes"])
    parts["models"] = build_models(runtime, InMemoryUsageStore(clock))
    chosen = parts | replaced
    chosen.setdefault("context", hooks.remembered(_context(chosen, store, learning, runtime)))
    chosen.setdefault("hooks", fake_hooks(hooks, chosen, learning.receipts))
    kept = (hooks.sessions.rows, hooks.exchanges._rows)
    data = data_stores(store, learning.graphs, learning.receipts, *kept)
    served = fake_data_services(data, store, jobs, chosen["api_keys"], memories, runtime)
    for name in ("personality", "user_data", "upkeep"):
        chosen.setdefault(name, getattr(served, name))
    chosen.setdefault("tools", fake_tools(chosen, hooks.sessions, runtime))
    services = Services(**chosen)
    return World(
        services=services,
        clock=clock,
        store=store,
        health=health,
        metrics=metrics,
        learning=learning,
        jobs=jobs,
        data=data,
        stream=stream,
        hooks=hooks,
    )
