"""The queue of stored exchanges, on the fake and on a real MongoDB."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from rayapp.adapters.in_memory_exchanges import InMemoryExchangeQueue
from rayapp.adapters.mongo import MongoDatabase
from rayapp.adapters.mongo.exchanges import MongoExchangeQueue
from rayapp.adapters.mongo.indexes import EXCHANGES
from rayapp.testing.clock import FakeClock
from rayapp.testing.exchange_contract import ExchangeContract, ExchangeStores, on_server
from rayapp.testing.mongo_server import MongoServer, running_mongo


class TestInMemoryExchanges(ExchangeContract):
    @pytest.fixture
    def stores(self) -> ExchangeStores:
        clock = FakeClock()

        async def elapse(seconds: float) -> None:
            clock.advance(seconds)

        return ExchangeStores(InMemoryExchangeQueue(clock), clock, elapse)


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def database(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    database = MongoDatabase(mongo.settings("exchanges"))
    await database.ensure_schema()
    yield database
    await database.close()


@pytest.mark.engine
class TestMongoExchanges(ExchangeContract):
    @pytest.fixture
    async def stores(self, database: MongoDatabase) -> ExchangeStores:
        await database.collection(EXCHANGES).delete_many({})
        return on_server(MongoExchangeQueue(database))
