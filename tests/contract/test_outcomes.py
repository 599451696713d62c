"""The outcome contract, on the fakes and on a real MongoDB, and what only the latter can show."""

import asyncio
import random
from datetime import timedelta

import pytest
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import ConnectionFailure

from rayapp.learning.rules.outcomes import moved_expiry, with_outcome
from rayapp.memory.item import Outcome, Stats
from rayapp.memory.rules.lifecycle import wilson_lower_bound
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import OUTCOMES
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.outcomes import MongoOutcomeStore
from rayapp.storage.mongo.receipts import MongoReceiptStore
from tests.support.builders import an_item
from tests.support.clock import FakeClock
from tests.support.mongo_server import MongoServer
from tests.support.outcome_contract import AT, LIMITS, OutcomeContract, OutcomeStores, an_event
from tests.support.outcome_key_contract import OutcomeKeyContract
from tests.support.outcome_limits_contract import OutcomeLimitsContract
from tests.support.outcome_verdict_contract import OutcomeVerdictContract
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.stores import InMemoryReceiptStore


class TestInMemoryOutcomes(
    OutcomeContract, OutcomeKeyContract, OutcomeLimitsContract, OutcomeVerdictContract
):
    @pytest.fixture
    def stores(self) -> OutcomeStores:
        clock = FakeClock()
        items, receipts = InMemoryMemoryStore(clock), InMemoryReceiptStore(clock)
        return OutcomeStores(
            memories=items, receipts=receipts, outcomes=InMemoryOutcomeStore(items, receipts, clock)
        )

    async def test_graph_flags_are_cleared_all_or_none(self, stores: OutcomeStores) -> None:
        outcomes = stores.outcomes
        assert isinstance(outcomes, InMemoryOutcomeStore)
        await stores.put(an_item(memory_id="a"))
        first, second = await stores.record("a"), await stores.record("a")
        assert outcomes.settle_graph([first])
        assert not outcomes.settle_graph([first, second])
        late = AT + timedelta(hours=1)
        assert await outcomes.due("graph", 10, before=late) == [second]
        assert outcomes.settle_graph([second])


@pytest.mark.engine
class TestMongoOutcomes(
    OutcomeContract, OutcomeKeyContract, OutcomeLimitsContract, OutcomeVerdictContract
):
    @pytest.fixture
    def stores(self, database: MongoDatabase) -> OutcomeStores:
        return mongo_stores(database)

    async def test_the_server_computes_what_the_rule_computes(self, stores: OutcomeStores) -> None:
        """Random histories, three outcomes each: every stored number is the rule's, to the bit."""
        chance = random.Random(20260301)
        items = [an_item(memory_id=f"m{n}", **_history(chance)) for n in range(120)]
        await stores.put(*items)
        expected = {item.memory_id: (item.stats, item.expires_at) for item in items}
        for step in range(1, 9):
            outcome, at = chance.choice(list(Outcome)), AT + timedelta(minutes=step)
            await stores.record(*expected, outcome=outcome, at=at)
            expected = {
                name: (
                    with_outcome(stats, outcome, at),
                    moved_expiry(expires, outcome, at, score=stats.score),
                )
                for name, (stats, expires) in expected.items()
            }
        for name, (stats, expires) in expected.items():
            found = await stores.item(name)
            assert (found.stats, found.expires_at) == (stats, expires)

    async def test_clients_of_their_own_on_one_hot_item_lose_nothing(
        self, stores: OutcomeStores, mongo: MongoServer
    ) -> None:
        await stores.put(an_item(memory_id="hot"))
        databases = [MongoDatabase(mongo.settings()) for _ in range(8)]

        async def hammer(client: MongoOutcomeStore, number: int) -> None:
            for turn in range(25):
                event = an_event("hot", idempotency_key=f"{number}-{turn}")
                await client.record(event, LIMITS, strict=True)

        await asyncio.gather(*(hammer(MongoOutcomeStore(d), n) for n, d in enumerate(databases)))
        for database in databases:
            await database.close()
        stats = (await stores.item("hot")).stats
        assert (stats.uses, stats.worked_count, stats.success_count) == (200, 200, 200.0)

    async def test_an_unknown_commit_is_recognised_as_its_own(
        self, stores: OutcomeStores, database: MongoDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The commit arrives and its answer is lost: the outcome counts once, and as the first."""
        commit, lost = AsyncClientSession.commit_transaction, [True]

        async def forgetful(session: AsyncClientSession) -> None:
            await commit(session)
            if lost.pop():
                raise ConnectionFailure("lost", error_labels=["UnknownTransactionCommitResult"])

        await stores.put(an_item(memory_id="a"))
        monkeypatch.setattr(AsyncClientSession, "commit_transaction", forgetful)
        done, duplicate = await stores.outcomes.record(an_event("a"), LIMITS, strict=True)
        assert not duplicate
        assert lost == []
        assert [one.uses for one in done.applied] == [1]
        assert (await stores.item("a")).stats.uses == 1
        assert await database.collection(OUTCOMES).count_documents({}) == 1


def mongo_stores(database: MongoDatabase) -> OutcomeStores:
    return OutcomeStores(
        memories=MongoMemoryStore(database),
        receipts=MongoReceiptStore(database),
        outcomes=MongoOutcomeStore(database),
    )


def _history(chance: random.Random) -> dict[str, object]:
    """Stats as any past could have left them, and a lifetime or none."""
    uses = chance.choice([0, 1, 2, 3, 7, 63, 1023, chance.randrange(1, 5000)])
    success = round(chance.randrange(0, 4 * uses + 1) / 4, 4)
    stats = Stats(
        uses=uses,
        success_count=success,
        success_rate=round(success / uses, 4) if uses else 0.5,
        wilson_score=wilson_lower_bound(success, uses),
        score=chance.choice([0.0, 1.0, 0.05, 0.95, round(chance.random(), 4)]),
        tier_uses=chance.randrange(0, uses + 1),
        tier_success=round(success / 2, 4),
        failed_count=uses,
    )
    left = timedelta(milliseconds=chance.randrange(1, 20 * 86_400_000))
    return {"stats": stats, "expires_at": chance.choice([None, AT + left])}
