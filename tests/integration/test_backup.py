"""Backups of the whole store on a real MongoDB: of one moment, and back as they were."""

import asyncio
from pathlib import Path

import pytest

from rayapp.container.bootstrap import Stores
from rayapp.core.errors import Conflict
from rayapp.core.runtime import SystemClock
from rayapp.portability.backup import BackupService
from rayapp.storage.backup_files import FolderBackups
from rayapp.storage.mongo.backup import MongoBackups
from rayapp.storage.mongo.database import MongoDatabase
from tests.support.archive_world import ArchiveWorld, ask, fill, on_stores, settings_in
from tests.support.mongo_server import MongoServer

pytestmark = pytest.mark.engine


@pytest.fixture
async def world(tmp_path: Path, mongo: MongoServer, database: MongoDatabase) -> ArchiveWorld:
    settings = settings_in(tmp_path, mongo=mongo.settings().model_dump())
    return await on_stores(Stores(settings), settings)


@pytest.fixture
def service(tmp_path: Path, mongo: MongoServer) -> BackupService:
    return BackupService(
        MongoBackups(mongo.settings()), FolderBackups(tmp_path / "kept"), SystemClock()
    )


async def rows(database: MongoDatabase) -> dict[str, list[dict[str, object]]]:
    names = MongoBackups.names
    return {
        name: await database.collection(name).find({}, sort=[("_id", 1)]).to_list()
        for name in names
    }


async def test_a_backup_comes_back_as_it_was(
    world: ArchiveWorld, service: BackupService, database: MongoDatabase
) -> None:
    await fill(world)
    await fill(ArchiveWorld(world.container, "noa"), "Acre")
    before = await rows(database)
    made, _ = await service.create()
    verified = await service.verify(made.name)
    assert verified.manifest.rows == sum(map(len, before.values()))
    living = [row for row in before["memory_items"] if row["status"] != "deleted"]
    assert verified.searches == len(living) > 5
    names = await database.client.list_database_names()
    assert not [name for name in names if name.startswith("rayapp-verify")]
    with pytest.raises(Conflict, match="not empty"):
        await service.restore(made.name)
    async with world.http() as http:
        await ask(http, "POST", "/api/memory/store", {"text": "Later", "memory_id": "later"})
    await service.restore(made.name, replace=True)
    assert await rows(database) == before
    await service.restore(made.name, replace=True)
    assert await rows(database) == before


async def test_what_is_written_meanwhile_is_in_none_or_in_all_of_it(
    world: ArchiveWorld, service: BackupService, database: MongoDatabase
) -> None:
    """A memory that was edited before the backup began is there with its version."""
    stop = asyncio.Event()

    async with world.http() as http:
        await ask(http, "POST", "/api/memory/store", {"text": "0", "memory_id": "m"})

    async def edit() -> None:
        async with world.http() as http:
            for number in range(1, 10_000):
                await ask(http, "PATCH", "/api/memory/items/m", {"text": f"text {number}"})
                if stop.is_set():
                    return

    editing = asyncio.create_task(edit())
    await asyncio.sleep(0.3)
    made = [(await service.create())[0] for _ in range(5)]
    stop.set()
    await editing
    for one in made:
        await service.restore(one.name, replace=True)
        item = await database.collection("memory_items").find_one({"memory_id": "m"})
        versions = await database.collection("memory_versions").count_documents({})
        assert item is not None
        assert item["version"] == versions + 1
