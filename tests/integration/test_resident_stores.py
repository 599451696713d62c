"""Resident views over a real MongoDB and the real embedded engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rayapp.container.services import Container
from rayapp.memory.requests import NewMemory
from rayapp.search import resident
from rayapp.storage.mongo.changes import MongoChangeLog
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import ITEMS
from tests.support.engine_container import engine_container
from tests.support.resident_contract import ME, MINE, NOT_REMEMBERED, ResidentContract, asked

pytestmark = pytest.mark.engine


class TestOnServers(ResidentContract):
    @pytest.fixture
    async def container(self, tmp_path: Path) -> AsyncIterator[Container]:
        async with engine_container(tmp_path, graph=NOT_REMEMBERED) as container:
            yield container

    async def test_what_was_announced_is_read_again_until_it_must_be_done(
        self, container: Container, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A search between the note of a write and the write itself does not miss it for good."""
        monkeypatch.setattr(resident, "SETTLE_S", 15.0)
        stored = await container.memories.store(ME, NewMemory(text="the boiler is off"))
        item = await container.memories.get(MINE, str(stored.memory_id))
        await asked(container)
        database = MongoDatabase(container.settings.mongo)
        await MongoChangeLog(database).note([(ME.user_id, item.point_id)])
        await asked(container)
        await database.collection(ITEMS).update_one(
            {"point_id": item.point_id}, {"$set": {"tags": ["late"]}}
        )
        await database.close()
        assert [one.tags for one, _ in (await asked(container))[0]] == [("late",)]
