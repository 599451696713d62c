"""The folder of files, the kept snapshots, and the source that the job uses."""

import os
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from rayapp.core.errors import ConfigError
from rayapp.datagov.rules.prepare import prepared
from rayapp.storage.datagov.ckan import SnapshotSource, open_source
from rayapp.storage.datagov.files import FolderSource, words_of_slug
from rayapp.storage.datagov.parquet import KEPT, ParquetSnapshots
from tests.support.catalogue import VEHICLES, WELLS, a_catalogue, many_datasets, write_folder
from tests.support.ckan_server import ckan_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "catalogue", a_catalogue())


async def test_the_files_give_back_the_records(folder: Path) -> None:
    found = await FolderSource(folder).read()
    assert found == a_catalogue()


@pytest.mark.parametrize(
    "name", ["resources_map.json", "catalog.snapshot.json", "org_en.json", "schemas/_index.json"]
)
async def test_a_side_file_may_be_missing(folder: Path, name: str) -> None:
    (folder / name).unlink()
    found = await FolderSource(folder).read()
    assert [one.title for one in found.datasets] == [VEHICLES.title, WELLS.title]
    assert found.odd_counts == {"side_file_missing": 1}
    assert found.oddities == {"side_file_missing": (name,)}


async def test_the_map_names_resources_and_the_catalogue_stands_in(folder: Path) -> None:
    path = folder / "resources_map.json"
    rows = orjson.loads(path.read_bytes())
    rows["datasets"][0]["resources"][0]["name"] = "real name"
    del rows["datasets"][1]["resources"][0]
    rows["datasets"][1]["resources"].append({"id": "more", "name": "unknown"})
    path.write_bytes(orjson.dumps(rows))
    found = await FolderSource(folder).read()
    assert found.datasets[0].resources[0].name == "real name"
    assert found.datasets[1].resources[0].name == "levels"
    assert found.odd_counts == {"resource_not_in_map": 1, "resource_only_in_map": 1}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("resources_map.json", {"datasets": [{"name": "no id"}, 7, {"id": [1]}]}),
        ("resources_map.json", {"datasets": [{"id": "x", "resources": [{}, None, {"id": 7}]}]}),
        ("catalog.snapshot.json", {"datasets": [{"notes": "no id"}, None, 3]}),
        ("catalog.snapshot.json", {"orgs": [{"name": "no title"}, None, 3]}),
        ("catalog.snapshot.json", {"datasets": [{}, {}], "orgs": 7}),
    ],
)
async def test_rows_of_side_files_that_name_nothing_are_counted(
    folder: Path, name: str, rows: object
) -> None:
    (folder / name).write_bytes(orjson.dumps(rows))
    found = await FolderSource(folder).read()
    assert [one.title for one in found.datasets] == [VEHICLES.title, WELLS.title]
    assert found.odd_counts["row_unreadable"] == 3


async def test_what_is_no_text_ends_no_run(folder: Path) -> None:
    """A name may be a year; what is neither text nor number says nothing."""
    path = folder / "enterprise_schemas.json"
    rows = orjson.loads(path.read_bytes())
    rows["datasets"][0] |= {"title": 2024, "organization": {"title": "x"}}
    rows["datasets"][1]["resources"][0] |= {"format": 5, "error": {"code": 404}}
    odd = [{"name": "a", "type": "text", "semantic": 7}, {"name": "b", "semantic": ["phone"]}]
    rows["datasets"][1]["resources"][0]["fields"] = odd
    path.write_bytes(orjson.dumps(rows))
    (folder / "resources_map.json").write_bytes(
        orjson.dumps({"datasets": [{"id": VEHICLES.dataset_id, "name": True, "resources": []}]})
    )
    described = {"id": VEHICLES.dataset_id, "org": ["x"], "notes": 7}
    orgs = [{"title": WELLS.organization, "name": None}]
    (folder / "catalog.snapshot.json").write_bytes(
        orjson.dumps({"datasets": [described], "orgs": orgs})
    )
    made, _ = prepared(await FolderSource(folder).read())
    vehicles, wells = made.datasets
    assert (vehicles.title, vehicles.organization, vehicles.name) == ("2024", "", "")
    assert vehicles.description == "7"
    assert {vehicles.organization_en, wells.organization_en} == {""}
    assert (wells.resources[0].format, wells.resources[0].error) == ("5", "{'code': 404}")
    assert [one.semantic for one in wells.resources[0].fields] == ["7", None]


@pytest.mark.parametrize("index", [[], 7, {"resources": ["a"]}, {"resources": {"a": "b.json"}}])
async def test_a_split_index_of_another_shape_ends_no_run(folder: Path, index: object) -> None:
    (folder / "schemas" / "_index.json").write_bytes(orjson.dumps(index))
    assert len((await FolderSource(folder).read()).datasets) == 2


async def test_an_organisation_without_a_translation_gets_the_words_of_its_slug(
    folder: Path,
) -> None:
    (folder / "org_en.json").write_bytes(b"{}")
    path = folder / "catalog.snapshot.json"
    rows = orjson.loads(path.read_bytes())
    rows["datasets"][0]["org"] = "ministry_of_transport"
    path.write_bytes(orjson.dumps(rows))
    found = await FolderSource(folder).read()
    assert found.datasets[0].organization_en == "Ministry Of Transport"


@pytest.mark.parametrize(
    ("slug", "words"),
    [("beer-sheva", "Beer Sheva"), ("mof", "Mof"), ("", ""), ("123", ""), ("משרד", "")],
)
def test_words_of_slug(slug: str, words: str) -> None:
    assert words_of_slug(slug) == words


async def test_missing_split_files_are_counted_by_file_and_by_resource(folder: Path) -> None:
    (folder / "schemas" / "transportation" / f"{VEHICLES.dataset_id}.json").unlink()
    found = await FolderSource(folder).read()
    assert found.odd_counts == {"split_file_missing": 1, "split_entry_missing": 2}


async def test_rows_that_cannot_be_read_are_left_out_and_counted(folder: Path) -> None:
    path = folder / "enterprise_schemas.json"
    rows = orjson.loads(path.read_bytes())
    rows["datasets"] += [
        None,
        {"title": "no id"},
        {"dataset_id": 7},
        {"dataset_id": "x", "resources": 3},
    ]
    path.write_bytes(orjson.dumps(rows))
    found = await FolderSource(folder).read()
    assert len(found.datasets) == 2
    assert found.odd_counts["row_unreadable"] == 4


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"datasets": {}}', b"\xff"])
async def test_a_catalogue_that_is_none_is_refused(folder: Path, content: bytes) -> None:
    (folder / "enterprise_schemas.json").write_bytes(content)
    with pytest.raises(ConfigError):
        await FolderSource(folder).read()


async def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--source"):
        await FolderSource(tmp_path / "none").read()


# --- snapshots


def names(folder: Path, pattern: str) -> set[str]:
    return {path.name for path in folder.glob(pattern)}


async def test_a_snapshot_gives_back_what_was_kept(tmp_path: Path) -> None:
    catalogue = replace(
        a_catalogue(VEHICLES, replace(WELLS, flags=None), *many_datasets(3)),
        odd_counts={"rows_short": 2},
        oddities={"rows_short": ("a", "b")},
    )
    key = await ParquetSnapshots(tmp_path).keep(catalogue)
    assert key.startswith("folder-")
    assert await ParquetSnapshots(tmp_path).load(key) == catalogue


async def test_equal_records_have_one_key_and_others_another(tmp_path: Path) -> None:
    snapshots = ParquetSnapshots(tmp_path)
    key = await snapshots.keep(a_catalogue())
    later = replace(a_catalogue(), generated_at="2027")
    assert await snapshots.keep(later) == key
    renamed = a_catalogue(replace(VEHICLES, title="אחר"), WELLS)
    assert await snapshots.keep(renamed) != key
    assert len(names(tmp_path, "*")) == 2


async def test_a_table_that_did_not_answer_is_kept_as_such(tmp_path: Path) -> None:
    snapshots = ParquetSnapshots(tmp_path)
    whole = await snapshots.keep(a_catalogue())
    unread = replace(a_catalogue(), unread=(WELLS.resources[0].resource_id,))
    key = await snapshots.keep(unread)
    assert key != whole
    assert await snapshots.load(key) == unread
    assert await snapshots.load(whole) == a_catalogue()


async def test_the_newest_of_an_origin_is_found_and_old_ones_go(tmp_path: Path) -> None:
    snapshots = ParquetSnapshots(tmp_path)
    assert await snapshots.newest("ckan") is None
    await snapshots.keep(a_catalogue())
    keys = []
    for number in range(KEPT + 2):
        made = replace(a_catalogue(*many_datasets(number + 1)), origin="ckan")
        keys.append(await snapshots.keep(made))
        os.utime(tmp_path / f"{keys[-1]}.parquet", ns=(number, number))
    assert await snapshots.newest("ckan") == keys[-1]
    assert names(tmp_path, "ckan-*") == {f"{key}.parquet" for key in keys[-KEPT:]}
    assert len(names(tmp_path, "folder-*")) == 1


async def test_a_missing_or_broken_snapshot_is_refused(tmp_path: Path) -> None:
    snapshots = ParquetSnapshots(tmp_path)
    key = await snapshots.keep(a_catalogue())
    (tmp_path / f"{key}.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(ConfigError, match="delete it"):
        await snapshots.load(key)
    (tmp_path / f"{key}.parquet").unlink()
    with pytest.raises(ConfigError, match="shared storage"):
        await snapshots.load(key)
    with pytest.raises(ConfigError, match="names no snapshot"):
        await snapshots.load("../../etc/passwd")


# --- the source of the job


def source_of(folder: Path, data: Path, **changes: object) -> SnapshotSource:
    given = {"data_dir": data, "ckan_url": "http://127.0.0.1:9", "offline": False, **changes}
    return open_source(str(folder), **given)  # type: ignore[arg-type]


async def test_workers_load_what_the_driver_read(folder: Path, tmp_path: Path) -> None:
    driver, worker = source_of(folder, tmp_path), source_of(folder, tmp_path)
    key, read = await driver.read()
    write_folder(folder, a_catalogue(WELLS))
    assert await worker.load(key) == read == a_catalogue()
    assert driver.name == str(folder)


async def test_an_offline_run_needs_neither_folder_nor_site(tmp_path: Path) -> None:
    async with ckan_server((VEHICLES, WELLS)) as site:
        online = open_source("ckan", data_dir=tmp_path, ckan_url=site.url, offline=False)
        key, read = await online.read()
        await online.close()
    offline = open_source("ckan", data_dir=tmp_path, ckan_url=site.url, offline=True)
    assert await offline.read() == (key, read)
    await offline.close()


async def test_an_offline_run_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    source = open_source("ckan", data_dir=tmp_path, ckan_url="http://127.0.0.1:9", offline=True)
    with pytest.raises(ConfigError, match="without --offline"):
        await source.read()
    await source.close()
