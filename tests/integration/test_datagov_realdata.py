"""The whole real catalogue: what is made of it, and that a second run writes nothing."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rayapp.bulk.model import Finish, PartitionRow
from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from rayapp.datagov.rules.items import MAX_CHARS, items_of, kind_of
from rayapp.datagov.rules.prepare import prepared
from rayapp.datagov.service import DatagovIngest
from rayapp.memory.item import MemoryItem
from rayapp.storage.datagov.ckan import open_source
from rayapp.storage.datagov.files import FolderSource
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import EDGES, ITEMS, NODES, VERSIONS
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from rayapp.storage.mongo.shared_items import MongoSharedItems
from tests.support.builders import STORED_AT

pytestmark = pytest.mark.realdata
KINDS = {"category": 21, "dataset": 1_187, "resource": 1_960, "expansion": 22}
# The files beside them are dated; these are counts of the catalogue itself.
ANOMALIES = {
    "split_file_missing": 94,
    "split_entry_missing": 127,
    "resource_only_in_map": 1_669,
    "dataset_not_described": 19,
    "dataset_only_described": 25,
    "field_name_is_data": 280,
    "field_name_whitespace": 13,
    "resource_error": 147,
    "resource_without_fields": 860,
    "resource_without_format": 34,
    "dataset_title_repeated": 5,
    "dataset_title_without_hebrew": 15,
    "dataset_without_resources": 5,
    "dataset_without_tags": 178,
}


async def test_every_record_becomes_an_item_of_its_own(realdata: Path) -> None:
    catalogue, anomalies = prepared(await FolderSource(realdata / "datagov").read())
    items = items_of(catalogue, bootstrap.load_texts().expansions.entries(), STORED_AT)
    assert Counter(kind_of(item.memory_id) for item in items) == KINDS
    assert len({item.memory_id for item in items}) == len(items)
    texts = {item.text for item in items if kind_of(item.memory_id) == "resource"}
    assert len(texts) == 1_960
    assert max(len(item.text) for item in items) <= MAX_CHARS
    assert {name: anomalies.counts[name] for name in ANOMALIES} == ANOMALIES
    assert anomalies.counts["category_unknown"] == anomalies.counts["row_unreadable"] == 0
    resources = _facts(items, "resource")
    assert sum(fact["flags"]["error"] for fact in resources) == 147
    assert all(fact["category"] for fact in resources)
    assert not any("24/03/2025" in fact["fields"] for fact in resources)
    filed = Counter(fact["category"] for fact in resources)
    assert (filed["transportation"], filed["environment"], filed["municipal"]) == (510, 127, 7)


async def ingest(database: MongoDatabase, folder: Path, data: Path) -> Finish:
    """One run of the job's work, in this process."""
    work = DatagovIngest(
        open_source(str(folder), data_dir=data, ckan_url="http://127.0.0.1:9", offline=False),
        MongoSharedItems(database),
        MongoMemoryStore(database),
        bootstrap.load_texts().expansions,
        runtime=bootstrap.runtime_of(load_settings(env={}), InMemoryMetrics(), SystemClock()),
        index_wait_s=0.0,
    )
    plan = await work.plan()
    await work.begin(plan.facts)
    rows = []
    for partition in plan.partitions:
        step = await work.step(partition, None)
        rows.append(
            PartitionRow(
                job_id="j", index=partition.index, payload=partition.payload, counts=step.counts
            )
        )
    finish = await work.finish(rows)
    await work.close()
    return finish


@pytest.mark.engine
async def test_a_second_run_writes_nothing(
    database: MongoDatabase, realdata: Path, tmp_path: Path
) -> None:
    first = await ingest(database, realdata / "datagov", tmp_path)
    assert first.complete
    inserted = {kind: row["inserted"] for kind, row in first.report["kinds"].items()}
    assert inserted == KINDS
    assert first.report["graph"]["nodes"] <= 150
    before = await snapshot(database)
    assert before[ITEMS] == sum(KINDS.values())
    second = await ingest(database, realdata / "datagov", tmp_path)
    assert second.complete
    unchanged = {kind: row["unchanged"] for kind, row in second.report["kinds"].items()}
    assert unchanged == KINDS
    assert second.report["graph"]["written"] == second.report["retired"] == 0
    assert await snapshot(database) == before


async def snapshot(database: MongoDatabase) -> dict[str, Any]:
    """Row counts, and the server's own count of the documents that were ever written."""
    counts: dict[str, Any] = {
        name: await database.collection(name).count_documents({})
        for name in (ITEMS, VERSIONS, NODES, EDGES)
    }
    status = await database.client.admin.command("serverStatus")
    written = status["metrics"]["document"]
    return counts | {name: written[name] for name in ("inserted", "updated", "deleted")}


def _facts(items: list[MemoryItem], kind: str) -> list[dict[str, Any]]:
    return [item.source.datagov or {} for item in items if kind_of(item.memory_id) == kind]
