"""The queue of claims, on the fake and on a real MongoDB."""

import asyncio

import pytest

from rayapp.core.claims import Backoff
from rayapp.storage.mongo.claims import MongoClaimQueue
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import UNDERSTANDINGS
from tests.support.claim_contract import ClaimQueueContract, ClaimStores, Parcel
from tests.support.clock import FakeClock
from tests.support.stores.claims import InMemoryClaimQueue


class TestInMemoryClaims(ClaimQueueContract):
    @pytest.fixture
    def stores(self) -> ClaimStores:
        clock = FakeClock()
        queue = InMemoryClaimQueue[Parcel](clock, lambda one: (one.user_id, one.memory_id))
        return ClaimStores(queue, clock.elapse)


@pytest.mark.engine
class TestMongoClaims(ClaimQueueContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> ClaimStores:
        rows = database.collection(UNDERSTANDINGS)
        queue = MongoClaimQueue(rows, Parcel, ("user_id", "memory_id"))
        return ClaimStores(queue, asyncio.sleep)


@pytest.mark.parametrize(
    ("failed", "random", "pause"), [(1, 0.5, 2.0), (2, 0.5, 4.0), (4, 1.0, 15.0), (5, 0.5, None)]
)
def test_pauses_grow_until_it_is_given_up(failed: int, random: float, pause: float | None) -> None:
    assert Backoff(pause_s=2.0, most_s=10.0, tries=5).pause(failed, random) == pause
