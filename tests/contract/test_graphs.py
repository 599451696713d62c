"""The graph contracts, on the in-memory fake and on a real MongoDB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.model import GraphSettings
from rayapp.graphs.ports import GraphStore
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo import MongoDatabase, MongoMemoryStore
from rayapp.storage.mongo.graph_writes import IS_DUE
from rayapp.storage.mongo.graphs import MongoGraphStore
from rayapp.storage.mongo.indexes import FOLLOW_UP, INDEXES, ITEMS
from rayapp.storage.mongo.outcomes import MongoOutcomeStore
from tests.support.builders import an_item
from tests.support.clock import FakeClock
from tests.support.content_graph_contract import (
    CapsContract,
    ContentContract,
    FollowUpContract,
    TombstoneContract,
)
from tests.support.effects_rig import EffectsRig
from tests.support.graph_contract import (
    GraphStores,
    OutcomeSettlementContract,
    PriorsContract,
    ReferencesContract,
    recorded,
)
from tests.support.graph_verdict_contract import VerdictSettlementContract
from tests.support.mongo_server import MongoServer, running_mongo
from tests.support.store_contract import DANA
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.stores import InMemoryReceiptStore


def in_memory_stores() -> GraphStores:
    clock = FakeClock()
    items = InMemoryMemoryStore(clock)
    outcomes = InMemoryOutcomeStore(items, InMemoryReceiptStore(clock), clock)

    def graphs(**caps: int) -> GraphStore:
        return InMemoryGraphStore(items, outcomes, clock, GraphSettings.model_validate(caps))

    async def elapse(seconds: float) -> None:
        clock.advance(seconds)

    return GraphStores(
        graphs=graphs(),
        memories=items,
        outcomes=outcomes,
        capped=graphs,
        elapse=elapse,
        now=clock.now,
    )


def mongo_stores(database: MongoDatabase) -> GraphStores:
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


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings("graphs"))
    await database.ensure_schema()
    yield database
    await database.close()


class OnFakes:
    @pytest.fixture
    def stores(self) -> GraphStores:
        return in_memory_stores()


@pytest.mark.engine
class OnMongo:
    @pytest.fixture
    async def stores(self, database: MongoDatabase) -> GraphStores:
        for name in INDEXES:
            await database.collection(name).delete_many({})
        return mongo_stores(database)


class TestInMemoryPriors(OnFakes, PriorsContract):
    pass


class TestInMemoryOutcomeSettlement(OnFakes, OutcomeSettlementContract):
    pass


class TestInMemoryVerdictSettlement(OnFakes, VerdictSettlementContract):
    pass


class TestInMemoryReferences(OnFakes, ReferencesContract):
    pass


class TestInMemoryFollowUps(OnFakes, FollowUpContract):
    pass


class TestInMemoryContent(OnFakes, ContentContract):
    pass


class TestInMemoryCaps(OnFakes, CapsContract):
    pass


class TestInMemoryTombstones(OnFakes, TombstoneContract):
    pass


class TestMongoPriors(OnMongo, PriorsContract):
    pass


class TestMongoVerdictSettlement(OnMongo, VerdictSettlementContract):
    pass


class TestMongoOutcomeSettlement(OnMongo, OutcomeSettlementContract):
    pass


class TestMongoReferences(OnMongo, ReferencesContract):
    pass


class TestMongoFollowUps(OnMongo, FollowUpContract):
    pass


class TestMongoContent(OnMongo, ContentContract):
    pass


class TestMongoCaps(OnMongo, CapsContract):
    pass


class TestMongoTombstones(OnMongo, TombstoneContract):
    pass


class TestMongoOnly(OnMongo):
    async def test_two_drains_settle_everything_once(self, stores: GraphStores) -> None:
        docker = {"query": "docker compose", "concepts": ("docker",), "action": "search_memory"}
        for n in range(12):
            await recorded(stores, user_id="dana" if n % 3 else "amit", **docker)
        facts = [
            an_item(tier=Tier.MEMORY_BANK, text=f"fact {n}", entities=("Docker", "מוסך"))
            for n in range(8)
        ]
        await stores.memories.insert_many(facts)
        rigs = [EffectsRig(stores.outcomes, stores.graphs, SystemClock()) for _ in range(2)]
        done = [sum(await asyncio.gather(*(rig.settle() for rig in rigs)))]
        while more := sum([await rig.settle() for rig in rigs]):
            done.append(more)  # what lost a race was left for another run
        assert sum(done) == 12 + 8 + 12  # graph, items, promotion
        for scope, events in ((DANA, 8), (ReadScope("amit"), 4)):
            (row,) = await stores.graphs.top_routing(scope, 9)
            assert row.tiers[Tier.WORKING].worked == events
            (action,) = await stores.graphs.actions(scope, context_type=None, limit=9)
            assert action.counters.uses == events
        mentions = {n.label: n.mentions for n in await stores.graphs.top_nodes(DANA, 99)}
        assert (mentions["Docker"], mentions["מוסך"]) == (8, 8)
        assert await stores.outcomes.backlog() == 0

    async def test_due_items_are_read_from_their_own_index(
        self, database: MongoDatabase, stores: GraphStores
    ) -> None:
        cursor = database.collection(ITEMS).find(IS_DUE, sort=[("follow_up_at", 1)])
        plan = (await cursor.hint(FOLLOW_UP.name).explain())["queryPlanner"]["winningPlan"]
        assert "SORT" not in str(plan)
        assert FOLLOW_UP.name in str(plan)

    async def test_a_broken_position_is_refused(self, stores: GraphStores) -> None:
        for position in ("nowhere:", "kg_routing:not-an-id"):
            with pytest.raises(InvalidInput):
                await stores.graphs.dead_references(1, position)
