"""The windows that people and operators set for models, on the fake and on a real MongoDB."""

from datetime import UTC, datetime

import pytest

from rayapp.assistant.ports import MAX_WINDOWS, OwnWindow, WindowStore
from rayapp.core.errors import Conflict
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.personality import MongoWindowStore
from tests.support.stores.personality import InMemoryWindowStore

AT = datetime(2100, 5, 1, 9, tzinfo=UTC)
DANA, NOA = WriteScope("dana"), WriteScope("noa")


def a_window(model: str = "llama", *, everybody: bool = False, tokens: int = 4_096) -> OwnWindow:
    return OwnWindow(model=model, name=f"{model}:8b", tokens=tokens, at=AT, everybody=everybody)


class WindowContract:
    async def test_a_window_comes_back_to_its_user_an_operators_to_all(
        self, store: WindowStore
    ) -> None:
        await store.put(DANA, a_window())
        await store.put(DANA, a_window(tokens=8_192))
        await store.put(NOA, a_window("qwen", everybody=True))
        assert await store.windows(ReadScope("dana")) == [
            a_window(tokens=8_192),
            a_window("qwen", everybody=True),
        ]
        assert await store.windows(ReadScope("noa")) == [a_window("qwen", everybody=True)]

    async def test_only_its_own_is_deleted(self, store: WindowStore) -> None:
        await store.put(DANA, a_window())
        await store.put(DANA, a_window(everybody=True))
        assert not await store.delete(NOA, "llama", everybody=False)
        assert await store.delete(DANA, "llama", everybody=False)
        assert not await store.delete(DANA, "llama", everybody=False)
        assert await store.windows(ReadScope("dana")) == [a_window(everybody=True)]
        assert await store.delete(NOA, "llama", everybody=True)

    async def test_there_is_an_end_to_them(self, store: WindowStore) -> None:
        for number in range(MAX_WINDOWS):
            await store.put(DANA, a_window(f"m{number}"))
        await store.put(DANA, a_window("m0", tokens=512))
        with pytest.raises(Conflict):
            await store.put(DANA, a_window("one more"))
        await store.put(NOA, a_window("one more"))


class TestInMemoryWindows(WindowContract):
    @pytest.fixture
    def store(self) -> WindowStore:
        return InMemoryWindowStore()


@pytest.mark.engine
class TestMongoWindows(WindowContract):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> WindowStore:
        return MongoWindowStore(database)
