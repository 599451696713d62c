"""What is learned from conversations in the background, built for a process."""

from __future__ import annotations

from collections.abc import Sequence

from rayapp.assistant.extraction.executor import Doing
from rayapp.assistant.extraction.known import KnownMemories
from rayapp.assistant.extraction.policies import Deciders
from rayapp.assistant.extraction.service import ExchangeLearning
from rayapp.container.memories import build_memories
from rayapp.container.models import build_models
from rayapp.container.parts import Parts, Stores
from rayapp.index.prefixing import ModelPrefixing
from rayapp.index.service import IndexingService, OnDeleted
from rayapp.inference.ports import Asking
from rayapp.inference.prompts.loader import load_prompts
from rayapp.learning.outcomes import OutcomesService


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
