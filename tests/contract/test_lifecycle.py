"""The contract of `LifecycleStore`, on the in-memory fake and on a real MongoDB."""

from datetime import timedelta

import pytest

from rayapp.learning.rules.dedup import merge_moves
from rayapp.memory.item import Stats, Status
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.event_stream import MongoEventStore
from rayapp.storage.mongo.jobs import MongoLeaseStore
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.support.builders import STORED_AT, an_item
from tests.support.clock import FakeClock
from tests.support.lifecycle_contract import (
    NOW,
    CandidatesContract,
    LeaseContract,
    LifecycleWorld,
    LookupContract,
    MergeContract,
    TransitionContract,
    every_page,
)
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.lifecycle import InMemoryLifecycleStore
from tests.support.stores.stores import InMemoryEventStore, InMemoryLeaseStore


class OnFakes:
    @pytest.fixture
    def world(self) -> LifecycleWorld:
        # As late as NOW: the contracts move items at that time, and claims ask the clock.
        clock = FakeClock(NOW)
        items, events = InMemoryMemoryStore(clock), InMemoryEventStore(clock)
        leases = InMemoryLeaseStore(clock)
        return LifecycleWorld(
            items=items,
            lifecycle=InMemoryLifecycleStore(items, events, leases),
            events=events,
            leases=leases,
        )


@pytest.mark.engine
class OnMongo:
    @pytest.fixture
    def world(self, database: MongoDatabase) -> LifecycleWorld:
        return LifecycleWorld(
            items=MongoMemoryStore(database),
            lifecycle=MongoLifecycleStore(database),
            events=MongoEventStore(database),
            leases=MongoLeaseStore(database),
        )


class TestInMemoryTransitions(OnFakes, TransitionContract):
    pass


class TestInMemoryLeases(OnFakes, LeaseContract):
    pass


class TestInMemoryMerges(OnFakes, MergeContract):
    pass


class TestInMemoryCandidates(OnFakes, CandidatesContract):
    pass


class TestInMemoryLookups(OnFakes, LookupContract):
    pass


class TestMongoTransitions(OnMongo, TransitionContract):
    pass


class TestMongoLeases(OnMongo, LeaseContract):
    pass


class TestMongoMerges(OnMongo, MergeContract):
    pass


class TestMongoCandidates(OnMongo, CandidatesContract):
    pass


class TestMongoLookups(OnMongo, LookupContract):
    pass


@pytest.mark.engine
class TestMongoReadsLittle:
    """The server's own count of the documents it looked at, among 1,000 that no rule moves."""

    @pytest.fixture
    async def crowded(self, database: MongoDatabase) -> MongoDatabase:
        waiting = [an_item(expires_at=NOW + timedelta(days=1)) for _ in range(500)]
        gone = [
            an_item(expires_at=NOW - timedelta(days=1), status=Status.ARCHIVED, stats=Stats(uses=3))
            for _ in range(500)
        ]
        await MongoMemoryStore(database).insert_many([*waiting, *gone])
        return database

    async def test_neither_waiting_nor_archived_items_are_read_for_a_cycle(
        self, crowded: MongoDatabase
    ) -> None:
        store, before = MongoLifecycleStore(crowded), await looked_at(crowded)
        assert await every_page(store, None, 100) == []
        assert await looked_at(crowded) - before < 50

    @pytest.mark.parametrize("user_id", [None, "dana"])
    async def test_over_all_pages_each_judged_or_expired_item_is_read_once(
        self, database: MongoDatabase, user_id: str | None
    ) -> None:
        """Many pages of one kind, beside many items of the other that no rule moves."""
        ended = NOW - timedelta(days=1)
        quiet, bad = Stats(uses=1, score=0.5), Stats(uses=1, score=0.0)
        await MongoMemoryStore(database).insert_many(
            [an_item(user_id=f"user-{n}", expires_at=ended) for n in range(50)]
            + [an_item(expires_at=ended) for _ in range(250)]
            + [an_item(stats=quiet if n % 10 else bad) for n in range(300)]
        )
        store, before = MongoLifecycleStore(database), await looked_at(database)
        found = await every_page(store, user_id, 10)
        assert len(found) == (330 if user_id is None else 280)
        # The first row of a next page may be looked at twice.
        assert await looked_at(database) - before <= 600 + 40

    async def test_activity_is_answered_from_the_index(self, crowded: MongoDatabase) -> None:
        store, before = MongoLifecycleStore(crowded), await looked_at(crowded)
        assert await store.activity(STORED_AT) == [("dana", 1000, 0)]
        assert await looked_at(crowded) - before < 50

    async def test_a_merge_does_not_read_the_other_items_of_the_user(
        self, crowded: MongoDatabase
    ) -> None:
        store, items = MongoLifecycleStore(crowded), [an_item(), an_item()]
        await MongoMemoryStore(crowded).insert_many(items)
        winner, loser = await store.by_ids("dana", [item.memory_id for item in items])
        before = await looked_at(crowded)
        await store.transition(merge_moves(winner, loser, now=NOW, reason="r"), [])
        assert await looked_at(crowded) - before < 50


async def looked_at(database: MongoDatabase) -> int:
    status = await database.client.admin.command("serverStatus")
    return int(status["metrics"]["queryExecutor"]["scannedObjects"])
