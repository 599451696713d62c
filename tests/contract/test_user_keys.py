"""The contract of `UserKeyStore`, on the in-memory fake and on a real MongoDB."""

import pytest

from rayapp.portability.sealing import UserKeyStore
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.user_keys import MongoUserKeys
from tests.support.stores.user_keys import InMemoryUserKeys
from tests.support.user_keys_contract import DANA, NOA, UserKeysContract


class TestInMemory(UserKeysContract):
    @pytest.fixture
    def user_keys(self) -> UserKeyStore:
        return InMemoryUserKeys(lambda: {DANA, NOA, ""})


@pytest.mark.engine
class TestMongo(UserKeysContract):
    @pytest.fixture
    async def user_keys(self, database: MongoDatabase) -> UserKeyStore:
        await database.collection("memory_deletions").insert_one({"user_id": DANA, "tier": "x"})
        for number, payload in enumerate(({"user_id": NOA}, {"user_id": DANA}, None)):
            row = {"point_id": str(number), "rev": 1, "payload": payload}
            await database.collection("quarantine").insert_one(row)
        await database.collection("api_keys").insert_one({"user_id": "of the service", "hash": "h"})
        return MongoUserKeys(database)
