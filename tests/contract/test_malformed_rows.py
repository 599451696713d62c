"""Rows that cannot be read, on a real MongoDB: they are left out and the others are served."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from rayapp.container.bootstrap import runtime_of
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import GraphSettings
from rayapp.learning.promotion import PromotionService
from rayapp.memory.item import Outcome, Stats
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.indexes import ITEMS, OUTCOMES, RECEIPTS
from rayapp.storage.mongo.jobs import MongoLeaseStore
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.receipts import MongoReceiptStore
from tests.support.builders import an_item
from tests.support.graph_contract import read, recorded
from tests.support.graph_stores import mongo_graph_stores
from tests.support.graph_verdict_contract import settle, verdict
from tests.support.lifecycle_contract import GOOD, NOW, every_page
from tests.support.side_store_contract import a_receipt
from tests.support.store_contract import stored

pytestmark = pytest.mark.engine
DANA = ReadScope("dana")
# A field too few, an unknown value, a value of the wrong shape.
DEFECTS: list[dict[str, Any]] = [
    {"$unset": {"superseded_by": 1}},
    {"$set": {"source.type": "dream"}},
    {"$set": {"quality": 7}},
]


@pytest.fixture(params=DEFECTS, ids=["missing", "unknown", "shape"])
def defect(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


async def facts(database: MongoDatabase, defect: dict[str, Any], **fields: Any) -> list[str]:
    """Six items of which the third one cannot be read; the ids of the others."""
    items = [
        an_item(
            memory_id=f"m-{n}",
            text=f"סוד secret {n}",
            stored_at=NOW + timedelta(seconds=n),
            **{"tier": Tier.MEMORY_BANK, **fields},
        )
        for n in range(6)
    ]
    await MongoMemoryStore(database).insert_many(items)
    await database.collection(ITEMS).update_one({"memory_id": "m-2"}, defect)
    return [item.memory_id for item in items if item.memory_id != "m-2"]


class TestLoops:
    async def test_follow_ups(self, database: MongoDatabase, defect: dict[str, Any]) -> None:
        good = await facts(database, defect)
        graphs = MongoGraphStore(database, GraphSettings())
        assert sorted(one.item.memory_id for one in await graphs.follow_ups(9)) == good

    async def test_claims_of_the_index(
        self, database: MongoDatabase, defect: dict[str, Any]
    ) -> None:
        good = await facts(database, defect)
        claimed = await MongoMemoryStore(database).claim(token="t", limit=9, claim_s=60)
        assert sorted(item.memory_id for item in claimed) == good

    async def test_a_failed_item_behind_a_malformed_one_is_seen(
        self, database: MongoDatabase, defect: dict[str, Any]
    ) -> None:
        await facts(database, defect)
        failed = {"memory_id": {"$in": ["m-2", "m-5"]}}
        change = {"$set": {"index.sync_state": "failed"}}
        await database.collection(ITEMS).update_many(failed, change)
        (found,) = await MongoMemoryStore(database).failures(1)
        assert found.memory_id == "m-5"

    @pytest.mark.parametrize(
        "change",
        [{"$set": {"outcome": "great"}}, {"$set": {"signal": 7}}, {"$unset": {"concepts": 1}}],
    )
    async def test_outcomes_that_owe_something(
        self, database: MongoDatabase, change: dict[str, Any]
    ) -> None:
        stores = mongo_graph_stores(database)
        for user in ("dana", "noa"):
            await recorded(stores, user_id=user)
        await database.collection(OUTCOMES).update_one({"user_id": "dana"}, change)
        for effect in ("graph", "promotion"):
            before = SystemClock().now() + timedelta(days=36_500)
            (event,) = await stores.outcomes.due(effect, 9, before=before)
            assert event.user_id == "noa"

    @pytest.mark.parametrize("broken", ["loser", "winner"])
    async def test_outcomes_of_a_merged_memory_are_settled(
        self, database: MongoDatabase, defect: dict[str, Any], broken: str
    ) -> None:
        stores = mongo_graph_stores(database)
        loser, winner = an_item(memory_id="loser"), an_item(memory_id="winner", text="another")
        await stored(stores.memories, loser)
        await stored(stores.memories, winner)
        await verdict(stores, Outcome.WORKED, loser)
        items = database.collection(ITEMS)
        await items.update_one({"memory_id": "loser"}, {"$set": {"merged_into": "winner"}})
        await items.update_one({"memory_id": broken}, defect)
        assert len(await settle(stores)) == 1
        assert (await read(stores.graphs)).routing

    @pytest.mark.parametrize("user_id", [None, "dana"])
    @pytest.mark.parametrize("fields", [{"stats": GOOD}, {"expires_at": NOW}])
    async def test_pages_of_a_cycle(
        self,
        database: MongoDatabase,
        defect: dict[str, Any],
        user_id: str | None,
        fields: dict[str, Any],
    ) -> None:
        """A page with a malformed row is as long as any other: a short one ends the cycle."""
        good = await facts(database, defect, tier=Tier.WORKING, **fields)
        store = MongoLifecycleStore(database)
        for limit in (1, 2, 3, 9):
            found = await every_page(store, user_id, limit)
            assert sorted(item.memory_id for item in found) == good
        assert len(await store.by_ids("dana", [*good, "m-2"])) == 5

    async def test_a_cycle_moves_the_others(
        self, database: MongoDatabase, defect: dict[str, Any]
    ) -> None:
        await facts(database, defect, tier=Tier.WORKING, stats=GOOD, expires_at=None)
        settings = load_settings(env={}, overrides={"promotion": {"batch_size": 2}})
        service = PromotionService(
            MongoLifecycleStore(database),
            MongoLeaseStore(database),
            runtime=runtime_of(settings, InMemoryMetrics()),
        )
        report = await service.run(None)
        assert (report.promoted, report.errors) == (5, 0)
        again = await service.run(None)
        assert (again.promoted, again.errors) == (0, 0)


class TestReads:
    async def test_lists_of_a_user(self, database: MongoDatabase, defect: dict[str, Any]) -> None:
        good = await facts(database, defect)
        store, where = MongoMemoryStore(database), ItemFilter(include_superseded=True)
        rows = await database.collection(ITEMS).find({}).to_list()
        found = [
            await store.by_points(DANA, [row["point_id"] for row in rows]),
            await store.pending(DANA, where, 9),
            [item for item, _ in await store.text_search(DANA, where, "secret", 9)],
            await store.lowest_quality(WriteScope("dana"), Tier.MEMORY_BANK, 9),
        ]
        for items in found:
            assert sorted(item.memory_id for item in items) == good

    @pytest.mark.parametrize("limit", [1, 2, 3, 9])
    async def test_pages_go_on_behind_it(
        self, database: MongoDatabase, defect: dict[str, Any], limit: int
    ) -> None:
        good = await facts(database, defect)
        store, where = MongoMemoryStore(database), ItemFilter(include_superseded=True)
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await store.page(DANA, where, ItemQuery(limit=limit, cursor=cursor))
            found += [item.memory_id for item in page.items]
            if (cursor := page.next_cursor) is None:
                break
        assert sorted(found) == good
        assert len(found) == 5

    async def test_receipts_of_a_conversation(self, database: MongoDatabase) -> None:
        store = MongoReceiptStore(database)
        expires_at = SystemClock().now() + timedelta(days=1)
        for name in ("a", "b"):
            await store.put_many(
                [a_receipt(receipt_id=name, conversation_id="c", expires_at=expires_at)]
            )
        await database.collection(RECEIPTS).update_one(
            {"receipt_id": "a"}, {"$set": {"shown": [{"memory_id": "m"}]}}
        )
        assert [one.receipt_id for one in await store.latest(DANA, "c", 9)] == ["b"]


async def test_the_log_names_the_row_and_nothing_that_was_stored(
    database: MongoDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    await facts(database, {"$set": {"source.type": "סוד secret"}}, stats=Stats(uses=1))
    row = await database.collection(ITEMS).find_one({"memory_id": "m-2"})
    assert row is not None
    with caplog.at_level(logging.WARNING):
        await MongoMemoryStore(database).claim(token="t", limit=9, claim_s=60)
    (record,) = caplog.records
    assert str(row["_id"]) in record.getMessage()
    assert "secret" not in caplog.text
