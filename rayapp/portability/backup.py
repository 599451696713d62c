"""Backups of the whole store: one file each, of one moment, checked by restoring it."""

import asyncio
import hashlib
import os
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Literal, Protocol
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Clock
from rayapp.portability.archive import BROKEN, ZIP_LEVEL
from rayapp.portability.files import private_file, synced
from rayapp.portability.rules.archive import MANIFEST, BadArchive

FORMAT: Literal["rayapp-backup"] = "rayapp-backup"
VERSION = 1
PREFIX, SUFFIX = "rayapp-backup-", ".zip"
UNFINISHED = ".part"
BSON = ".bson"
# Documents of one write of a restore.
BATCH = 1_000
LENGTH_BYTES = 4
MAX_DOCUMENT_BYTES = 17 << 20


class Snapshot(Protocol):
    def pages(self, name: str) -> AsyncIterator[list[bytes]]:
        """The BSON documents of a collection, in the order of their ids."""


class Backups(Protocol):
    """A database. `names`: the collections of a backup."""

    names: Sequence[str]

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]: ...
    def scratch(self, name: str) -> AbstractAsyncContextManager["Backups"]: ...
    async def prepare(self) -> None: ...
    async def total(self) -> int: ...
    async def empty(self) -> None: ...
    async def load(self, name: str, rows: Iterable[bytes]) -> None: ...
    def pages(self, name: str) -> AsyncIterator[list[bytes]]: ...


class BackupPart(BaseModel):
    """One collection. `sha256`: of its documents, one after the other."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    collection: str
    rows: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: str


class BackupManifest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["rayapp-backup"]
    version: int
    created_at: datetime
    parts: tuple[BackupPart, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBackup:
    name: str
    bytes: int
    at: datetime


class BackupService:
    """Backups in one folder. Raises NotFound, BadArchive, Conflict, StoreDown.

    The index is in none: it is built anew from what is restored.
    """

    def __init__(self, database: Backups, folder: Path, clock: Clock) -> None:
        self._database = database
        self._folder = folder
        self._clock = clock

    async def create(self) -> StoredBackup:
        """A file of all collections as they stand now; what a death leaves is no backup."""
        now = self._clock.now().astimezone(UTC)
        name = f"{PREFIX}{now.strftime('%Y-%m-%dT%H-%M-%S-%fZ')}{SUFFIX}"
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        unfinished = self._folder / (name + UNFINISHED)
        try:
            with await asyncio.to_thread(private_file, unfinished) as file:
                await self._write(file, now)
                await asyncio.to_thread(synced, file)
            await asyncio.to_thread(os.replace, unfinished, self._folder / name)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        return _stored(self._folder / name)

    async def _write(self, file: IO[bytes], now: datetime) -> None:
        parts = []
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=ZIP_LEVEL) as made:
            async with self._database.snapshot() as snapshot:
                for name in self._database.names:
                    seen, rows, size = hashlib.sha256(), 0, 0
                    with made.open(name + BSON, "w", force_zip64=True) as member:
                        async for page in snapshot.pages(name):
                            data = b"".join(page)
                            rows, size = rows + len(page), size + len(data)
                            await asyncio.to_thread(seen.update, data)
                            await asyncio.to_thread(member.write, data)
                    found = BackupPart(
                        collection=name, rows=rows, bytes=size, sha256=seen.hexdigest()
                    )
                    parts.append(found)
            manifest = BackupManifest(
                format=FORMAT, version=VERSION, created_at=now, parts=tuple(parts)
            )
            made.writestr(MANIFEST, manifest.model_dump_json(indent=1))

    def kept(self) -> list[StoredBackup]:
        """Newest first."""
        return stored_in(self._folder)

    def cleanup(self, keep: int) -> list[StoredBackup]:
        """Remove all but the newest `keep`, and what deaths left; which went."""
        gone = self.kept()[keep:]
        for one in gone:
            (self._folder / one.name).unlink(missing_ok=True)
        for path in self._folder.glob(f"{PREFIX}*{UNFINISHED}") if self._folder.is_dir() else []:
            path.unlink(missing_ok=True)
        return gone

    async def verify(self, name: str) -> BackupManifest:
        """Restore it into a scratch database, and compare what is there with the manifest."""
        async with self._database.scratch(f"rayapp-verify-{uuid4().hex[:12]}") as scratch:
            manifest = await self._load(name, scratch)
            for part in manifest.parts:
                seen, rows = hashlib.sha256(), 0
                async for page in scratch.pages(part.collection):
                    rows += len(page)
                    seen.update(b"".join(page))
                if (rows, seen.hexdigest()) != (part.rows, part.sha256):
                    raise BadArchive(
                        f"{part.collection} comes back as {rows} rows that are not those of the "
                        f"backup {name}; make a new backup."
                    )
        return manifest

    async def restore(self, name: str, *, replace: bool = False) -> BackupManifest:
        """Into the database, which must be empty unless `replace`. The backup is read as a whole
        before anything is removed. A repeat finishes what was cut short."""
        await asyncio.to_thread(self._check, name)
        if await self._database.total() and not replace:
            raise Conflict(
                "The database is not empty; restore into an empty one, or say that everything in "
                "it goes.",
                code="not_empty",
            )
        if replace:
            await self._database.empty()
        return await self._load(name, self._database)

    def manifest(self, name: str) -> BackupManifest:
        with self._read(name) as found:
            return _manifest(found, name)

    async def _load(self, name: str, database: Backups) -> BackupManifest:
        await database.prepare()
        with self._read(name) as found:
            manifest = _manifest(found, name)
            for part in manifest.parts:
                documents = _documents(found, part)
                while page := await asyncio.to_thread(_page, documents):
                    await database.load(part.collection, page)
        return manifest

    def _check(self, name: str) -> None:
        with self._read(name) as found:
            for part in _manifest(found, name).parts:
                for _ in _documents(found, part):
                    pass

    def _read(self, name: str) -> zipfile.ZipFile:
        path = self._folder / name
        if path.name != name or not name.startswith(PREFIX) or not path.is_file():
            raise NotFound(f"No backup {name} in {self._folder}; list them.", code="no_archive")
        try:
            return zipfile.ZipFile(path)
        except BROKEN:
            raise BadArchive(f"The backup {name} is broken; use another one.") from None


def _manifest(found: zipfile.ZipFile, name: str) -> BackupManifest:
    try:
        manifest = BackupManifest.model_validate_json(found.read(MANIFEST))
    except (*BROKEN, KeyError, ValidationError):
        raise BadArchive(f"The backup {name} has no manifest; use another one.") from None
    if manifest.version > VERSION:
        raise BadArchive(
            f"The backup {name} is of version {manifest.version}; restore it with a newer rayapp."
        )
    return manifest


def _documents(found: zipfile.ZipFile, part: BackupPart) -> Iterator[bytes]:
    """Raises BadArchive: it is not what the manifest says."""
    seen, rows = hashlib.sha256(), 0
    try:
        with found.open(part.collection + BSON) as member:
            while head := member.read(LENGTH_BYTES):
                size = int.from_bytes(head, "little")
                document = head + member.read(min(size, MAX_DOCUMENT_BYTES) - LENGTH_BYTES)
                if len(document) != size:
                    break
                rows += 1
                seen.update(document)
                yield document
    except (*BROKEN, KeyError) as error:
        raise BadArchive(
            f"{part.collection} in the backup is broken ({type(error).__name__}); use another one."
        ) from None
    if (rows, seen.hexdigest()) != (part.rows, part.sha256):
        raise BadArchive(
            f"{part.collection} in the backup is not what its manifest says; use another one."
        )


def stored_in(folder: Path) -> list[StoredBackup]:
    """The whole ones of a folder, newest first."""
    found = folder.glob(f"{PREFIX}*{SUFFIX}") if folder.is_dir() else []
    return sorted(map(_stored, found), key=lambda one: one.name, reverse=True)


def _page(documents: Iterator[bytes]) -> list[bytes]:
    return list(islice(documents, BATCH))


def _stored(path: Path) -> StoredBackup:
    found = path.stat()
    at = datetime.fromtimestamp(found.st_mtime, UTC)
    return StoredBackup(name=path.name, bytes=found.st_size, at=at)
