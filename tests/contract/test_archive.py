"""The contract of archives, on the in-memory stores and on a real MongoDB."""

import asyncio
from pathlib import Path

import pytest

from rayapp.container.bootstrap import Stores
from rayapp.documents.reading import read_document
from rayapp.documents.service import BookWork
from rayapp.storage.mongo.database import MongoDatabase
from tests.support.archive_contract import ALL, ArchiveContract, erase_rows, imported, rows_of
from tests.support.archive_world import ArchiveWorld, fill, on_stores, settings_in
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

    async def test_a_document_that_waits_for_its_digest_comes_back(
        self, world: ArchiveWorld
    ) -> None:
        await fill(world)
        stores, runtime = world.stores, world.container.runtime
        books = BookWork(stores.books, world.container.memories, read_document, runtime=runtime)
        async with asyncio.timeout(60):
            while await stores.books.claim_digest(token="t", claim_s=0.0) is None:
                await books.run_once()
                await world.work()
        before = await world.exported(kinds=ALL)
        await erase_rows(world)
        assert (await imported(world, before)).complete
        assert rows_of(await world.exported(kinds=ALL)) == rows_of(before)
        assert await stores.books.claim_digest(token="t", claim_s=1.0) is not None
