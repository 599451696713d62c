"""A real MongoDB for the tests of a process: the `conftest.py` of a folder imports it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from rayapp.portability.rules.collections import LEGACY_BANK
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import INDEXES
from tests.support.mongo_server import MongoServer, running_mongo


@pytest.fixture(scope="session")
def mongo() -> Iterator[MongoServer]:
    with running_mongo() as server:
        yield server


@pytest.fixture(scope="session")
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
    """Without a row. Those with rows are asked for in one call: most have none."""
    first, *others = (*INDEXES, LEGACY_BANK)
    steps = [
        *_seen(first),
        *({"$unionWith": {"coll": one, "pipeline": _seen(one)}} for one in others),
    ]
    async with await database.collection(first).aggregate(steps) as cursor:
        for name in [row["name"] async for row in cursor]:
            await database.collection(name).delete_many({})
    return database


def _seen(collection: str) -> list[dict[str, Any]]:
    """Its name, if it has a row."""
    return [{"$limit": 1}, {"$project": {"_id": 0, "name": {"$literal": collection}}}]
