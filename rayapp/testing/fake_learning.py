"""The learning services over in-memory stores, for tests of the HTTP layer."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp import bootstrap
from rayapp.adapters.in_memory import InMemoryMemoryStore
from rayapp.adapters.in_memory_graphs import InMemoryGraphStore
from rayapp.adapters.in_memory_lifecycle import InMemoryLifecycleStore
from rayapp.adapters.in_memory_outcomes import InMemoryOutcomeStore
from rayapp.adapters.in_memory_stores import (
    InMemoryEventStore,
    InMemoryLeaseStore,
    InMemoryReceiptStore,
)
from rayapp.service_protocols import Memories
from rayapp.services.graphs import GraphsService
from rayapp.services.insights import InsightsService
from rayapp.services.outcomes import OutcomesService
from rayapp.services.promotion import PromotionService
from rayapp.services.runtime import Runtime


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
    stores: LearningStores, items: InMemoryMemoryStore, memories: Memories, runtime: Runtime
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
