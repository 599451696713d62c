"""The queue of stored exchanges, on the fake and on a real MongoDB."""

from datetime import timedelta

import pytest

from rayapp.assistant.ports import EXCHANGE_TTL_S, REPLACED_TTL_S
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import WriteScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import EXCHANGES, EXCHANGES_DUE, EXCHANGES_IN_ORDER
from rayapp.storage.mongo.sessions import IS_DUE, WAITING, MongoExchangeQueue
from tests.support.clock import FakeClock
from tests.support.exchange_contract import (
    CLAIM_S,
    DANA,
    ExchangeContract,
    ExchangeStores,
    on_server,
    turn,
)
from tests.support.stores.exchanges import InMemoryExchangeQueue


class TestInMemoryExchanges(ExchangeContract):
    @pytest.fixture
    def stores(self) -> ExchangeStores:
        clock = FakeClock()
        return ExchangeStores(InMemoryExchangeQueue(clock), clock, clock.elapse)


@pytest.mark.engine
class TestMongoExchanges(ExchangeContract):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> ExchangeStores:
        return on_server(MongoExchangeQueue(database))

    @pytest.mark.parametrize("how", ["finish", "erase", "purge"])
    async def test_no_text_stays_where_it_is_not_needed(
        self, database: MongoDatabase, stores: ExchangeStores, how: str
    ) -> None:
        offered, queue = turn(stores.clock), stores.queue
        await queue.offer(DANA, offered)
        await queue.claim(token="t", limit=1, claim_s=CLAIM_S)
        await queue.keep(offered, "t", {"parts": {"fact": [{"text": "lives in חיפה"}]}})
        if how == "finish":
            await queue.finish(offered, "t", "done", {})
        elif how == "erase":
            await queue.erase(offered)
        else:
            await queue.purge([point_id_of("dana", "x-m-1")])
        (row,) = await database.collection(EXCHANGES).find({}).to_list()
        assert row["plan"] == {}
        assert ("חיפה" in str(row)) is (how == "finish")

    async def test_a_turn_that_takes_the_place_of_an_aged_one_lives_for_a_day(
        self, database: MongoDatabase, stores: ExchangeStores
    ) -> None:
        now, life = stores.clock.now(), timedelta(seconds=EXCHANGE_TTL_S)
        for name, age in (("old", 2 * life), ("new", timedelta(hours=1))):
            await stores.queue.replace(DANA, turn(stores.clock, name, at=now - age))
        rows = await database.collection(EXCHANGES).find({}).to_list()
        left = {row["message_id"]: row["at"] + life - now for row in rows}
        day = timedelta(seconds=REPLACED_TTL_S)
        assert abs(left["old"] - day) < timedelta(minutes=1)
        assert abs(left["new"] - (life - timedelta(hours=1))) < timedelta(minutes=1)

    async def test_a_delete_finds_its_turns_by_an_index(
        self, database: MongoDatabase, stores: ExchangeStores
    ) -> None:
        where = {"point_id": {"$in": ["a", "b"], "$type": "string"}}
        plan = await database.collection(EXCHANGES).find(where).explain()
        assert "exchange_point" in str(plan["queryPlanner"]["winningPlan"])

    async def test_a_look_reads_no_backlog(
        self, database: MongoDatabase, stores: ExchangeStores
    ) -> None:
        """Nothing due: one key. Something due: one key of each user who waits."""
        queue, rows = stores.queue, database.collection(EXCHANGES)
        for user in ("adam", "dana", "noa"):
            for number in range(20):
                offered = turn(stores.clock, f"m-{number}", user_id=user)
                await queue.offer(WriteScope(user), offered)
        due = await rows.find({**WAITING, **IS_DUE}, limit=1).hint(EXCHANGES_DUE.name).explain()
        assert due["executionStats"]["totalKeysExamined"] == 1
        steps = MongoExchangeQueue(database)._heads(4)
        command = {"aggregate": EXCHANGES, "pipeline": steps, "cursor": {}}
        plan = await rows.database.command(
            "explain", {**command, "hint": EXCHANGES_IN_ORDER.name}, verbosity="executionStats"
        )
        assert "DISTINCT_SCAN" in str(plan)
        assert "'FETCH'" not in str(plan)
        await rows.update_many({}, [{"$set": {"due_at": {"$add": ["$$NOW", 60_000]}}}])
        due = await rows.find({**WAITING, **IS_DUE}, limit=1).hint(EXCHANGES_DUE.name).explain()
        assert due["executionStats"]["totalKeysExamined"] <= 1
