"""The plans of a real MongoDB for scans and counts over the items of all users."""

from typing import Any

import pytest

from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.index_queue import IS_FAILED, IS_PENDING
from rayapp.storage.mongo.indexes import (
    FAILED_BY_USER,
    INDEXED,
    PENDING_BY_USER,
    POINT,
    SYNC_DUE,
    USER_TIER_STATUS,
    IndexSpec,
)
from rayapp.storage.mongo.item_scan import (
    ACTIVE,
    BY_INDEXED,
    BY_POINT,
    IN_FLIGHT,
    in_range,
    indexed_after,
)
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.support.builders import STORED_AT, an_item

pytestmark = pytest.mark.engine


class TestScanPlans:
    @pytest.mark.parametrize(
        ("where", "order", "index"),
        [
            (in_range(None, None), BY_POINT, POINT),
            (in_range("3f", "7f"), BY_POINT, POINT),
            (indexed_after(STORED_AT, None), BY_INDEXED, INDEXED),
            (indexed_after(STORED_AT, (STORED_AT, "3f")), BY_INDEXED, INDEXED),
        ],
    )
    async def test_a_scan_reads_items_in_the_order_of_its_index(
        self,
        database: MongoDatabase,
        where: dict[str, Any],
        order: list[tuple[str, int]],
        index: IndexSpec,
    ) -> None:
        rows = database.collection("memory_items")
        # Without the hint of the scan: this is the plan that the server would choose itself.
        for hint in (None, index.name):
            found = rows.find(where, sort=order, limit=10, hint=hint)
            plan = str((await found.explain())["queryPlanner"]["winningPlan"])
            assert f"'indexName': '{index.name}'" in plan
            assert "'stage': 'SORT'" not in plan
            assert "COLLSCAN" not in plan

    async def test_a_page_of_a_scan_reads_no_more_items_than_it_gives(
        self, database: MongoDatabase
    ) -> None:
        items = [an_item() for _ in range(60)]
        await MongoMemoryStore(database).insert_many(items)
        middle = sorted(item.point_id for item in items)[29]
        rows = database.collection("memory_items")
        found = rows.find(in_range(middle, None), sort=BY_POINT, hint=POINT.name, limit=10)
        stats = (await found.explain())["executionStats"]
        assert (stats["totalKeysExamined"], stats["totalDocsExamined"]) == (10, 10)

    @pytest.mark.parametrize(
        ("where", "index"),
        [
            (ACTIVE, USER_TIER_STATUS),
            ({**IS_PENDING, "user_id": "dana"}, PENDING_BY_USER),
            ({**IS_FAILED, "user_id": "dana"}, FAILED_BY_USER),
            (IS_FAILED, SYNC_DUE),
        ],
    )
    async def test_counts_over_all_items_read_no_document(
        self, database: MongoDatabase, where: dict[str, Any], index: IndexSpec
    ) -> None:
        await MongoMemoryStore(database).insert_many([an_item() for _ in range(3)])
        pipeline = [{"$match": where}, {"$group": {"_id": 1, "n": {"$sum": 1}}}]
        command = {
            "aggregate": "memory_items",
            "pipeline": pipeline,
            "cursor": {},
            "hint": index.name,
        }
        explained = await database.client["rayapp-test"].command({"explain": command})
        assert index.name in str(explained)
        assert "FETCH" not in str(explained)

    async def test_items_in_flight_are_found_among_those_due_later(
        self, database: MongoDatabase
    ) -> None:
        store = MongoMemoryStore(database)
        await store.insert_many([an_item() for _ in range(20)])
        await store.claim(token="t", limit=2, claim_s=60)
        found = database.collection("memory_items").find(IN_FLIGHT, hint=SYNC_DUE.name)
        stats = (await found.explain())["executionStats"]
        assert (stats["nReturned"], stats["totalDocsExamined"]) == (2, 2)
