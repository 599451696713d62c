"""The learning services over in-memory stores, for tests of the HTTP layer."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.container import bootstrap
from rayapp.core.runtime import Runtime
from rayapp.graphs.service import GraphsService
from rayapp.learning.insights import InsightsService
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.promotion import PromotionService
from rayapp.memory.service import MemoriesService
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.lifecycle import InMemoryLifecycleStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.stores import (
    InMemoryEventStore,
    InMemoryLeaseStore,
    InMemoryReceiptStore,
)


@dataclass(frozen=True, slots=True)
class LearningStores:
    """The stores that learning writes to."""

    receipts: InMemoryReceiptStore
    events: InMemoryEventStore
    leases: InMemoryLeaseStore
    outcomes: InMemoryOutcomeStore
    lifecycle: InMemoryLifecycleStore
    graphs: InMemoryGraphStore


def learning_stores(items: InMemoryMemoryStore, runtime: Runtime) -> LearningStores:
    clock = runtime.clock
    receipts = InMemoryReceiptStore(clock)
    events, leases = InMemoryEventStore(clock), InMemoryLeaseStore(clock)
    outcomes = InMemoryOutcomeStore(items, receipts, clock)
    graphs = InMemoryGraphStore(items, outcomes, clock, runtime.settings.graph)
    return LearningStores(
        receipts,
        events,
        leases,
        outcomes,
        InMemoryLifecycleStore(items, events, leases, graphs),
        graphs,
    )


def learning_services(
    stores: LearningStores, items: InMemoryMemoryStore, memories: MemoriesService, runtime: Runtime
) -> dict[str, object]:
    """The fields of `Services` that learn, by name."""
    return {
        "outcomes": OutcomesService(stores.outcomes, stores.receipts, memories, runtime=runtime),
        "promotion": PromotionService(stores.lifecycle, stores.leases, runtime=runtime),
        "graphs": GraphsService(
            stores.graphs, items, texts=bootstrap.load_texts(), runtime=runtime
        ),
        "insights": InsightsService(
            stores.graphs,
            items,
            stores.outcomes,
            stores.receipts,
            texts=bootstrap.load_texts(),
            runtime=runtime,
        ),
    }
