"""The contracts of the data pages, on the in-memory fakes and on a real MongoDB."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from rayapp.admin.ports import DayRow, DayStore, HoldStore, LegalHold
from rayapp.core.settings.model import GraphSettings
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.portability.rules.collections import BY_NAME, LEGACY_BANK
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.housekeeping import MongoHousekeeping
from rayapp.storage.mongo.indexes import DAYS, HIDDEN, HIDDEN_ONLY, ITEMS, PERSONALITY
from rayapp.storage.mongo.knowledge import MongoKnowledgeStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.operator_rows import MongoDayStore, MongoHoldStore
from rayapp.storage.mongo.personality import MongoPersonalityStore
from rayapp.storage.mongo.receipts import MongoReceiptStore
from rayapp.storage.mongo.sessions import MongoExchangeQueue, MongoSessionStore
from rayapp.storage.mongo.user_archive import MongoUserArchive
from rayapp.storage.mongo.user_keys import MongoUserKeys
from rayapp.storage.mongo.user_rows import NEWEST_HIDDEN, MongoLegacyBank, MongoUserRows
from tests.support.builders import STORED_AT
from tests.support.clock import FakeClock
from tests.support.data_contract import (
    DataWorld,
    HousekeepingContract,
    PersonalityContract,
    UserRowsContract,
)
from tests.support.stores.data import DataStores, data_stores
from tests.support.stores.exchanges import InMemoryExchangeQueue
from tests.support.stores.knowledge import InMemoryKnowledgeStore
from tests.support.stores.learned import learned_stores
from tests.support.stores.sessions import InMemorySessionStore
from tests.support.stores.stores import InMemoryDayStore, InMemoryHoldStore

KEEP = timedelta(days=36_500)


def in_memory_world() -> DataWorld:
    clock = FakeClock()
    items, receipts, _, graphs = learned_stores(clock)
    sessions, exchanges = InMemorySessionStore(clock, KEEP), InMemoryExchangeQueue(clock)
    knowledge = InMemoryKnowledgeStore()
    return DataWorld(
        data=data_stores(
            items, graphs, receipts, sessions.rows, exchanges._rows, knowledge=knowledge
        ),
        knowledge=knowledge,
        items=items,
        graphs=graphs,
        receipts=receipts,
        sessions=sessions,
        exchanges=exchanges,
    )


def mongo_world(database: MongoDatabase) -> DataWorld:
    return DataWorld(
        data=DataStores(
            rows=MongoUserRows(database),
            housekeeping=MongoHousekeeping(database),
            legacy=MongoLegacyBank(database),
            personality=MongoPersonalityStore(database),
        ),
        items=MongoMemoryStore(database),
        graphs=MongoGraphStore(database, GraphSettings()),
        receipts=MongoReceiptStore(database),
        sessions=MongoSessionStore(database, KEEP),
        exchanges=MongoExchangeQueue(database),
        knowledge=MongoKnowledgeStore(database),
    )


class OnFakes:
    @pytest.fixture
    def world(self) -> DataWorld:
        return in_memory_world()


@pytest.mark.engine
class OnMongo:
    @pytest.fixture
    def world(self, database: MongoDatabase) -> DataWorld:
        return mongo_world(database)


class TestInMemoryUserRows(OnFakes, UserRowsContract):
    pass


class TestInMemoryHousekeeping(OnFakes, HousekeepingContract):
    pass


class TestInMemoryPersonality(OnFakes, PersonalityContract):
    pass


class TestMongoUserRows(OnMongo, UserRowsContract):
    pass


class TestMongoHousekeeping(OnMongo, HousekeepingContract):
    pass


class TestMongoPersonality(OnMongo, PersonalityContract):
    pass


@pytest.mark.engine
async def test_hidden_memories_are_found_through_their_index(database: MongoDatabase) -> None:
    cursor = database.collection(ITEMS).find({"user_id": "dana", **HIDDEN_ONLY})
    plan: Any = await cursor.sort(NEWEST_HIDDEN).explain()
    assert HIDDEN.name in str(plan["queryPlanner"]["winningPlan"])
    assert "SORT" not in str(plan["queryPlanner"]["winningPlan"])


@pytest.mark.engine
async def test_a_user_has_one_row_of_personalities(database: MongoDatabase) -> None:
    assert (await database.indexes(PERSONALITY))["user"]["unique"] is True


@pytest.mark.engine
async def test_old_facts_come_in_the_order_of_their_ids_to_their_user_only(
    database: MongoDatabase,
) -> None:
    first = ObjectId("65a000000000000000000001")
    rows = [
        {"_id": first, "userId": "dana", "text": "tea", "createdAt": datetime(2025, 1, 2)},
        {"_id": "b-1", "user_id": "dana", "text": "תה", "sessionId": first},
        {"_id": "c-1", "userId": "noa", "text": "hers"},
        {"_id": "d-1", "text": "nobody's"},
    ]
    await database.collection(LEGACY_BANK).insert_many(rows)
    bank, dana = MongoLegacyBank(database), ReadScope("dana")
    found = [fact async for fact in bank.rows(dana)]
    assert [fact.raw_id for fact in found] == ["b-1", str(first)]
    assert found[0].fields["sessionId"] == str(first)
    assert found[1].fields["createdAt"].tzinfo is not None
    assert await bank.total(dana) == 2
    assert await bank.total(ReadScope("omer")) == 0
    assert found[1].fields["createdAt"] < STORED_AT


@pytest.mark.engine
@pytest.mark.parametrize("name", ["userId", "user_id"])
async def test_old_facts_go_with_their_user_however_they_name_them(
    database: MongoDatabase, name: str
) -> None:
    rows = [{"_id": "a-1", name: "dana", "text": "tea"}, {"_id": "b-1", "userId": "noa"}]
    await database.collection(LEGACY_BANK).insert_many(rows)
    archive, dana = MongoUserArchive(database), WriteScope("dana")
    assert (await archive.left(dana.own))[LEGACY_BANK] == 1
    assert await MongoUserKeys(database).owners() >= {"dana", "noa"}
    assert await archive.clear(dana, BY_NAME[LEGACY_BANK], 9) == 1
    assert await database.count(LEGACY_BANK, {}) == 1


@pytest.mark.engine
async def test_an_old_fact_is_marked_for_its_user_and_reads_as_before(
    database: MongoDatabase,
) -> None:
    first = ObjectId("65a000000000000000000001")
    rows = [
        {"_id": first, "userId": "dana", "text": "tea"},
        {"_id": "b-1", "user_id": "dana", "text": "תה"},
        {"_id": "c-1", "userId": "noa", "text": "hers"},
    ]
    await database.collection(LEGACY_BANK).insert_many(rows)
    bank, dana = MongoLegacyBank(database), WriteScope("dana")
    for raw_id in (str(first), "c-1", "gone"):
        await bank.mark_moved(dana, raw_id, STORED_AT)
    found = [fact async for fact in bank.rows(ReadScope("dana"))]
    assert [(fact.raw_id, fact.moved) for fact in found] == [("b-1", False), (str(first), True)]
    assert found[1].fields == {"userId": "dana", "text": "tea"}
    assert [fact.moved async for fact in bank.rows(ReadScope("noa"))] == [False]
    assert (await bank.everybody(), await bank.empty(), await bank.empty()) == (3, 3, 0)


@pytest.fixture(params=["memory", pytest.param("mongo", marks=pytest.mark.engine)])
def of_operators(request: pytest.FixtureRequest) -> tuple[HoldStore, DayStore]:
    if request.param == "memory":
        return InMemoryHoldStore(), InMemoryDayStore()
    database = request.getfixturevalue("database")
    return MongoHoldStore(database), MongoDayStore(database)


async def test_a_user_is_held_once_until_released(of_operators: tuple[HoldStore, DayStore]) -> None:
    store, _ = of_operators
    first = LegalHold(user_id="dana", reason="case 17", placed_by="ops", at=STORED_AT)
    other = replace(first, user_id="noa", at=STORED_AT - timedelta(days=1))
    assert await store.place(first)
    assert not await store.place(first)
    assert not await store.place(replace(first, reason="תיק 18"))
    assert await store.place(other)
    assert await store.all() == [other, first]
    assert (await store.get("dana"), await store.get("omer")) == (first, None)
    assert (await store.release("dana"), await store.release("dana")) == (True, False)
    assert await store.all() == [other]


async def test_a_day_has_one_row(of_operators: tuple[HoldStore, DayStore]) -> None:
    _, store = of_operators
    row = DayRow(
        day="2026-01-15",
        at=STORED_AT,
        tiers={"working": {"active": 1}},
        rows={"turns": 2},
        store_bytes=9,
        waiting=1,
        failed=0,
    )
    newer = replace(row, day="2026-01-16", points=7)
    for one in (row, newer, replace(row, waiting=3)):
        await store.keep(one)
    assert await store.recent(9) == [newer, replace(row, waiting=3)]
    assert await store.recent(1) == [newer]
    assert await store.recent(0) == []


@pytest.mark.engine
async def test_a_day_is_kept_for_400_days(database: MongoDatabase) -> None:
    assert (await database.indexes(DAYS))["day_expiry"]["expireAfterSeconds"] == 400 * 86_400
