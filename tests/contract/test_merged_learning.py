"""What the graphs remember goes to the winner of a merge, on the fakes and on a real MongoDB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from rayapp.core.settings.model import GraphSettings
from rayapp.graphs.ports import GraphStore
from rayapp.learning.ports import LifecycleStore
from rayapp.storage.mongo import MongoDatabase, MongoMemoryStore
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.indexes import INDEXES
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.outcomes import MongoOutcomeStore
from tests.support.clock import FakeClock
from tests.support.graph_contract import GraphStores
from tests.support.merged_learning_contract import MergedLearningContract
from tests.support.mongo_server import MongoServer, running_mongo
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.lifecycle import InMemoryLifecycleStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.stores import (
    InMemoryEventStore,
    InMemoryLeaseStore,
    InMemoryReceiptStore,
)


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings("merged_learning"))
    await database.ensure_schema()
    yield database
    await database.close()


class TestInMemory(MergedLearningContract):
    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def items(self, clock: FakeClock) -> InMemoryMemoryStore:
        return InMemoryMemoryStore(clock)

    @pytest.fixture
    def graphs(self, items: InMemoryMemoryStore, clock: FakeClock) -> InMemoryGraphStore:
        outcomes = InMemoryOutcomeStore(items, InMemoryReceiptStore(clock), clock)
        return InMemoryGraphStore(items, outcomes, clock, GraphSettings())

    @pytest.fixture
    def stores(
        self, items: InMemoryMemoryStore, graphs: InMemoryGraphStore, clock: FakeClock
    ) -> GraphStores:
        def capped(**_: int) -> GraphStore:
            return graphs

        async def elapse(seconds: float) -> None:
            clock.advance(seconds)

        return GraphStores(
            graphs=graphs,
            memories=items,
            outcomes=graphs._outcomes,
            capped=capped,
            elapse=elapse,
            now=clock.now,
        )

    @pytest.fixture
    def lifecycle(
        self, items: InMemoryMemoryStore, graphs: InMemoryGraphStore, clock: FakeClock
    ) -> LifecycleStore:
        return InMemoryLifecycleStore(
            items, InMemoryEventStore(clock), InMemoryLeaseStore(clock), graphs
        )


@pytest.mark.engine
class TestMongo(MergedLearningContract):
    @pytest.fixture
    async def stores(self, database: MongoDatabase) -> GraphStores:
        for name in INDEXES:
            await database.collection(name).delete_many({})

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

    @pytest.fixture
    def lifecycle(self, database: MongoDatabase) -> LifecycleStore:
        return MongoLifecycleStore(database)
