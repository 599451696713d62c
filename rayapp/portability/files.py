"""Archives that are kept on disk, by user."""

import asyncio
import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Protocol

from rayapp.core.errors import NotFound, StoreFull
from rayapp.core.ids import org_of, user_of
from rayapp.portability.ports import KeptArchive
from rayapp.portability.rules.kinds import Format

NAME = re.compile(r"^rayapp-export-[0-9TZ-]{10,40}\.(zip|json)$")
# A file that is written; it has its name when it is whole.
UNFINISHED = ".part"
# One that nobody wrote to for so long was left by a death, seconds: no export lasts longer.
ABANDONED_S = 3600.0
USERS, TENANTS = "users", "tenants"
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def file_name(at: datetime, format: Format) -> str:
    stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%S-%fZ")
    return f"rayapp-export-{stamp}.{format}"


class Files(Protocol):
    """Those of one place: a folder, or an address. `where` is for people."""

    where: str

    def listed(self) -> list[tuple[str, int]]:
        """Names and bytes; in a folder also of what a death left, with UNFINISHED."""

    def writing(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """A file that has its name once all of it is written; after an error there is none."""

    def reading(self, name: str) -> IO[bytes]: ...
    def remove(self, name: str) -> None: ...


class ArchiveFiles:
    """Those of one folder; names of users do not appear in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, user_id: str, name: str, chunks: AsyncIterator[bytes]) -> KeptArchive:
        """Write one whole; what a death leaves is no archive, and goes with a later one.

        Raises StoreFull.
        """
        folder = self._of(user_id)
        try:
            await _written(folder, name, chunks)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            # The folder may lie on another disk than the data, whose room is looked at before.
            raise StoreFull(
                "There is no room for the archive: free space where archives are kept "
                "(backup.dir), then retry; nothing was changed."
            ) from None
        return _kept(folder / name)

    async def kept(self, user_id: str) -> list[KeptArchive]:
        """The newest first."""
        return await asyncio.to_thread(self._list, user_id)

    async def cleanup(self, user_id: str, keep: int) -> list[KeptArchive]:
        """Remove all but the newest `keep`, and what deaths left; which went."""
        await asyncio.to_thread(_remove_abandoned, self._of(user_id))
        gone = (await self.kept(user_id))[keep:]
        for one in gone:
            await asyncio.to_thread((self._of(user_id) / one.name).unlink, missing_ok=True)
        return gone

    async def erase(self, user_id: str) -> int:
        """Remove all of a user, unfinished ones too; how many there were, as far as the folder can
        be read."""
        count = 0
        with suppress(OSError):
            count = len(await self.kept(user_id))
        await asyncio.to_thread(shutil.rmtree, self._of(user_id), ignore_errors=True)
        return count

    async def erase_all(self) -> None:
        """Remove those of all users; backups of the whole store in the same folder stay."""
        for name in (USERS, TENANTS):
            # What is in it: an operator may have put a link to another disk in its place.
            for folder in await asyncio.to_thread(list, (self._folder / name).glob("*")):
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def erase_tenant(self, org_id: str) -> int:
        """Remove those of all its users; how many there were."""
        folder = self._of_tenant(org_id)
        count = sum([NAME.fullmatch(path.name) is not None for path in folder.rglob("*")])
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return count

    @contextmanager
    def opened(self, user_id: str, name: str) -> Iterator[IO[bytes]]:
        """Raises NotFound."""
        path = self._of(user_id) / name
        if not NAME.fullmatch(name) or not path.is_file():
            raise NotFound(
                "There is no kept archive of this name; see GET /api/memory/backup/list.",
                code="no_archive",
            )
        with path.open("rb") as file:
            yield file

    def _of(self, user_id: str) -> Path:
        org_id = org_of(user_id)
        users = self._folder / USERS if org_id is None else self._of_tenant(org_id)
        return users / _hashed(user_of(user_id))

    def _of_tenant(self, org_id: str) -> Path:
        return self._folder / TENANTS / _hashed(org_id)

    def _list(self, user_id: str) -> list[KeptArchive]:
        folder = self._of(user_id)
        if not folder.is_dir():
            return []
        found = []
        for path in folder.iterdir():
            if NAME.fullmatch(path.name):
                with suppress(FileNotFoundError):  # it went meanwhile
                    found.append(_kept(path))
        return sorted(found, key=lambda one: one.name, reverse=True)


async def _written(folder: Path, name: str, chunks: AsyncIterator[bytes]) -> None:
    unfinished = folder / (name + UNFINISHED)
    await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
    await asyncio.to_thread(_remove_abandoned, folder)
    try:
        with await asyncio.to_thread(private_file, unfinished) as file:
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(synced, file)
        await asyncio.to_thread(os.replace, unfinished, folder / name)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _remove_abandoned(folder: Path) -> None:
    before = time.time() - ABANDONED_S
    for path in folder.glob(f"*{UNFINISHED}"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def private_file(path: Path) -> IO[bytes]:
    """New and empty; nobody else may read it."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b")


def synced(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@asynccontextmanager
async def in_thread(manager: AbstractContextManager[IO[bytes]]) -> AsyncIterator[IO[bytes]]:
    """Entered and left beside the loop: the end of an upload takes seconds."""
    value = await asyncio.to_thread(manager.__enter__)
    try:
        yield value
    except BaseException as error:
        if not await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await asyncio.to_thread(manager.__exit__, None, None, None)


def _kept(path: Path) -> KeptArchive:
    found = path.stat()
    at = datetime.fromtimestamp(found.st_mtime, UTC)
    return KeptArchive(name=path.name, bytes=found.st_size, at=at)
