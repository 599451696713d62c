"""Backups of the whole store: one file each, of one moment, checked by restoring it."""

import asyncio
import hashlib
import re
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import IO, Annotated, Literal, Protocol, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Clock
from rayapp.portability.archive import BROKEN, ZIP_LEVEL
from rayapp.portability.encryption import BackupKeys
from rayapp.portability.files import UNFINISHED, Files, in_thread
from rayapp.portability.ports import KeptArchive
from rayapp.portability.rules.archive import MANIFEST, BadArchive
from rayapp.portability.rules.collections import BY_NAME, ITEMS, Owner
from rayapp.portability.sealing import (
    LENGTH_BYTES,
    MAX_PIECE_BYTES,
    UserKey,
    UserKeys,
    UserKeyStore,
    open_rows,
    seal_rows,
)

T = TypeVar("T")

FORMAT: Literal["rayapp-backup"] = "rayapp-backup"
# Of a backup with sealed rows; older programs read one without, which says 1.
VERSION = 2
PREFIX, SUFFIX, ENCRYPTED_SUFFIX = "rayapp-backup-", ".zip", ".age"
STAMP = "%Y-%m-%dT%H-%M-%S-%fZ"
NAME = re.compile(
    rf"{PREFIX}\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{{6}}Z\{SUFFIX}(\{ENCRYPTED_SUFFIX})?"
)
BSON, SEALED = ".bson", ".sealed"
# A database of `verify`: when it was made, and a random part; versions before said no time.
SCRATCH_PREFIX, SCRATCH_STAMP = "rayapp-verify-", "%Y%m%dT%H%M%S"
SCRATCH = re.compile(rf"{SCRATCH_PREFIX}(?:(\d{{8}}T\d{{6}})-)?[0-9a-f]{{12}}")
# One that is older was left by a death.
SCRATCH_LIVES = timedelta(days=1)
# Memories that `verify` looks for by their words.
SEARCHES = 200
# Documents of one write of a restore.
BATCH = 1_000


class Snapshot(Protocol):
    def pages(self, name: str) -> AsyncIterator[list[bytes]]:
        """The BSON documents of a collection, in the order of their ids."""

    def owned_pages(self, name: str) -> AsyncIterator[list[tuple[str, bytes]]]:
        """The same with their owners, those of one together; empty: nobody's."""


class Backups(Protocol):
    """A database. `names`: the collections of a backup."""

    names: Sequence[str]

    @property
    def user_keys(self) -> UserKeyStore: ...
    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]: ...
    def scratch(self, name: str) -> AbstractAsyncContextManager["Backups"]: ...
    async def databases(self) -> list[str]:
        """The names of all that are on its server."""

    async def drop(self, name: str) -> None:
        """Remove a whole database of its server."""

    async def prepare(self) -> None: ...
    async def total(self) -> int: ...
    async def empty(self) -> None: ...
    async def load(self, name: str, rows: Iterable[bytes]) -> None: ...
    def pages(self, name: str) -> AsyncIterator[list[bytes]]: ...
    async def finds(self, memory: bytes) -> bool | None:
        """Whether a memory is found by its words; None: it has none, or nobody may find it."""


class BackupPart(BaseModel):
    """One collection. `sha256`: of its documents, or sealed blocks, one after the other."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    collection: str
    rows: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: str
    sealed: Annotated[bool, Field(exclude_if=lambda sealed: not sealed)] = False

    @property
    def member(self) -> str:
        """Its file in the zip."""
        return self.collection + (SEALED if self.sealed else BSON)


class BackupManifest(BaseModel):
    """`user_keys`: id of the file with the keys of sealed rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["rayapp-backup"]
    version: int
    created_at: datetime
    parts: tuple[BackupPart, ...]
    user_keys: Annotated[str | None, Field(exclude_if=lambda known: known is None)] = None

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


class RowsDigest:
    """How many rows, and the sum of their SHA-256: the same in any order."""

    def __init__(self) -> None:
        self.rows = self.total = 0

    def add(self, rows: Iterable[bytes]) -> None:
        for row in rows:
            self.rows += 1
            self.total += int.from_bytes(hashlib.sha256(row).digest(), "big")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowsDigest) and vars(self) == vars(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """`digests`: of the rows that came back, by collection. `unreadable`: rows whose users were
    erased since; nobody can read them."""

    digests: Mapping[str, RowsDigest]
    unreadable: int

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.digests.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """`searches`: memories that were found by their words after the restore."""

    restored: Restored
    searches: int


@dataclass(eq=False)
class BackupService:
    """Backups in one place. Raises NotFound, BadArchive, Conflict, StoreDown.

    The index is in none: it is built anew from what is restored.

    Args:
        key_place: of the keys of users. Given, the rows of each are sealed under a key of theirs,
            and all keys lie there before a backup has its name.
    """

    database: Backups
    files: Files
    clock: Clock
    keys: BackupKeys = field(default_factory=BackupKeys)
    key_place: Files | None = None

    def __post_init__(self) -> None:
        self.user_keys = UserKeys(self.database.user_keys, self.key_place, self.keys)

    async def create(self) -> tuple[KeptArchive, BackupManifest]:
        """A file of all collections as they stand now; what a death leaves is no backup."""
        now = self.clock.now().astimezone(UTC)
        name = f"{PREFIX}{now.strftime(STAMP)}{SUFFIX}"
        name += ENCRYPTED_SUFFIX if self.keys.encrypts else ""
        async with AsyncExitStack() as stack:
            target = await stack.enter_async_context(in_thread(self.files.writing(name)))
            if self.keys.encrypts:
                target = await stack.enter_async_context(in_thread(self.keys.sealed(target)))
            manifest = await self._write(target, now)
        made = next(one for one in await asyncio.to_thread(self.kept) if one.name == name)
        return made, manifest

    async def _write(self, file: IO[bytes], now: datetime) -> BackupManifest:
        # Before the moment: who is erased from now on takes the key along, and gets no other one.
        sealing = await self.user_keys.prepare() if self.user_keys.seals else None
        parts = []
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=ZIP_LEVEL) as made:
            async with self.database.snapshot() as snapshot:
                for name in self.database.names:
                    if sealing is not None and BY_NAME[name].owner is Owner.USER:
                        pack = partial(seal_rows, name, keys=sealing[1])
                        pages = snapshot.owned_pages(name)
                        parts.append(await _write_part(made, name, pages, pack, sealed=True))
                    else:
                        parts.append(await _write_part(made, name, snapshot.pages(name), _plain))
            manifest = BackupManifest(
                format=FORMAT,
                version=1 if sealing is None else VERSION,
                created_at=now,
                parts=tuple(parts),
                user_keys=None if sealing is None else sealing[0],
            )
            made.writestr(MANIFEST, manifest.model_dump_json(indent=1))
        await self.user_keys.write()
        return manifest

    def kept(self) -> list[KeptArchive]:
        """Newest first."""
        return stored_in(self.files)

    def cleanup(self, keep: int) -> list[KeptArchive]:
        """Remove all but the newest `keep`, and what deaths left; which went."""
        gone = self.kept()[keep:]
        for one in gone:
            self.files.remove(one.name)
        for name, _ in self.files.listed():
            if name.endswith(UNFINISHED) and is_backup(name.removesuffix(UNFINISHED)):
                self.files.remove(name)
        return gone

    async def drop_left(self) -> list[str]:
        """Drop the databases of `verify` that deaths left, which hold what users erased since;
        which went."""
        before = self.clock.now() - SCRATCH_LIVES
        left = [one for one in await self.database.databases() if _was_made(one, before)]
        for one in left:
            await self.database.drop(one)
        return left

    async def verify(self, name: str) -> Verified:
        """Restore it into a scratch database; compare what is there with what was read, and look
        for memories by their words."""
        await self.drop_left()
        now = self.clock.now().astimezone(UTC)
        scratch_name = f"{SCRATCH_PREFIX}{now.strftime(SCRATCH_STAMP)}-{uuid4().hex[:12]}"
        async with self.database.scratch(scratch_name) as scratch:
            with _read(await asyncio.to_thread(self._opened, name), name) as found:
                manifest = _manifest(found, name)
                keys, _ = await self._keys_of(manifest)
                restored = await _load(found, manifest, scratch, _secrets(keys))
            sample: list[bytes] = []
            for collection, wanted in restored.digests.items():
                every = max(1, wanted.rows // SEARCHES)
                seen = RowsDigest()
                async for page in scratch.pages(collection):
                    if collection == ITEMS:
                        sample += page[-seen.rows % every :: every]
                    await asyncio.to_thread(seen.add, page)
                if seen != wanted:
                    raise BadArchive(
                        f"{collection} comes back as {seen.rows} rows that are not those of the "
                        f"backup {name}; make a new backup."
                    )
            hits = [await scratch.finds(one) for one in sample]
        if missed := hits.count(False):
            raise BadArchive(
                f"{missed} of {len(hits)} memories of the backup {name} are not found by their "
                "words after a restore; make a new backup."
            )
        return Verified(restored=restored, searches=hits.count(True))

    async def restore(self, name: str, *, replace: bool = False) -> Restored:
        """Into the database, which must be empty unless `replace`. The backup is read as a whole
        before anything is removed. A repeat finishes what was cut short."""
        with _read(await asyncio.to_thread(self._opened, name), name) as found:
            manifest = _manifest(found, name)
            keys, from_file = await self._keys_of(manifest)
            await asyncio.to_thread(_check, found, manifest, _secrets(keys))
            if await self.database.total() and not replace:
                raise Conflict(
                    "The database is not empty; restore into an empty one, or say that everything "
                    "in it goes.",
                    code="not_empty",
                )
            if from_file and manifest.user_keys:
                await self.user_keys.adopt(keys, manifest.user_keys)
            if replace:
                await self.database.empty()
            return await _load(found, manifest, self.database, _secrets(keys))

    def manifest(self, name: str) -> BackupManifest:
        with _read(self._opened(name), name) as found:
            return _manifest(found, name)

    async def _keys_of(self, manifest: BackupManifest) -> tuple[list[UserKey], bool]:
        """Those of users, and whether they come from their file."""
        if manifest.user_keys is None:
            return [], False
        return await self.user_keys.find(manifest.user_keys)

    def _opened(self, name: str) -> IO[bytes]:
        if not is_backup(name) or name not in {one.name for one in self.kept()}:
            raise NotFound(f"No backup {name} in {self.files.where}; list them.", code="no_archive")
        file = self.files.reading(name)
        if not name.endswith(ENCRYPTED_SUFFIX):
            return file
        with file:
            return self.keys.opened(file, name)


def _was_made(name: str, before: datetime) -> bool:
    """Whether it is a database of `verify` that was made before."""
    found = SCRATCH.fullmatch(name)
    if found is None or found[1] is None:
        return found is not None
    try:
        return datetime.strptime(found[1], SCRATCH_STAMP).replace(tzinfo=UTC) < before
    except ValueError:  # a name of somebody else
        return False


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


async def _load(
    found: zipfile.ZipFile,
    manifest: BackupManifest,
    database: Backups,
    secrets: Mapping[bytes, bytes],
) -> Restored:
    await database.prepare()
    digests, unreadable = {}, 0
    for part in manifest.parts:
        rows, digest = _Rows(found, part, secrets), RowsDigest()
        while page := await asyncio.to_thread(_page, rows):
            await asyncio.to_thread(digest.add, page)
            await database.load(part.collection, page)
        digests[part.collection] = digest
        unreadable += rows.unreadable
    return Restored(digests=digests, unreadable=unreadable)


async def _write_part(
    made: zipfile.ZipFile,
    name: str,
    pages: AsyncIterator[list[T]],
    pack: Callable[[list[T]], tuple[bytes, int]],
    *,
    sealed: bool = False,
) -> BackupPart:
    """`pack` answers the bytes of a page, and how many rows they hold."""
    seen, rows, size = hashlib.sha256(), 0, 0
    # What is sealed was packed before: stored as it is.
    target = zipfile.ZipInfo(name + SEALED) if sealed else name + BSON
    with made.open(target, "w", force_zip64=True) as member:

        def write(page: list[T]) -> tuple[int, int]:
            data, count = pack(page)
            seen.update(data)
            member.write(data)
            return len(data), count

        async for page in pages:
            more, count = await asyncio.to_thread(write, page)
            size, rows = size + more, rows + count
    digest = seen.hexdigest()
    return BackupPart(collection=name, rows=rows, bytes=size, sha256=digest, sealed=sealed)


def _plain(page: list[bytes]) -> tuple[bytes, int]:
    return b"".join(page), len(page)


class _Rows:
    """The documents of a part. `unreadable`: how many have no key, once all were read.

    Raises BadArchive: it is not what the manifest says.
    """

    def __init__(
        self, found: zipfile.ZipFile, part: BackupPart, secrets: Mapping[bytes, bytes]
    ) -> None:
        self._found, self._part, self._secrets = found, part, secrets
        self._rows = self._read()
        self.unreadable = 0

    def __iter__(self) -> Iterator[bytes]:
        return self._rows

    def _read(self) -> Iterator[bytes]:
        part, seen, count = self._part, hashlib.sha256(), 0
        try:
            with self._found.open(part.member) as member:
                for piece in _pieces(member):
                    seen.update(piece)
                    rows = self._open(piece) if part.sealed else [piece]
                    count += len(rows)
                    yield from rows
        except (*BROKEN, KeyError) as error:
            raise BadArchive(
                f"{part.collection} in the backup is broken ({type(error).__name__}); use another "
                "one."
            ) from None
        if (count + self.unreadable, seen.hexdigest()) != (part.rows, part.sha256):
            raise BadArchive(
                f"{part.collection} in the backup is not what its manifest says; use another one."
            )

    def _open(self, block: bytes) -> list[bytes]:
        rows, unreadable = open_rows(self._part.collection, block, self._secrets)
        self.unreadable += unreadable
        return rows


def _pieces(member: IO[bytes]) -> Iterator[bytes]:
    """Documents or blocks, up to one that is cut: each begins with its length."""
    while head := member.read(LENGTH_BYTES):
        size = int.from_bytes(head, "little")
        piece = head + member.read(max(0, min(size, MAX_PIECE_BYTES) - LENGTH_BYTES))
        if len(piece) != size:
            return
        yield piece


def stored_in(files: Files) -> list[KeptArchive]:
    """The whole ones of a place, newest first."""
    found = sorted([one for one in files.listed() if is_backup(one[0])], reverse=True)
    return [KeptArchive(name=name, bytes=size, at=taken_at(name)) for name, size in found]


def _page(documents: Iterable[bytes]) -> list[bytes]:
    return list(islice(documents, BATCH))


def _secrets(keys: Iterable[UserKey]) -> dict[bytes, bytes]:
    return {one.key_id: one.secret for one in keys}


def _check(
    found: zipfile.ZipFile, manifest: BackupManifest, secrets: Mapping[bytes, bytes]
) -> None:
    for part in manifest.parts:
        for _ in _Rows(found, part, secrets):
            pass


def is_backup(name: str) -> bool:
    """Whether a file has the name of a backup."""
    return NAME.fullmatch(name) is not None


def taken_at(name: str) -> datetime:
    """When the backup of this name was taken."""
    stamp = name.removeprefix(PREFIX).removesuffix(ENCRYPTED_SUFFIX).removesuffix(SUFFIX)
    return datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)
