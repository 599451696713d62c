"""Everything of all users as Parquet: the work of the job `export_parquet`.

A dataset per collection, in parts that workers write side by side. It is for those who count and
compare; what shall come back is a backup or an archive.
"""

import asyncio
import hashlib
import io
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import IO, Annotated, Any, Literal, Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field

from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step, shares_of
from rayapp.core.runtime import Clock
from rayapp.portability.files import Files, in_thread
from rayapp.portability.ports import RowsSize
from rayapp.portability.rules.archive import MANIFEST, Row
from rayapp.portability.rules.collections import BY_NAME, Collection
from rayapp.portability.rules.columns import ColumnKind, columns_of, values_of

FORMAT: Literal["rayapp-parquet"] = "rayapp-parquet"
VERSION = 1
PREFIX, SUFFIX, STAMP = "rayapp-parquet-", ".parquet", "%Y-%m-%dT%H-%M-%S-%fZ"
# Of one part: 1 to 3 s of work of one worker, and all that a death costs.
PART_ROWS = 20_000
PART_BYTES = 64 << 20  # as the store holds them
# Of one row group: what a worker holds in memory.
GROUP_ROWS = 5_000
GROUP_BYTES = 16 << 20

TYPES = {
    ColumnKind.TEXT: pa.string(),
    ColumnKind.WHOLE: pa.int64(),
    ColumnKind.NUMBER: pa.float64(),
    ColumnKind.FLAG: pa.bool_(),
    ColumnKind.TIME: pa.timestamp("ms", tz="UTC"),
    ColumnKind.BYTES: pa.binary(),
    ColumnKind.TEXTS: pa.list_(pa.string()),
    ColumnKind.WHOLES: pa.list_(pa.int64()),
    ColumnKind.JSON: pa.string(),
}


class AllRows(Protocol):
    """Rows of all users but the shared ones, without deleted ones. A place in a collection is
    plain text; None is its start or its end."""

    async def size(self, collection: Collection) -> RowsSize:
        """About so many, and their bytes in the store."""

    async def places(self, collection: Collection, every: int) -> list[str]:
        """After each `every` rows, in the order of the store."""

    def pages(
        self, collection: Collection, after: str | None, until: str | None
    ) -> AsyncIterator[tuple[Iterable[Row], int]]:
        """The rows from one place (with it) to another (without it), and their bytes."""


class ParquetPart(BaseModel):
    """One file; `file` within the folder of its collection."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str
    rows: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: str


class ParquetCollection(BaseModel):
    """`json_columns`: those whose text is JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rows: int
    bytes: int
    schema_version: int
    json_columns: tuple[str, ...]
    parts: tuple[ParquetPart, ...]


class ParquetManifest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["rayapp-parquet"] = FORMAT
    version: int = VERSION
    begun_at: datetime
    collections: dict[str, ParquetCollection]


@dataclass(frozen=True, slots=True)
class ParquetPlace:
    """Where datasets lie, and how a folder below it is opened."""

    where: str
    open: Callable[[str], Files]

    def folder(self, *names: str) -> Files:
        return self.open("/".join([self.where.rstrip("/"), *names]))


class ParquetExport:
    """Implements `bulk.ports.JobWork`: a partition is one file, written by one step.

    A file gets a name that no other try has, so what a dead worker finishes late changes nothing;
    the manifest, which comes last, names those that count, and the others go.
    """

    def __init__(
        self, rows: AllRows, place: ParquetPlace, collections: Sequence[Collection], clock: Clock
    ) -> None:
        self._rows, self._place, self._clock = rows, place, clock
        self._collections = collections
        self._facts: Mapping[str, Any] = {}

    async def plan(self) -> Plan:
        shares: list[Mapping[str, Any]] = []
        total = 0
        for collection in self._collections:
            size = await self._rows.size(collection)
            total += size.rows
            every = rows_of_a_part(size)
            between = await self._rows.places(collection, every) if size.rows > every else []
            ends = [None, *between, None]
            shares += [
                {"collection": collection.name, "part": at, "after": after, "until": until}
                for at, (after, until) in enumerate(pairwise(ends))
            ]
        now = self._clock.now().astimezone(UTC)
        facts = {"dataset": PREFIX + now.strftime(STAMP), "at": now.isoformat()}
        facts |= {"place": self._place.where}
        return Plan(partitions=shares_of(shares), total=total, facts=facts)

    async def begin(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        share = partition.payload
        collection = BY_NAME[share["collection"]]
        files = self._folder(collection.name)
        name = f"part-{share['part']:05}-{uuid4().hex[:8]}{SUFFIX}"
        async with in_thread(files.writing(name)) as target:
            part = PartWriter(collection, target)
            pages = self._rows.pages(collection, share["after"], share["until"])
            try:
                async for rows, size in pages:
                    await asyncio.to_thread(part.add, rows, size)
                written = await asyncio.to_thread(part.end, name)
            except BaseException:
                part.drop()
                raise
        return Step(
            cursor=None,
            done=written.rows,
            counts={collection.name: written.rows},
            samples=[written.model_dump()],
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        parts: dict[str, list[ParquetPart]] = {one.name: [] for one in self._collections}
        for row in partitions:
            found = [ParquetPart.model_validate(one) for one in row.samples]
            parts[row.payload["collection"]] += found
        collections = {name: _collection(BY_NAME[name], found) for name, found in parts.items()}
        manifest = ParquetManifest(begun_at=self._facts["at"], collections=collections)
        await asyncio.to_thread(self._end, manifest)
        sums = Counter[str]()
        for one in collections.values():
            sums.update(rows=one.rows, bytes=one.bytes, files=len(one.parts))
        return Finish(report={"dataset": self._facts["dataset"], **sums})

    def _end(self, manifest: ParquetManifest) -> None:
        for name, one in manifest.collections.items():
            files, known = self._folder(name), {part.file for part in one.parts}
            for stray in {found for found, _ in files.listed()} - known:
                files.remove(stray)
        with self._folder().writing(MANIFEST) as file:
            file.write(manifest.model_dump_json(indent=1).encode())

    def _folder(self, *names: str) -> Files:
        return self._place.folder(str(self._facts["dataset"]), *names)

    async def close(self) -> None:
        """Nothing is open."""


def rows_of_a_part(size: RowsSize) -> int:
    """So many rows at most, and about so many bytes."""
    average = max(1, size.bytes // max(1, size.rows))
    return max(1, min(PART_ROWS, PART_BYTES // average))


def _collection(collection: Collection, parts: Sequence[ParquetPart]) -> ParquetCollection:
    return ParquetCollection(
        rows=sum(part.rows for part in parts),
        bytes=sum(part.bytes for part in parts),
        schema_version=collection.schema,
        json_columns=tuple(
            one.name for one in columns_of(collection) if one.kind is ColumnKind.JSON
        ),
        parts=tuple(sorted(parts, key=lambda part: part.file)),
    )


def schema_of(collection: Collection) -> pa.Schema:
    return pa.schema([(one.name, TYPES[one.kind]) for one in columns_of(collection)])


class PartWriter:
    """One file of a collection, a group of rows at a time in memory."""

    def __init__(self, collection: Collection, target: IO[bytes]) -> None:
        self._collection, self._schema = collection, schema_of(collection)
        self._counted = _Counted(target)
        self._writer = pq.ParquetWriter(self._counted, self._schema, compression="zstd")
        self._group: list[Row] = []
        self._bytes = self._rows = 0

    def add(self, rows: Iterable[Row], size: int) -> None:
        self._group += [values_of(self._collection, row) for row in rows]
        self._bytes += size
        if len(self._group) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def end(self, name: str) -> ParquetPart:
        self._flush()
        self._writer.close()
        return ParquetPart(
            file=name,
            rows=self._rows,
            bytes=self._counted.size,
            sha256=self._counted.seen.hexdigest(),
        )

    def drop(self) -> None:
        """Write nothing any more: pyarrow ends a file whenever its writer goes."""
        self._counted.dropped = True
        self._writer.close()

    def _flush(self) -> None:
        if self._group:
            self._writer.write_table(pa.Table.from_pylist(self._group, schema=self._schema))
        self._rows += len(self._group)
        self._group, self._bytes = [], 0


class _Counted(io.RawIOBase):
    """What passes to a file."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.seen, self.size, self.dropped = hashlib.sha256(), 0, False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        if self.dropped:
            return len(piece)
        self.seen.update(piece)
        self.size += len(piece)
        self._target.write(piece)
        return len(piece)
