"""The contract of archives, on the in-memory stores and on a real MongoDB."""

from pathlib import Path

import pytest

from rayapp.container.bootstrap import Stores
from rayapp.storage.mongo.database import MongoDatabase
from tests.support.archive_contract import ArchiveContract
from tests.support.archive_world import ArchiveWorld, on_stores, settings_in
from tests.support.harness import Harness
from tests.support.mongo_server import MongoServer


class TestInMemoryArchive(ArchiveContract):
    @pytest.fixture
    async def world(self, tmp_path: Path) -> ArchiveWorld:
        world = Harness.ready(settings_in(tmp_path))
        return ArchiveWorld(world.container)


@pytest.mark.engine
class TestMongoArchive(ArchiveContract):
    @pytest.fixture
    async def world(
        self, tmp_path: Path, mongo: MongoServer, database: MongoDatabase
    ) -> ArchiveWorld:
        settings = settings_in(tmp_path, mongo=mongo.settings().model_dump())
        return await on_stores(Stores(settings), settings)
