"""Keeps a catalogue as one Parquet file, so that a job's workers read what its driver read.

A snapshot is named by its content and never changes, so a job that is resumed goes on with the
records it was planned for, and a later run works offline. The folder is on one machine: workers
on another node need it on shared storage.
"""

import asyncio
import hashlib
import os
import re
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from rayapp.core.errors import ConfigError
from rayapp.datagov.ports import Catalogue, Dataset, dataset_document, dataset_of

# Older snapshots of one origin are removed: a job under way needs one, a person may want another.
KEPT = 4
# The version of the columns below: another one is read again from the source.
FORMAT = 1
_KEY = re.compile(r"^(?P<origin>[a-z]+)-[0-9a-f]{16}$")
_ABOUT = b"rayapp.catalogue"

_PLAIN = {str: pa.string(), int: pa.int64()}


def _type_of(hint: Any) -> pa.DataType:
    """What a field of the catalogue is in Parquet, as `dataset_document` writes it."""
    if is_dataclass(hint):
        return pa.struct([(name, _type_of(one)) for name, one in get_type_hints(hint).items()])
    if hint in _PLAIN:
        return _PLAIN[hint]
    inner = _type_of(get_args(hint)[0])
    return inner if get_origin(hint) is UnionType else pa.list_(inner)  # `X | None`; several


_SCHEMA = pa.schema(list(_type_of(Dataset)))


class ParquetSnapshots:
    """Catalogues in one folder, by key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, catalogue: Catalogue) -> str:
        """Store it and return its key; a file of that key is written anew."""
        return await asyncio.to_thread(self._keep, catalogue)

    async def load(self, key: str) -> Catalogue:
        """ConfigError when there is no such snapshot, or it cannot be read."""
        return await asyncio.to_thread(self._load, key)

    async def newest(self, origin: str) -> str | None:
        """The key of the latest snapshot of that origin."""
        return next(iter(await asyncio.to_thread(self._by_age, origin)), None)

    def _keep(self, catalogue: Catalogue) -> str:
        rows = [dataset_document(dataset) for dataset in catalogue.datasets]
        # The time of the source does not count: equal records are one snapshot.
        about = orjson.dumps(
            {
                "format": FORMAT,
                "origin": catalogue.origin,
                "generated_at": catalogue.generated_at,
                "odd_counts": dict(catalogue.odd_counts),
                "oddities": {kind: list(found) for kind, found in catalogue.oddities.items()},
                "unread": list(catalogue.unread),
            },
            option=orjson.OPT_SORT_KEYS,
        )
        # A table that did not answer is not one without columns.
        content = [FORMAT, rows, sorted(catalogue.unread)]
        digest = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))
        key = f"{catalogue.origin}-{digest.hexdigest()[:16]}"
        self._folder.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(rows, schema=_SCHEMA)
        table = table.replace_schema_metadata({_ABOUT: about})
        # Written whole or not at all: a driver may be killed here.
        unfinished = self._folder / f".{key}.{os.getpid()}"
        try:
            pq.write_table(table, unfinished, compression="zstd")
            os.replace(unfinished, self._path(key))
        finally:
            unfinished.unlink(missing_ok=True)
        for old in self._by_age(catalogue.origin)[KEPT:]:
            self._path(old).unlink(missing_ok=True)
        return key

    def _load(self, key: str) -> Catalogue:
        path = self._path(key)
        if not path.is_file():
            raise ConfigError(
                f"No snapshot {key} in {self._folder}: cancel the job and start a new one; with "
                "several nodes, put data.dir on shared storage."
            )
        try:
            table = pq.read_table(path)
            about: dict[str, Any] = orjson.loads((table.schema.metadata or {})[_ABOUT])
            rows = table.to_pylist()
            if about["format"] != FORMAT:
                raise ValueError("another format")
            return Catalogue(
                origin=about["origin"],
                generated_at=about["generated_at"],
                datasets=tuple(dataset_of(row) for row in rows),
                odd_counts=about["odd_counts"],
                oddities={kind: tuple(found) for kind, found in about["oddities"].items()},
                unread=tuple(about.get("unread", ())),
            )
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
            raise ConfigError(
                f"Snapshot {path.name} cannot be read ({type(error).__name__}): delete it and "
                "start the job without --offline."
            ) from None

    def _path(self, key: str) -> Path:
        if not _KEY.match(key):
            raise ConfigError(f"{key[:80]!r} names no snapshot: start the job again.")
        return self._folder / f"{key}.parquet"

    def _by_age(self, origin: str) -> list[str]:
        """Keys of an origin, the latest first."""
        found = []
        for path in self._folder.glob(f"{origin}-*.parquet"):
            match = _KEY.match(path.stem)
            if match is not None and match["origin"] == origin:
                found.append((path.stat().st_mtime_ns, path.stem))
        return [key for _, key in sorted(found, reverse=True)]
