"""The graph contracts, on the in-memory fake and on a real MongoDB."""

import asyncio

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.core.runtime import SystemClock
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.graph_writes import IS_DUE
from rayapp.storage.mongo.indexes import FOLLOW_UP, ITEMS
from tests.support.builders import an_item
from tests.support.content_graph_contract import (
    CapsContract,
    ContentContract,
    FollowUpContract,
    TombstoneContract,
)
from tests.support.graph_contract import (
    GraphStores,
    OutcomeSettlementContract,
    PriorsContract,
    ReferencesContract,
    recorded,
)
from tests.support.graph_stores import in_memory_graph_stores, mongo_graph_stores
from tests.support.graph_verdict_contract import VerdictSettlementContract
from tests.support.outbox_rig import OutboxRig
from tests.support.store_contract import DANA
from tests.support.tool_verdict_contract import ToolVerdictContract


class OnFakes:
    @pytest.fixture
    def stores(self) -> GraphStores:
        return in_memory_graph_stores()


@pytest.mark.engine
class OnMongo:
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> GraphStores:
        return mongo_graph_stores(database)


class TestInMemoryPriors(OnFakes, PriorsContract):
    pass


class TestInMemoryOutcomeSettlement(OnFakes, OutcomeSettlementContract):
    pass


class TestInMemoryVerdictSettlement(OnFakes, VerdictSettlementContract):
    pass


class TestInMemoryToolVerdicts(OnFakes, ToolVerdictContract):
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


class TestMongoToolVerdicts(OnMongo, ToolVerdictContract):
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
        rigs = [OutboxRig(stores.outcomes, stores.graphs, SystemClock()) for _ in range(2)]
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
