"""What the contracts of the graphs run on: stores in process memory or of a MongoDB."""

import asyncio
from datetime import UTC, datetime

from rayapp.core.settings.model import GraphSettings
from rayapp.graphs.ports import GraphStore
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.outcomes import MongoOutcomeStore
from tests.support.clock import FakeClock
from tests.support.graph_contract import GraphStores
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.learned import LearnedStores, learned_stores


def in_memory_graph_stores() -> GraphStores:
    clock = FakeClock()
    return graph_stores_over(learned_stores(clock), clock)


def graph_stores_over(stores: LearnedStores, clock: FakeClock) -> GraphStores:
    def graphs(**caps: int) -> GraphStore:
        settings = GraphSettings.model_validate(caps)
        return InMemoryGraphStore(stores.items, stores.outcomes, clock, settings)

    return GraphStores(
        graphs=stores.graphs,
        memories=stores.items,
        outcomes=stores.outcomes,
        capped=graphs,
        elapse=clock.elapse,
        now=clock.now,
    )


def mongo_graph_stores(database: MongoDatabase) -> GraphStores:
    def graphs(**caps: int) -> GraphStore:
        return MongoGraphStore(database, GraphSettings.model_validate(caps))

    return GraphStores(
        graphs=graphs(),
        memories=MongoMemoryStore(database),
        outcomes=MongoOutcomeStore(database),
        capped=graphs,
        elapse=asyncio.sleep,
        now=lambda: datetime.now(UTC),
    )
