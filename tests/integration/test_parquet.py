"""Everything of all users as Parquet: what pyarrow reads is what MongoDB holds."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from rayapp.bulk.model import PartitionRow
from rayapp.container.bootstrap import Stores
from rayapp.core.runtime import SystemClock
from rayapp.portability import parquet
from rayapp.portability.parquet import ParquetExport, ParquetPlace
from rayapp.portability.rules.collections import EXPORTED, ITEMS
from rayapp.storage.backup_files import open_backups
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.raw_rows import MongoAllRows
from tests.running import RunningService
from tests.support.archive_world import ArchiveWorld, fill, on_stores, settings_in
from tests.support.mongo_server import MongoServer
from tests.support.parquet_reading import dataset, manifest_of, said

pytestmark = pytest.mark.engine
LIMIT_S = 300.0


async def stored(database: MongoDatabase) -> dict[str, list[dict[str, Any]]]:
    """What a dataset of each collection is to hold, in the order of the store."""
    found = {}
    for one in EXPORTED:
        where = {"user_id": {"$ne": "system"}}
        where |= {"status": {"$ne": "deleted"}} if one.name == ITEMS else {}
        rows = database.collection(one.name).find(where, dict.fromkeys(one.renewed, 0))
        found[one.name] = [said(row) async for row in rows.sort("_id", 1)]
    return found


async def test_what_pyarrow_reads_is_what_the_store_holds(
    tmp_path: Path, mongo: MongoServer, database: MongoDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two users, one of them of a tenant, in parts of three rows; ids of several types."""
    monkeypatch.setattr(parquet, "PART_ROWS", 3)
    settings = settings_in(tmp_path, mongo=mongo.settings().model_dump())
    world = await on_stores(Stores(settings), settings)
    await fill(world)
    await fill(ArchiveWorld(world.container, "noa"), "Acre")
    versions = database.collection("memory_versions")
    row = {"user_id": "acme/dana", "memory_id": "m", "text": "עכו", "added_later": [1, {"a": None}]}
    await versions.insert_many(
        [row | {"_id": one, "version": n} for n, one in enumerate((1, "text", {"a": 1}), 1)]
    )
    items = database.collection(ITEMS)
    shared = await items.find_one({})
    assert shared is not None
    mine = {"_id": "x", "user_id": "system", "point_id": "x", "memory_id": "x"}
    await items.insert_one({**shared, **mine})
    place = ParquetPlace(str(tmp_path / "out"), open_backups)
    export = ParquetExport(MongoAllRows(database), place, EXPORTED, SystemClock())
    plan = await export.plan()
    await export.begin(plan.facts)
    rows = []
    for one in plan.partitions:
        step = await export.step(one, None)
        samples = step.samples
        rows.append(PartitionRow(job_id="j", index=one.index, payload=one.payload, samples=samples))
    await export.finish(rows)
    name, wanted = str(plan.facts["dataset"]), await stored(database)
    manifest = manifest_of(place, name)
    for collection in EXPORTED:
        assert dataset(place, name, collection) == wanted[collection.name], collection.name
        assert manifest.collections[collection.name].rows == len(wanted[collection.name])
    assert len(manifest.collections["memory_versions"].parts) > 1
    empty = {one.name for one in EXPORTED if not manifest.collections[one.name].rows}
    assert empty <= {"books", "events"}


@pytest.mark.ray
def test_the_job_writes_it_with_workers_and_again(service: RunningService, tmp_path: Path) -> None:
    with service.client("parquet-7f") as http:
        for number in range(30):
            body = {"text": f"Dana חונה on floor {number}", "memory_id": f"p-{number}"}
            assert http.post("/api/memory/store", json=body).is_success
    service.indexed()
    report = tmp_path / "report.json"
    place = ParquetPlace(str(tmp_path / "out"), open_backups)
    command = [sys.executable, "-m", "jobs.export_parquet", "--data-dir", str(service.folder)]
    for run in range(2):
        ran = subprocess.run(
            [*command, "--to", place.where, "--concurrency", "2", "--out", str(report)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert len(list(Path(place.where).iterdir())) == run + 1
    said_of_it = orjson.loads(report.read_bytes())["report"]
    name = said_of_it["dataset"]
    manifest = manifest_of(place, name)
    assert sum(one.rows for one in manifest.collections.values()) == said_of_it["rows"]

    async def wanted() -> dict[str, list[dict[str, Any]]]:
        database = MongoDatabase(service.settings.mongo)
        try:
            return await stored(database)
        finally:
            await database.close()

    held = asyncio.run(wanted())
    for collection in EXPORTED:
        if collection.name in manifest.collections:
            assert dataset(place, name, collection) == held[collection.name], collection.name
    mine = [row for row in held[ITEMS] if row["user_id"] == "parquet-7f"]
    assert len(mine) == 30
