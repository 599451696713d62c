"""A real MongoDB for the tests of a module: the `conftest.py` of a folder imports it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from rayapp.portability.rules.collections import LEGACY_BANK
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import INDEXES
from tests.support.mongo_server import MongoServer, running_mongo


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="module")
async def schema(mongo: MongoServer) -> AsyncIterator[MongoDatabase]:
    """With every index, and whatever rows the tests before left."""
    database = MongoDatabase(mongo.settings())
    await database.ensure_schema()
    yield database
    await database.close()


@pytest.fixture
async def database(schema: MongoDatabase) -> MongoDatabase:
    """With every index and without a row."""
    return await emptied(schema)


async def emptied(database: MongoDatabase) -> MongoDatabase:
    for name in (*INDEXES, LEGACY_BANK):
        await database.collection(name).delete_many({})
    return database
