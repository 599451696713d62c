"""Backups of the whole store: one file each, of one moment, checked by restoring it."""

import asyncio
import hashlib
import re
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    contextmanager,
)
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Annotated, Literal, Protocol
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Clock
from rayapp.portability.archive import BROKEN, ZIP_LEVEL
from rayapp.portability.encryption import BackupKeys
from rayapp.portability.files import UNFINISHED, Files, in_thread
from rayapp.portability.rules.archive import MANIFEST, BadArchive
from rayapp.portability.rules.collections import ITEMS

FORMAT: Literal["rayapp-backup"] = "rayapp-backup"
VERSION = 1
PREFIX, SUFFIX, ENCRYPTED_SUFFIX = "rayapp-backup-", ".zip", ".age"
STAMP = "%Y-%m-%dT%H-%M-%S-%fZ"
NAME = re.compile(
    rf"{PREFIX}\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{{6}}Z\{SUFFIX}(\{ENCRYPTED_SUFFIX})?"
)
BSON = ".bson"
# Memories that `verify` looks for by their words.
SEARCHES = 200
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
    async def finds(self, memory: bytes) -> bool | None:
        """Whether a memory is found by its words; None: it has none, or nobody may find it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """`searches`: memories that were found by their words after the restore."""

    manifest: BackupManifest
    searches: int


class BackupService:
    """Backups in one place. Raises NotFound, BadArchive, Conflict, StoreDown.

    The index is in none: it is built anew from what is restored.
    """

    def __init__(
        self, database: Backups, files: Files, clock: Clock, keys: BackupKeys | None = None
    ) -> None:
        self._database = database
        self._files = files
        self._clock = clock
        self._keys = keys or BackupKeys()

    async def create(self) -> tuple[StoredBackup, BackupManifest]:
        """A file of all collections as they stand now; what a death leaves is no backup."""
        now = self._clock.now().astimezone(UTC)
        name = f"{PREFIX}{now.strftime(STAMP)}{SUFFIX}"
        name += ENCRYPTED_SUFFIX if self._keys.encrypts else ""
        async with AsyncExitStack() as stack:
            target = await stack.enter_async_context(in_thread(self._files.writing(name)))
            if self._keys.encrypts:
                target = await stack.enter_async_context(in_thread(self._keys.sealed(target)))
            manifest = await self._write(target, now)
        made = next(one for one in await asyncio.to_thread(self.kept) if one.name == name)
        return made, manifest

    async def _write(self, file: IO[bytes], now: datetime) -> BackupManifest:
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
        return manifest

    def kept(self) -> list[StoredBackup]:
        """Newest first."""
        return stored_in(self._files)

    def cleanup(self, keep: int) -> list[StoredBackup]:
        """Remove all but the newest `keep`, and what deaths left; which went."""
        gone = self.kept()[keep:]
        for one in gone:
            self._files.remove(one.name)
        for name, _ in self._files.listed():
            if name.endswith(UNFINISHED) and is_backup(name.removesuffix(UNFINISHED)):
                self._files.remove(name)
        return gone

    async def verify(self, name: str) -> Verified:
        """Restore it into a scratch database; compare what is there with the manifest, and look
        for memories by their words."""
        async with self._database.scratch(f"rayapp-verify-{uuid4().hex[:12]}") as scratch:
            with _read(await asyncio.to_thread(self._opened, name), name) as found:
                manifest = await self._load(found, name, scratch)
            sample: list[bytes] = []
            for part in manifest.parts:
                every = max(1, part.rows // SEARCHES)
                seen, rows = hashlib.sha256(), 0
                async for page in scratch.pages(part.collection):
                    if part.collection == ITEMS:
                        sample += page[-rows % every :: every]
                    rows += len(page)
                    seen.update(b"".join(page))
                if (rows, seen.hexdigest()) != (part.rows, part.sha256):
                    raise BadArchive(
                        f"{part.collection} comes back as {rows} rows that are not those of the "
                        f"backup {name}; make a new backup."
                    )
            hits = [await scratch.finds(one) for one in sample]
        if missed := hits.count(False):
            raise BadArchive(
                f"{missed} of {len(hits)} memories of the backup {name} are not found by their "
                "words after a restore; make a new backup."
            )
        return Verified(manifest=manifest, searches=hits.count(True))

    async def restore(self, name: str, *, replace: bool = False) -> BackupManifest:
        """Into the database, which must be empty unless `replace`. The backup is read as a whole
        before anything is removed. A repeat finishes what was cut short."""
        with _read(await asyncio.to_thread(self._opened, name), name) as found:
            await asyncio.to_thread(_check, found, name)
            if await self._database.total() and not replace:
                raise Conflict(
                    "The database is not empty; restore into an empty one, or say that everything "
                    "in it goes.",
                    code="not_empty",
                )
            if replace:
                await self._database.empty()
            return await self._load(found, name, self._database)

    def manifest(self, name: str) -> BackupManifest:
        with _read(self._opened(name), name) as found:
            return _manifest(found, name)

    async def _load(self, found: zipfile.ZipFile, name: str, database: Backups) -> BackupManifest:
        await database.prepare()
        manifest = _manifest(found, name)
        for part in manifest.parts:
            documents = _documents(found, part)
            while page := await asyncio.to_thread(_page, documents):
                await database.load(part.collection, page)
        return manifest

    def _opened(self, name: str) -> IO[bytes]:
        if not is_backup(name) or name not in {one.name for one in self.kept()}:
            raise NotFound(
                f"No backup {name} in {self._files.where}; list them.", code="no_archive"
            )
        file = self._files.reading(name)
        if not name.endswith(ENCRYPTED_SUFFIX):
            return file
        with file:
            return self._keys.opened(file, name)


@contextmanager
def _read(file: IO[bytes], name: str) -> Iterator[zipfile.ZipFile]:
    with file:
        try:
            found = zipfile.ZipFile(file)
        except BROKEN:
            raise BadArchive(f"The backup {name} is broken; use another one.") from None
        with found:
            yield found


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


def stored_in(files: Files) -> list[StoredBackup]:
    """The whole ones of a place, newest first."""
    found = sorted([one for one in files.listed() if is_backup(one[0])], reverse=True)
    return [StoredBackup(name=name, bytes=size, at=taken_at(name)) for name, size in found]


def _page(documents: Iterator[bytes]) -> list[bytes]:
    return list(islice(documents, BATCH))


def _check(found: zipfile.ZipFile, name: str) -> None:
    for part in _manifest(found, name).parts:
        for _ in _documents(found, part):
            pass


def is_backup(name: str) -> bool:
    """Whether a file has the name of a backup."""
    return NAME.fullmatch(name) is not None


def taken_at(name: str) -> datetime:
    """When the backup of this name was taken."""
    stamp = name.removeprefix(PREFIX).removesuffix(ENCRYPTED_SUFFIX).removesuffix(SUFFIX)
    return datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
