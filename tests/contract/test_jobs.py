"""The stores of bulk jobs, on the in-memory fakes and on a real MongoDB."""

import asyncio

import pytest

from rayapp.bulk.model import DesiredState, JobState, Partition, Plan
from rayapp.core.errors import RayappError
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import EXPIRES_FROM, PARTITIONS
from rayapp.storage.mongo.item_scan import MongoItemScan
from rayapp.storage.mongo.jobs import MongoJobStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.quarantine import MongoQuarantine
from tests.support.clock import FakeClock
from tests.support.item_scan_contract import ItemScanContract, ScanRig, everything, points
from tests.support.item_scan_contract import filled as filled_items
from tests.support.item_scan_contract import indexed as indexed_item
from tests.support.job_contract import Elapse, JobContract, planned, taken, the_job
from tests.support.quarantine_contract import QuarantineContract, a_point
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.jobs import (
    QUARANTINE_LIFETIME,
    InMemoryItemScan,
    InMemoryJobStore,
    InMemoryQuarantine,
)


class OnFakes:
    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def elapse(self, clock: FakeClock) -> Elapse:
        return clock.elapse


@pytest.mark.engine
class OnMongo:
    @pytest.fixture
    def elapse(self) -> Elapse:
        return asyncio.sleep


class TestInMemoryJobs(OnFakes, JobContract):
    @pytest.fixture
    def store(self, clock: FakeClock) -> InMemoryJobStore:
        return InMemoryJobStore(clock)


class TestInMemoryScan(OnFakes, ItemScanContract):
    @pytest.fixture
    def rig(self, clock: FakeClock, elapse: Elapse) -> ScanRig:
        memories = InMemoryMemoryStore(clock)
        return ScanRig(scan=InMemoryItemScan(memories), memories=memories, elapse=elapse)


class TestInMemoryQuarantine(OnFakes, QuarantineContract):
    @pytest.fixture
    def quarantine(self, clock: FakeClock) -> InMemoryQuarantine:
        return InMemoryQuarantine(clock)

    async def test_points_are_forgotten_after_their_time(
        self, quarantine: InMemoryQuarantine, clock: FakeClock
    ) -> None:
        await quarantine.keep([a_point()], "orphan")
        clock.advance(QUARANTINE_LIFETIME.total_seconds())
        assert await quarantine.kept(5) == []


class TestMongoJobs(OnMongo, JobContract):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> MongoJobStore:
        return MongoJobStore(database)

    async def test_a_plan_is_stored_whole_or_not_at_all(
        self, store: MongoJobStore, database: MongoDatabase
    ) -> None:
        await taken(store)
        # A row that is in the way of the last partition.
        await database.collection(PARTITIONS).insert_one({"job_id": "j-1", "index": 5})
        parts = [Partition(index=n, payload={}) for n in range(6)]
        with pytest.raises(RayappError):
            await store.planned("j-1", 1, Plan(total=6, partitions=parts))
        assert not (await the_job(store)).planned
        assert await database.collection(PARTITIONS).count_documents({}) == 1

    @pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED])
    async def test_partitions_expire_with_their_job_but_never_while_it_may_go_on(
        self, store: MongoJobStore, database: MongoDatabase, state: JobState
    ) -> None:
        async def dated() -> int:
            rows = database.collection(PARTITIONS)
            return await rows.count_documents({EXPIRES_FROM: {"$type": "date"}})

        await planned(store)
        await store.end("j-1", 1, JobState.PAUSED)
        assert await dated() == 0
        if state is JobState.CANCELLED:
            await store.set_desired_state("j-1", DesiredState.CANCEL)
        else:
            await store.take("j-1", 2, submission_id=None)
            await store.end("j-1", 2, state)
        assert await dated() == 2
        if state is JobState.FAILED:
            await store.take("j-1", 3, submission_id=None)
            assert await dated() == 0

    async def test_drivers_that_plan_while_one_takes_over_leave_one_plan(
        self, store: MongoJobStore
    ) -> None:
        for n in range(5):
            job_id = f"j-{n}"
            await taken(store, job_id)
            parts = [Partition(index=n, payload={}) for n in range(20)]
            plan = Plan(total=20, partitions=parts)
            _, job = await asyncio.gather(
                store.planned(job_id, 1, plan),
                store.take(job_id, 2, submission_id=None),
                return_exceptions=True,
            )
            assert not isinstance(job, BaseException)
            await store.planned(job_id, 2, plan)
            rows = await store.partitions(job_id)
            assert [(row.index, row.fence) for row in rows] == [(n, 2) for n in range(20)]

    async def test_a_partition_that_cannot_be_read_is_never_overlooked(
        self, store: MongoJobStore, database: MongoDatabase
    ) -> None:
        await planned(store)
        await database.collection(PARTITIONS).update_one({"index": 1}, {"$unset": {"payload": 1}})
        with pytest.raises(KeyError, match="payload"):
            await store.partitions("j-1")


class TestMongoScan(OnMongo, ItemScanContract):
    @pytest.fixture
    def rig(self, database: MongoDatabase, elapse: Elapse) -> ScanRig:
        memories = MongoMemoryStore(database)
        return ScanRig(scan=MongoItemScan(database), memories=memories, elapse=elapse)

    async def test_a_row_that_cannot_be_read_ends_no_page(
        self, rig: ScanRig, database: MongoDatabase
    ) -> None:
        items = await filled_items(rig, *(indexed_item(5) for _ in range(9)))
        broken = [items[n].point_id for n in (0, 3, 4, 8)]
        await database.collection("memory_items").update_many(
            {"point_id": {"$in": broken}}, {"$set": {"tier": "unknown"}}
        )
        good = [point for point in points(items) if point not in broken]
        pages = await everything(rig.scan, 2)
        assert [len(page) for page in pages] == [2, 2, 1]
        assert [point for page in pages for point in points(page)] == good
        found = await rig.scan.indexed_since(items[0].stored_at, None, 5)
        assert points(found) == good
        assert points(await rig.scan.by_points(points(items))) == good
        assert await rig.scan.existing(points(items)) == set(points(items))


class TestMongoQuarantine(OnMongo, QuarantineContract):
    @pytest.fixture
    def quarantine(self, database: MongoDatabase) -> MongoQuarantine:
        return MongoQuarantine(database)
