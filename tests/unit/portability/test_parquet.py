"""Rows as columns of Parquet and back, and the job that writes them, over rows in memory."""

import hashlib
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.bulk.model import Partition, PartitionRow, Step
from rayapp.bulk.params import PARQUET, checked_params
from rayapp.core.errors import InvalidInput
from rayapp.portability import parquet
from rayapp.portability.parquet import (
    PART_BYTES,
    PART_ROWS,
    ParquetExport,
    ParquetPlace,
    rows_of_a_part,
)
from rayapp.portability.ports import RowsSize
from rayapp.portability.rules.archive import Row
from rayapp.portability.rules.collections import BY_NAME, EXPORTED, ITEMS, Collection
from rayapp.portability.rules.columns import OTHER, ColumnKind, columns_of, fits, values_of
from rayapp.storage.backup_files import open_backups
from tests.support.clock import FakeClock
from tests.support.examples import examples
from tests.support.parquet_reading import dataset, manifest_of, said, whole_row

AT = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        (ColumnKind.TEXT, "דנה", True),
        (ColumnKind.TEXT, 1, False),
        (ColumnKind.WHOLE, -(2**63), True),
        (ColumnKind.WHOLE, True, False),
        (ColumnKind.WHOLE, 1.0, False),
        (ColumnKind.NUMBER, 0.5, True),
        (ColumnKind.NUMBER, 2**53, True),
        (ColumnKind.NUMBER, 2**53 + 1, False),
        (ColumnKind.NUMBER, False, False),
        (ColumnKind.FLAG, False, True),
        (ColumnKind.FLAG, 0, False),
        (ColumnKind.TIME, AT, True),
        (ColumnKind.TIME, "2026-05-01", False),
        (ColumnKind.BYTES, b"x", True),
        (ColumnKind.TEXTS, ["a", "ב"], True),
        (ColumnKind.TEXTS, ["a", None], False),
        (ColumnKind.TEXTS, "a", False),
        (ColumnKind.WHOLES, [1, 2], True),
        (ColumnKind.WHOLES, [1, True], False),
    ],
)
def test_a_column_holds_a_value_as_it_is_or_not(kind: ColumnKind, value: Any, held: bool) -> None:
    assert fits(kind, value) is held


def test_every_collection_of_an_export_has_columns_that_begin_with_whose_it_is() -> None:
    for collection in EXPORTED:
        names = [one.name for one in columns_of(collection)]
        assert names[:2] == ["org_id", "user_id"]
        assert names[-1] == OTHER
        assert len(set(names)) == len(names)
        assert not collection.renewed & set(names)
        assert set(collection.key) <= set(names)


def test_the_owner_of_a_row_is_a_tenant_and_a_user() -> None:
    kept = BY_NAME["memory_deletions"]
    for owner, org, user in (("dana", None, "dana"), ("acme/דנה", "acme", "דנה")):
        found = values_of(kept, {"user_id": owner, "tier": "working", "count": 3})
        assert found == {"org_id": org, "user_id": user, "tier": "working", "count": 3, OTHER: None}


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
    st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)).map(
        lambda at: at.replace(tzinfo=UTC, microsecond=at.microsecond // 1000 * 1000)
    ),
    st.binary(max_size=12),
)
names = st.text("abcdefgh", min_size=1, max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(300))
@given(st.data())
def test_any_row_comes_back_as_it_was(data: st.DataObject) -> None:
    """Whatever its fields hold, of this version or of another one."""
    collection = data.draw(st.sampled_from(EXPORTED))
    known = [one.name for one in columns_of(collection)[2:-1]]
    row = data.draw(st.dictionaries(st.sampled_from(known) | names, values, max_size=8))
    row = {name: value for name, value in row.items() if name not in ("_id", "user_id", "org_id")}
    table = parquet.pa.Table.from_pylist(
        [values_of(collection, row | {"user_id": "dana"})], schema=parquet.schema_of(collection)
    )
    assert whole_row(collection, table.to_pylist()[0]) == said(row | {"user_id": "dana"})


def test_parts_are_bounded_in_rows_and_in_bytes() -> None:
    assert rows_of_a_part(RowsSize(0, 0)) == PART_ROWS
    assert rows_of_a_part(RowsSize(1_000_000, 1_000_000_000)) == PART_ROWS
    assert rows_of_a_part(RowsSize(100, 100 * (4 << 20))) == PART_BYTES // (4 << 20)
    assert rows_of_a_part(RowsSize(2, 200 << 20)) == 1


def test_no_request_asks_for_it() -> None:
    with pytest.raises(InvalidInput, match="command line"):
        checked_params(PARQUET, {})


# --- the job


class InMemoryRows:
    """Implements `portability.parquet.AllRows`: a place is a number."""

    def __init__(self, rows: dict[str, list[Row]]) -> None:
        self.rows = rows

    async def size(self, collection: Collection) -> RowsSize:
        found = self.rows.get(collection.name, [])
        return RowsSize(len(found), 100 * len(found))

    async def places(self, collection: Collection, every: int) -> list[str]:
        return [str(at) for at in range(every, len(self.rows[collection.name]), every)]

    async def pages(
        self, collection: Collection, after: str | None, until: str | None
    ) -> AsyncIterator[tuple[list[Row], int]]:
        rows = self.rows.get(collection.name, [])
        rows = rows[int(after or 0) : None if until is None else int(until)]
        for start in range(0, len(rows), 300):
            yield [dict(row) for row in rows[start : start + 300]], 30_000


def versions(count: int) -> list[Row]:
    chosen = random.Random(1)
    return [
        {
            "user_id": f"user-{chosen.randrange(40)}",
            "memory_id": f"m-{number}",
            "version": number,
            "text": f"דנה parks at {number}",
            "tags": ["home"] * (number % 3),
            "stats": {"uses": number, "last_used_at": AT + timedelta(days=number % 90)},
            "at": AT,
        }
        for number in range(count)
    ]


async def worked(
    export: ParquetExport, plan: Any, partitions: Sequence[Partition]
) -> list[PartitionRow]:
    await export.begin(plan.facts)
    rows = []
    for one in partitions:
        step: Step = await export.step(one, None)
        assert step.cursor is None
        row = PartitionRow(
            job_id="j", index=one.index, payload=one.payload, done=step.done, samples=step.samples
        )
        rows.append(row)
    return rows


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> ParquetPlace:
    where = str(tmp_path / "out") if request.param == "folder" else f"memory://{uuid4().hex}"
    return ParquetPlace(where, open_backups)


async def test_parts_of_all_rows_and_a_manifest_that_is_true(
    place: ParquetPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "PART_ROWS", 1_000)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 400)
    held = InMemoryRows({"memory_versions": versions(2_500)})
    export = ParquetExport(held, place, EXPORTED, FakeClock())
    plan = await export.plan()
    assert (plan.total, len(plan.partitions)) == (2_500, len(EXPORTED) + 2)
    rows = await worked(export, plan, plan.partitions)
    # A worker that died after its file, and one in the middle of it: neither counts.
    await worked(export, plan, plan.partitions[:3])
    folder = str(plan.facts["dataset"])
    with place.folder(folder, "memory_versions").writing("part-00000-x.parquet.part"):
        """As an unfinished one is named."""
    finish = await export.finish(rows)
    assert finish.report["rows"] == 2_500
    assert finish.report["files"] == len(plan.partitions)
    manifest = manifest_of(place, folder)
    for collection in EXPORTED:
        one, files = manifest.collections[collection.name], place.folder(folder, collection.name)
        assert sorted(part.file for part in one.parts) == sorted(name for name, _ in files.listed())
        for part in one.parts:
            with files.reading(part.file) as file:
                data = file.read()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (part.bytes, part.sha256)
        found = dataset(place, folder, collection)
        assert len(found) == one.rows
        assert found == [said(row) for row in held.rows.get(collection.name, [])]
    again = await export.finish(rows)
    assert again == finish


async def test_a_part_that_was_cut_short_has_no_name(tmp_path: Path) -> None:
    class Dying(InMemoryRows):
        async def pages(
            self, collection: Collection, after: str | None, until: str | None
        ) -> AsyncIterator[tuple[list[Row], int]]:
            yield self.rows[collection.name][:10], 10
            raise ConnectionError

    rows = Dying({ITEMS: [{"user_id": "dana"}] * 20})
    place = ParquetPlace(str(tmp_path), open_backups)
    export = ParquetExport(rows, place, [BY_NAME[ITEMS]], FakeClock())
    plan = await export.plan()
    with pytest.raises(ConnectionError):
        await worked(export, plan, plan.partitions)
    assert place.folder(str(plan.facts["dataset"]), ITEMS).listed() == []
