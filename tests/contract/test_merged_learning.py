"""What the graphs remember goes to the winner of a merge, on the fakes and on a real MongoDB."""

import pytest

from rayapp.learning.ports import LifecycleStore
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from tests.support.clock import FakeClock
from tests.support.graph_contract import GraphStores
from tests.support.graph_stores import graph_stores_over, mongo_graph_stores
from tests.support.merged_learning_contract import MergedLearningContract
from tests.support.stores.learned import LearnedStores, learned_stores
from tests.support.stores.lifecycle import InMemoryLifecycleStore
from tests.support.stores.stores import InMemoryEventStore, InMemoryLeaseStore


class TestInMemory(MergedLearningContract):
    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def learned(self, clock: FakeClock) -> LearnedStores:
        return learned_stores(clock)

    @pytest.fixture
    def stores(self, learned: LearnedStores, clock: FakeClock) -> GraphStores:
        return graph_stores_over(learned, clock)

    @pytest.fixture
    def lifecycle(self, learned: LearnedStores, clock: FakeClock) -> LifecycleStore:
        return InMemoryLifecycleStore(
            learned.items, InMemoryEventStore(clock), InMemoryLeaseStore(clock), learned.graphs
        )


@pytest.mark.engine
class TestMongo(MergedLearningContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> GraphStores:
        return mongo_graph_stores(database)

    @pytest.fixture
    def lifecycle(self, database: MongoDatabase) -> LifecycleStore:
        return MongoLifecycleStore(database)
