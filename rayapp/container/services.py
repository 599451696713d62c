"""Builds the services of a process out of its stores: memories, context, hooks, tools, learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rayapp.admin.event_stream import EventStreamService
from rayapp.admin.legacy_bank import LegacyMove
from rayapp.admin.sanitizing import Sanitizing
from rayapp.admin.upkeep import UpkeepService, UpkeepStores
from rayapp.assistant.context.service import ContextService
from rayapp.assistant.conversations.feedback import ScoredOutcomes
from rayapp.assistant.conversations.service import HooksService, HookStores, RememberedContext
from rayapp.assistant.extraction.executor import Doing
from rayapp.assistant.extraction.policies import Deciders, KnownMemories
from rayapp.assistant.extraction.service import ExchangeLearning
from rayapp.assistant.personality.rules import Template
from rayapp.assistant.personality.service import PersonalityService
from rayapp.assistant.ports import Context
from rayapp.assistant.tool_results.service import ToolResultService, summarising
from rayapp.assistant.tools.service import ToolParts, ToolsService
from rayapp.container.parts import DataStores, Parts, Stores
from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.runtime import Runtime
from rayapp.core.settings.model import CONFIG_DIR, Settings
from rayapp.index.point_builder import ModelPrefixing
from rayapp.index.service import IndexingService, OnDeleted
from rayapp.inference.backends.chat_model import HttpChatModel
from rayapp.inference.chat.service import ModelCalls
from rayapp.inference.ports import Asking, UsageStore
from rayapp.inference.prompts.loader import load_prompts
from rayapp.learning.insights import InsightsService
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.ports import Outcomes
from rayapp.memory.bank import MemoryBankService
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.service import MemoriesService
from rayapp.memory.user_data import UserDataService
from rayapp.search.ports import Search
from rayapp.storage.files import load_presets
from rayapp.storage.mongo import MongoDatabase
from rayapp.storage.mongo.event_stream import MongoEventStream
from rayapp.storage.mongo.housekeeping import MongoHousekeeping
from rayapp.storage.mongo.personality import MongoPersonalityStore
from rayapp.storage.mongo.user_rows import MongoLegacyBank, MongoUserRows

# The service of memories of a process: whoever stores, stores through the same rules.


def build_memories(parts: Parts) -> MemoriesService:
    """Limits and capacity are those of the settings."""
    runtime, settings = parts.runtime, parts.runtime.settings
    return MemoriesService(
        parts.stores.items,
        clock=runtime.clock,
        metrics=runtime.metrics,
        limits=TextLimits(
            text=settings.http.text_limit_chars, memory_bank=settings.memory_bank.text_limit_chars
        ),
        capacity=settings.memory_bank.capacity,
        new_id=runtime.new_id,
    )


# Builds what lets helpers ask a language model; off without an endpoint.


def build_models(runtime: Runtime, usage: UsageStore) -> ModelCalls:
    """The calls of this process. One per process: it counts what is in flight."""
    settings, rules = runtime.settings.models, runtime.settings.breaker
    chat = None
    if settings.on:
        chat = HttpChatModel(settings.base_url, model=settings.model, api_key=settings.api_key)
    policy = BreakerPolicy(failures=rules.failures, open_s=rules.open_s, successes=rules.successes)
    return ModelCalls(
        chat, usage, load_prompts(), breaker=Breaker("models", policy), runtime=runtime
    )


# Builds the tools of an assistant.


def build_tools(
    parts: Parts,
    *,
    memories: MemoriesService,
    bank: MemoryBankService,
    search: Search,
    outcomes: Outcomes,
    insights: InsightsService,
) -> ToolsService:
    """Over the same services that the other routes ask."""
    used = ToolParts(
        memories=memories,
        bank=bank,
        search=search,
        outcomes=outcomes,
        insights=insights,
        sessions=parts.stores.sessions,
    )
    return ToolsService(used, runtime=parts.runtime)


# Builds what tells an assistant its context.


def build_insights(parts: Parts) -> InsightsService:
    """What the graphs say before any search."""
    stores = parts.stores
    return InsightsService(
        stores.graphs,
        stores.items,
        stores.outcomes,
        stores.receipts,
        texts=parts.texts,
        runtime=parts.runtime,
    )


def build_context(parts: Parts, search: Search, insights: InsightsService) -> ContextService:
    """The same search and insights that everybody else asks."""
    return ContextService(
        search,
        insights,
        parts.stores.items,
        parts.stores.receipts,
        texts=parts.texts,
        runtime=parts.runtime,
    )


# Personalities and the data pages of a process.


def mongo_data_stores(database: MongoDatabase) -> DataStores:
    return DataStores(
        rows=MongoUserRows(database),
        housekeeping=MongoHousekeeping(database),
        legacy=MongoLegacyBank(database),
        personality=MongoPersonalityStore(database),
    )


@lru_cache(maxsize=1)
def presets() -> dict[str, Template]:
    """The shipped personalities; read once per process."""
    return load_presets(CONFIG_DIR / "personality")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataServices:
    """Personalities and the data pages."""

    personality: PersonalityService
    user_data: UserDataService
    upkeep: UpkeepService


def build_data(parts: Parts, memories: MemoriesService) -> DataServices:
    """What the data pages ask for."""
    stores, runtime = parts.stores, parts.runtime
    others = UpkeepStores(
        housekeeping=stores.data.housekeeping,
        scan=stores.scan,
        jobs=stores.jobs,
        api_keys=stores.api_keys,
        index=parts.index,
    )
    user_data = UserDataService(memories, stores.items, stores.data.rows, runtime=runtime)
    return DataServices(
        personality=PersonalityService(stores.data.personality, presets(), clock=runtime.clock),
        user_data=user_data,
        upkeep=UpkeepService(
            others,
            user_data,
            LegacyMove(stores.data.legacy, memories, stores.items, runtime=runtime),
            Sanitizing(memories, stores.items, runtime=runtime),
            runtime=runtime,
        ),
    )


# Builds what tells followers about changes, and what remembers the answers of tools.

# A stream that just ended may still hold its connection when the next one opens.
SPARE_CONNECTIONS = 4


def mongo_event_stream(settings: Settings) -> MongoEventStream:
    """On a client of its own, which connects with the first stream."""
    size = settings.events.max_streams + SPARE_CONNECTIONS
    own = settings.mongo.model_copy(update={"pool_size": size})
    return MongoEventStream(MongoDatabase(own))


def build_events(parts: Parts) -> EventStreamService:
    return EventStreamService(parts.stores.stream, runtime=parts.runtime)


def build_tool_results(
    parts: Parts, memories: MemoriesService, models: ModelCalls
) -> ToolResultService:
    return ToolResultService(
        memories, parts.stores.items, runtime=parts.runtime, summarise=summarising(models)
    )


# What is learned from conversations in the background, built for a process.


def build_learning(parts: Parts, models: Asking | None = None) -> ExchangeLearning:
    """The worker of the queue of exchanges; it skips them while no model may be asked."""
    stores, runtime = parts.stores, parts.runtime
    memories, prompts = build_memories(parts), load_prompts()
    deciders = Deciders(
        models=models or build_models(runtime, stores.usage),
        queue=stores.exchanges,
        receipts=stores.receipts,
        known=KnownMemories(
            stores.items,
            parts.index,
            parts.embedder,
            timeout_s=runtime.settings.embedding.batch_timeout_s,
        ),
        versions=lambda helper, language: f"{language}{prompts.get(helper, language).version}",
    )
    outcomes = OutcomesService(stores.outcomes, stores.receipts, memories, runtime=runtime)
    doing = Doing(memories, outcomes, stores.events, runtime=runtime)
    return ExchangeLearning(stores.exchanges, deciders, doing, runtime=runtime)


def prepare_indexing(service: IndexingService, parts: Parts) -> None:
    """What the indexer does for others: it asks for prefixes, and forgets what is gone."""
    service.prefixing = build_prefixing(parts)
    service.on_deleted = forgetting(parts.stores)
    # Nothing is learned of a turn that a person put away, and its texts lie in the queue too.
    service.on_hidden = parts.stores.exchanges.purge


def build_prefixing(parts: Parts, models: Asking | None = None) -> ModelPrefixing | None:
    """What the indexer asks before it embeds; None while no model may be asked."""
    stores, runtime = parts.stores, parts.runtime
    settings = runtime.settings.models
    if models is None:
        if not (settings.on and settings.helpers.contextual_prefix):
            return None
        models = build_models(runtime, stores.usage)
    return ModelPrefixing(models, stores.items, runtime=runtime)


def forgetting(stores: Stores) -> OnDeleted:
    """What the indexer calls for memories that were deleted: nothing else may hold their texts."""

    async def forget(point_ids: Sequence[str]) -> None:
        await stores.quarantine.purge(point_ids)
        await stores.exchanges.purge(point_ids)

    return forget


# Builds the hooks of chat programs, and what remembers for them.


def remembered(context: Context, parts: Parts) -> RememberedContext:
    """The context, which from now on knows what it put before whom."""
    return RememberedContext(context, parts.stores.sessions, runtime=parts.runtime)


def scored(outcomes: Outcomes, parts: Parts) -> ScoredOutcomes:
    """The outcomes, which from now on end the waiting for a score."""
    return ScoredOutcomes(outcomes, parts.stores.sessions, runtime=parts.runtime)


def build_hooks(
    parts: Parts, context: RememberedContext, memories: MemoriesService, outcomes: Outcomes
) -> HooksService:
    """`context` and `outcomes` are those that everybody else asks."""
    stores = HookStores(
        sessions=parts.stores.sessions,
        receipts=parts.stores.receipts,
        exchanges=parts.stores.exchanges,
    )
    return HooksService(context, memories, outcomes, stores, runtime=parts.runtime)
