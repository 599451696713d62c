"""A source of catalogues for the job: what a reader reads is kept as a snapshot for the workers."""

from __future__ import annotations

from pathlib import Path

from rayapp.core.errors import ConfigError
from rayapp.datagov.records import Catalogue
from rayapp.storage.datagov.ckan import CkanSource
from rayapp.storage.datagov.files import FolderSource
from rayapp.storage.datagov.parquet import ParquetSnapshots

CKAN = "ckan"


class SnapshotSource:
    """Implements `CatalogueSource`. `offline`: the newest snapshot instead of the reader."""

    def __init__(
        self,
        reader: FolderSource | CkanSource,
        snapshots: ParquetSnapshots,
        *,
        name: str,
        offline: bool = False,
    ) -> None:
        self._name = name
        self._reader = reader
        self._snapshots = snapshots
        self._offline = offline

    @property
    def name(self) -> str:
        return self._name

    async def read(self) -> tuple[str, Catalogue]:
        if self._offline:
            key = await self._snapshots.newest(self._reader.origin)
            if key is None:
                raise ConfigError(
                    "Nothing was kept for an offline run: run the job once without --offline."
                )
            return key, await self._snapshots.load(key)
        catalogue = await self._reader.read()
        return await self._snapshots.keep(catalogue), catalogue

    async def load(self, key: str) -> Catalogue:
        return await self._snapshots.load(key)

    async def close(self) -> None:
        await self._reader.close()


def open_source(name: str, *, data_dir: Path, ckan_url: str, offline: bool) -> SnapshotSource:
    """`name` is `ckan` or a folder; snapshots are kept under `data_dir`."""
    reader = CkanSource(ckan_url) if name == CKAN else FolderSource(Path(name))
    snapshots = ParquetSnapshots(data_dir.resolve() / "datagov")
    return SnapshotSource(reader, snapshots, name=name, offline=offline)
