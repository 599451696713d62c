"""The ingest job's work, driven by hand on the in-memory stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest

from jobs.datagov_ingest import INDEX_WAIT_S, SPEC
from jobs.job_arguments import params_of, parser_of
from rayapp.bulk.model import Finish, PartitionRow, PartitionState, Plan, Step
from rayapp.container import bootstrap
from rayapp.core.errors import ConfigError, StoreDown
from rayapp.core.ids import SYSTEM_USER
from rayapp.datagov.ports import Catalogue, Dataset
from rayapp.datagov.service import SLICE, DatagovIngest
from rayapp.memory.item import Status
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import DATAGOV_TIERS, Tier
from tests.support.catalogue import VEHICLES, WELLS, a_catalogue, many_datasets
from tests.support.harness import Harness

SYSTEM = ReadScope(SYSTEM_USER)
ALL = ItemFilter(tiers=DATAGOV_TIERS)
DOMAINS = 22


@dataclass
class MemorySource:
    """A `CatalogueSource` whose snapshots are kept in a mapping that workers share."""

    catalogue: Catalogue
    kept: dict[str, Catalogue] = field(default_factory=dict)
    loads: int = 0
    name: str = "ckan"

    async def read(self) -> tuple[str, Catalogue]:
        key = f"key-{hash(self.catalogue.datasets)}"
        self.kept[key] = self.catalogue
        return key, self.catalogue

    async def load(self, key: str) -> Catalogue:
        self.loads += 1
        return self.kept[key]

    async def close(self) -> None:
        pass


class Rig:
    """Runs the job as the frame does, one process or one per call."""

    def __init__(self, harness: Harness, source: MemorySource) -> None:
        self.harness, self.source = harness, source

    def work(self, wait_s: float = 0.0) -> DatagovIngest:
        runtime = bootstrap.runtime_of(
            self.harness.settings, self.harness.metrics, self.harness.clock
        )
        return DatagovIngest(
            self.source,
            self.harness.shared,
            self.harness.items,
            bootstrap.load_texts().expansions,
            runtime=runtime,
            index_wait_s=wait_s,
        )

    async def run(self, *datasets: Dataset) -> Finish:
        if datasets:
            self.source.catalogue = a_catalogue(*datasets)
        plan = await self.work().plan()
        rows = [await self.partition(plan, index) for index in range(len(plan.partitions))]
        return await self.finish(plan, rows)

    async def partition(self, plan: Plan, index: int) -> PartitionRow:
        """In a worker of its own."""
        worker = self.work()
        await worker.begin(plan.facts)
        step = await worker.step(plan.partitions[index], None)
        assert step.cursor is None
        return row_of(plan, index, step)

    async def finish(self, plan: Plan, rows: Sequence[PartitionRow]) -> Finish:
        driver = self.work()
        await driver.begin(plan.facts)
        return await driver.finish(rows)

    async def texts(self) -> dict[str, str]:
        page = await self.harness.items.page(SYSTEM, ALL, ItemQuery(sort="updated", limit=10_000))
        return {item.memory_id: item.text for item in page.items}


def row_of(plan: Plan, index: int, step: Step) -> PartitionRow:
    return PartitionRow(
        job_id="j",
        index=index,
        payload=plan.partitions[index].payload,
        state=PartitionState.DONE,
        done=step.done,
        failed=step.failed,
        counts=step.counts,
    )


def counts_of(finish: Finish, name: str) -> dict[str, int]:
    kinds: Mapping[str, Mapping[str, int]] = finish.report["kinds"]
    return {kind: row[name] for kind, row in kinds.items() if row[name]}


@pytest.fixture
async def rig() -> Rig:
    return Rig(await Harness.open(), MemorySource(a_catalogue()))


async def test_the_whole_catalogue_is_brought_in_once(rig: Rig) -> None:
    first = await rig.run()
    assert first.complete
    assert orjson.loads(orjson.dumps(first.report)) == first.report
    assert counts_of(first, "inserted") == {
        "category": 21,
        "dataset": 2,
        "resource": 3,
        "expansion": DOMAINS,
    }
    assert first.report["graph"] == {"nodes": 24, "edges": 23, "written": 47}
    assert len(await rig.texts()) == 21 + 2 + 3 + DOMAINS

    await rig.harness.drain()
    rig.harness.shared.calls.clear()
    second = await rig.run()
    assert counts_of(second, "inserted") == counts_of(second, "updated") == {}
    assert counts_of(second, "unchanged") == counts_of(first, "inserted")
    assert (second.report["retired"], second.report["graph"]["written"]) == (0, 0)
    assert second.report["index"] == {"done": True, "waited_s": 0.0, "pending": 0, "failed": 0}
    assert second.complete


async def test_users_find_a_dataset_in_either_language(rig: Rig) -> None:
    await rig.run(VEHICLES, WELLS, *many_datasets(20))
    await rig.harness.drain()
    for query, dataset in (("כלי רכב פרטיים", VEHICLES), ("water levels in wells", WELLS)):
        found = await rig.harness.found(query, tiers=(Tier.DATAGOV_SCHEMA,))
        ids = [f"datagov_dataset_{dataset.dataset_id}"]
        ids += [f"datagov_resource_{one.resource_id}" for one in dataset.resources]
        assert found[0] in ids


async def test_only_what_changed_is_written(rig: Rig) -> None:
    await rig.run()
    table = replace(VEHICLES.resources[0], total_records=5_000_000)
    changed = replace(VEHICLES, resources=(table, VEHICLES.resources[1]))
    second = await rig.run(changed, WELLS)
    # The table, its dataset and its category count the records; nothing else speaks of them.
    assert counts_of(second, "updated") == {"category": 1, "dataset": 1, "resource": 1}
    assert counts_of(second, "inserted") == {}


async def test_what_left_the_catalogue_is_archived_and_comes_back(rig: Rig) -> None:
    have = many_datasets(10)
    await rig.run(*have)
    second = await rig.run(*have[:9])
    assert second.report["retired"] == 2
    assert counts_of(second, "retired") == {"dataset": 1, "resource": 1}
    assert second.complete
    assert f"datagov_dataset_{have[9].dataset_id}" not in await rig.texts()
    third = await rig.run(*have)
    assert counts_of(third, "updated")["dataset"] == 1
    assert f"datagov_dataset_{have[9].dataset_id}" in await rig.texts()


async def test_a_source_that_came_back_much_smaller_retires_nothing(rig: Rig) -> None:
    have = many_datasets(10)
    await rig.run(*have)
    second = await rig.run(*have[:3])
    assert not second.complete
    assert second.report["retired"] == 0
    assert second.report["kept_although_gone"] == 14
    assert "3 of 10 dataset" in second.report["retire_refused"]
    assert f"datagov_dataset_{have[9].dataset_id}" in await rig.texts()
    assert second.report["graph"]["written"] == 0


async def test_a_source_that_was_cut_short_is_no_success(rig: Rig) -> None:
    rig.source.catalogue = replace(a_catalogue(), odd_counts={"rows_short": 3})
    finish = await rig.run()
    assert not finish.complete
    assert counts_of(finish, "inserted")["dataset"] == 2


def unanswered(*datasets: Dataset, unread: Dataset) -> Catalogue:
    """A catalogue in which the first table of one dataset did not answer."""
    table = unread.resources[0]
    silent = replace(table, fields=(), total_records=None)
    without = replace(unread, resources=(silent, *unread.resources[1:]))
    return replace(
        a_catalogue(*(without if one is unread else one for one in datasets)),
        odd_counts={"fields_unread": 1},
        unread=(table.resource_id,),
    )


async def test_what_is_stored_of_a_table_that_does_not_answer_stays(rig: Rig) -> None:
    await rig.run()
    before = await rig.texts()
    renamed = replace(WELLS, title="Levels of water in wells")
    rig.source.catalogue = unanswered(VEHICLES, renamed, unread=VEHICLES)
    would = (await rig.work().plan()).facts["would"]
    second = await rig.run()
    after = await rig.texts()
    assert not second.complete
    # What did answer is brought in: the dataset, its table, its category.
    assert counts_of(second, "updated") == {"category": 1, "dataset": 1, "resource": 1}
    assert (would["update"], would["insert"], would["retire"]) == (3, 0, 0)
    assert second.report["retired"] == 0
    for memory_id in (
        f"datagov_dataset_{VEHICLES.dataset_id}",
        f"datagov_resource_{VEHICLES.resources[0].resource_id}",
        "datagov_category_transportation",
    ):
        assert after[memory_id] == before[memory_id]
    third = await rig.run(VEHICLES, renamed)
    assert third.complete
    assert counts_of(third, "updated") == counts_of(third, "inserted") == {}


async def test_a_new_table_that_does_not_answer_is_found_by_its_title_and_completed_later(
    rig: Rig,
) -> None:
    rig.source.catalogue = unanswered(VEHICLES, WELLS, unread=WELLS)
    first = await rig.run()
    assert not first.complete
    await rig.harness.drain()
    found = await rig.harness.found("Water levels in wells", tiers=(Tier.DATAGOV_SCHEMA,))
    assert found[0] in await rig.texts()
    resource = f"datagov_resource_{WELLS.resources[0].resource_id}"
    assert "WellName" not in (await rig.texts())[resource]
    second = await rig.run(VEHICLES, WELLS)
    assert second.complete
    assert counts_of(second, "updated") == {"category": 1, "dataset": 1, "resource": 1}
    assert "WellName" in (await rig.texts())[resource]


async def test_known_anomalies_are_reported_and_are_no_failures(rig: Rig) -> None:
    rig.source.catalogue = replace(a_catalogue(), odd_counts={"split_file_missing": 94})
    finish = await rig.run()
    assert finish.complete
    found = {row["kind"]: row["count"] for row in finish.report["anomalies"]}
    assert found["split_file_missing"] == 94
    assert found["resource_error"] == 1


async def test_an_empty_catalogue_is_refused_before_anything_is_written(rig: Rig) -> None:
    await rig.run()
    before = await rig.texts()
    rig.source.catalogue = Catalogue(origin="ckan")
    with pytest.raises(ConfigError, match="no datasets"):
        await rig.work().plan()
    assert await rig.texts() == before


async def test_a_plan_writes_nothing_and_says_what_would_be_done(rig: Rig) -> None:
    have = many_datasets(4)
    await rig.run(*have)
    before = await rig.texts()
    rig.source.catalogue = a_catalogue(*have[:3], VEHICLES)
    rig.harness.shared.calls.clear()
    plan = await rig.work().plan()
    assert await rig.texts() == before
    assert set(rig.harness.shared.calls) == {"record_hashes"}
    # New: a dataset with two resources. Changed: the category that lost one and the one that won.
    assert plan.facts["would"] == {"insert": 3, "update": 2, "unchanged": 47, "retire": 2}
    assert plan.facts["source"] == "ckan"
    # Facts, shares and the report cross processes and the truth as plain JSON.
    assert orjson.loads(orjson.dumps(plan.facts)) == plan.facts
    assert all(orjson.loads(orjson.dumps(one.payload)) == one.payload for one in plan.partitions)
    assert plan.total == sum(len(one.payload["ids"]) for one in plan.partitions)


async def test_partitions_are_slices_of_one_kind(rig: Rig) -> None:
    rig.source.catalogue = a_catalogue(*many_datasets(2 * SLICE + 1))
    plan = await rig.work().plan()
    sizes = [(one.payload["kind"], len(one.payload["ids"])) for one in plan.partitions]
    assert sizes == [
        ("category", 21),
        *[("dataset", n) for n in (SLICE, SLICE, 1)],
        *[("resource", n) for n in (SLICE, SLICE, 1)],
        ("expansion", DOMAINS),
    ]
    assert [one.index for one in plan.partitions] == list(range(len(sizes)))


async def test_a_killed_job_goes_on_to_the_same_result(rig: Rig) -> None:
    """Steps whose checkpoint was lost run twice, the finish too."""
    have = many_datasets(SLICE + 5)
    rig.source.catalogue = a_catalogue(*have)
    plan = await rig.work().plan()
    for index in (1, 3, 1):
        await rig.partition(plan, index)
    # The source changed meanwhile: the job goes on with what it read.
    rig.source.catalogue = a_catalogue(*have[:1])
    rows = [await rig.partition(plan, index) for index in range(len(plan.partitions))]
    first = await rig.finish(plan, rows)
    second = await rig.finish(plan, rows)
    assert first.complete
    assert second.complete
    assert second.report["graph"]["written"] == 0
    stored = await rig.harness.shared.record_hashes()
    assert len(stored) == plan.total
    assert {status for _, status in stored.values()} == {Status.ACTIVE}
    page = await rig.harness.items.page(SYSTEM, ALL, ItemQuery(sort="updated", limit=10_000))
    assert {item.version for item in page.items} == {1}


async def test_the_driver_does_not_read_its_snapshot_again(rig: Rig) -> None:
    work = rig.work()
    plan = await work.plan()
    await work.begin(plan.facts)
    assert rig.source.loads == 0
    await rig.work().begin(plan.facts)
    assert rig.source.loads == 1


async def test_records_of_the_plan_that_are_unknown_count_as_failed(rig: Rig) -> None:
    plan = await rig.work().plan()
    worker = rig.work()
    await worker.begin(plan.facts)
    payload = {"kind": "dataset", "ids": ["datagov_dataset_none"]}
    step = await worker.step(replace(plan.partitions[1], payload=payload), None)
    assert (step.done, step.failed) == (1, 1)
    finish = await rig.finish(plan, [row_of(plan, 1, step)])
    assert not finish.complete
    assert finish.report["failed"] == 1


async def test_the_index_is_waited_for_within_the_limit(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = rig.harness.clock
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)
        clock.advance(seconds)
        if len(naps) == 3:
            await rig.harness.drain()

    monkeypatch.setattr("rayapp.datagov.service.asyncio.sleep", sleep)
    plan = await rig.work().plan()
    rows = [await rig.partition(plan, index) for index in range(len(plan.partitions))]
    driver = rig.work(wait_s=60.0)
    await driver.begin(plan.facts)
    finish = await driver.finish(rows)
    assert finish.report["index"]["done"] is True
    assert len(naps) == 3


async def test_items_that_still_wait_are_reported_and_items_that_gave_up_are_failures(
    rig: Rig,
) -> None:
    finish = await rig.run()
    assert finish.complete
    index = finish.report["index"]
    assert (index["done"], index["pending"]) == (False, 21 + 2 + 3 + DOMAINS)


async def test_a_store_that_is_away_stops_the_step(rig: Rig) -> None:
    plan = await rig.work().plan()
    rig.harness.shared.error = StoreDown("away")
    with pytest.raises(StoreDown):
        await rig.partition(plan, 0)


async def test_a_step_before_begin_is_refused(rig: Rig) -> None:
    plan = await rig.work().plan()
    with pytest.raises(ConfigError):
        await rig.work().step(plan.partitions[0], None)


# --- the command line


def params(*argv: str) -> dict[str, Any]:
    return params_of(SPEC, parser_of(SPEC).parse_args(list(argv)))


def test_arguments_that_were_not_given_are_not_in_the_parameters() -> None:
    assert params() == {}
    assert params("--source", "ckan") == {"source": "ckan"}
    assert params("--source", "ckan", "--offline") == {"source": "ckan", "offline": True}
    assert params("--index-wait", "5") == {"index_wait_s": 5.0}
    assert params("--index-wait", "-5") == {"index_wait_s": 0.0}
    assert INDEX_WAIT_S > 0


def test_a_folder_is_stored_by_its_whole_path() -> None:
    source = params("--source", "some/folder")["source"]
    assert source.startswith("/")
    assert source.endswith("/some/folder")


def test_the_spec_names_the_module() -> None:
    assert (SPEC.kind, SPEC.writes) == ("datagov_ingest", True)
