"""Backups of the whole store, over a database in memory."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import resource
import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from uuid import uuid4

import bson
import pytest

from rayapp.core.errors import ConfigError, Conflict, DependencyDown, NotFound
from rayapp.portability.backup import BackupService
from rayapp.portability.encryption import BackupKeys, new_key
from rayapp.portability.files import UNFINISHED, Files
from rayapp.portability.rules.archive import BadArchive
from rayapp.storage.backup_files import FolderBackups, UrlBackups, open_backups
from tests.support.clock import FakeClock
from tests.support.stores.backups import InMemoryBackups


class Deaf(InMemoryBackups):
    """A database that finds nothing by its words."""

    async def finds(self, memory: bytes) -> bool | None:
        return False


class Forgetful(InMemoryBackups):
    """A database that loses a row."""

    async def load(self, name: str, rows: Iterable[bytes]) -> None:
        await super().load(name, list(rows)[1:])


@pytest.fixture
def database() -> InMemoryBackups:
    made = InMemoryBackups()
    made.add("memory_items", *range(7))
    made.add("events", 1)
    return made


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def service(database: InMemoryBackups, clock: FakeClock, tmp_path: Path) -> BackupService:
    return BackupService(database, FolderBackups(tmp_path / "kept"), clock)


async def test_a_backup_comes_back_as_it_was(
    service: BackupService, database: InMemoryBackups
) -> None:
    before = {name: dict(rows) for name, rows in database.rows.items()}
    made, manifest = await service.create()
    assert service.manifest(made.name) == manifest
    verified = await service.verify(made.name)
    assert (verified.restored.rows, verified.searches) == (8, 7)
    database.add("memory_items", 99)
    with pytest.raises(Conflict, match="not empty"):
        await service.restore(made.name)
    await service.restore(made.name, replace=True)
    assert database.rows == before
    await database.empty()
    await service.restore(made.name)
    assert database.rows == before


async def test_a_restore_that_was_cut_short_is_finished_by_a_repeat(
    service: BackupService, database: InMemoryBackups
) -> None:
    before = {name: dict(rows) for name, rows in database.rows.items()}
    made, _ = await service.create()
    for at in range(8):
        database.fail_at = at
        with pytest.raises(ConnectionError):
            await service.restore(made.name, replace=True)
        database.fail_at = None
        await service.restore(made.name, replace=True)
        assert database.rows == before


async def test_what_does_not_come_back_is_noticed(
    service: BackupService, database: InMemoryBackups, clock: FakeClock, tmp_path: Path
) -> None:
    made, _ = await service.create()
    poor = BackupService(Forgetful(), FolderBackups(tmp_path / "kept"), clock)
    with pytest.raises(BadArchive, match="comes back as 6 rows"):
        await poor.verify(made.name)
    deaf = BackupService(Deaf(), FolderBackups(tmp_path / "kept"), clock)
    with pytest.raises(BadArchive, match="7 of 7 memories"):
        await deaf.verify(made.name)


async def test_what_a_killed_check_left_is_dropped_by_the_next_one(
    service: BackupService, database: InMemoryBackups, clock: FakeClock
) -> None:
    made, _ = await service.create()
    database.others = ["rayapp", "rayapp-verify-mine", "rayapp-verify-0123456789ab"]
    async with database.scratch("other"):
        pass
    seen: list[str] = []
    check = service.verify

    class Killed(Exception):
        pass

    async def left_by_a_death() -> None:
        original = database.scratch

        @contextlib.asynccontextmanager
        async def killed(name: str) -> AsyncIterator[InMemoryBackups]:
            database.others.append(name)
            seen.append(name)
            raise Killed
            yield database

        database.scratch = killed  # type: ignore[method-assign]
        with pytest.raises(Killed):
            await check(made.name)
        database.scratch = original  # type: ignore[method-assign]

    await left_by_a_death()
    assert database.others == ["rayapp", "rayapp-verify-mine", seen[0]]
    clock.advance(86_000)
    await check(made.name)
    assert seen[0] in database.others, "another check may be at work"
    clock.advance(500)
    assert await service.drop_left() == seen
    assert database.others == ["rayapp", "rayapp-verify-mine"]


async def test_a_broken_backup_is_refused_before_anything_goes(
    service: BackupService, database: InMemoryBackups, tmp_path: Path
) -> None:
    before = {name: dict(rows) for name, rows in database.rows.items()}
    made, _ = await service.create()
    path = tmp_path / "kept" / made.name
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with contextlib.suppress(BadArchive):
            await service.restore(made.name, replace=True)
        assert database.rows == before, at
    for size in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(BadArchive):
            await service.restore(made.name, replace=True)
    for name in (f"../{made.name}", "rayapp-backup-x.zip", ""):
        with pytest.raises(NotFound):
            await service.restore(name, replace=True)
    assert database.rows == before


async def test_the_newest_stay(service: BackupService, clock: FakeClock, tmp_path: Path) -> None:
    made = []
    for _ in range(3):
        made.append((await service.create())[0].name)
        clock.advance(1)
    left = tmp_path / "kept" / (made[0] + UNFINISHED)
    left.write_bytes(b"cut short")
    assert [one.name for one in service.kept()] == made[::-1]
    assert [one.name for one in service.cleanup(1)] == made[1::-1]
    assert [one.name for one in service.kept()] == made[2:]
    assert not left.exists()


# --- places


@pytest.fixture(params=["folder", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "folder":
        return open_backups(tmp_path / "kept")
    return open_backups(f"memory://{uuid4().hex}/kept")


async def test_a_backup_goes_to_any_place_and_comes_back(
    database: InMemoryBackups, clock: FakeClock, files: Files
) -> None:
    service = BackupService(database, files, clock)
    assert service.kept() == []
    before = {name: dict(rows) for name, rows in database.rows.items()}
    made, _ = await service.create()
    assert (made.at, service.kept()) == (clock.now(), [made])
    assert made.bytes > 0
    await service.verify(made.name)
    await service.restore(made.name, replace=True)
    assert database.rows == before
    assert service.cleanup(0) == [made]
    assert service.kept() == []


def test_what_was_not_written_to_its_end_is_no_backup(files: Files) -> None:
    name = "rayapp-backup-2026-05-06T07-08-09-000000Z.zip"
    with contextlib.suppress(ZeroDivisionError), files.writing(name) as file:
        file.write(b"x")
        raise ZeroDivisionError
    assert files.listed() == []
    with files.writing(name) as file:
        file.write(b"whole")
    assert files.listed() == [(name, 5)]
    with files.reading(name) as file:
        assert file.read() == b"whole"


def test_a_link_to_what_is_gone_hides_no_backup(tmp_path: Path) -> None:
    """Of an operator, to a backup that was cleaned up; or a file that goes meanwhile."""
    (tmp_path / "latest.zip").symlink_to("rayapp-backup-2026-05-05T07-08-09-000000Z.zip")
    (tmp_path / "rayapp-backup-2026-05-06T07-08-09-000000Z.zip").write_bytes(b"whole")
    files = FolderBackups(tmp_path)
    assert files.listed() == [("rayapp-backup-2026-05-06T07-08-09-000000Z.zip", 5)]


def test_a_place_that_is_none_is_said_in_one_sentence(tmp_path: Path) -> None:
    for url in ("nothing://x", "s3-typo://bucket"):
        with pytest.raises(ConfigError, match="cannot be opened"):
            open_backups(url)
    (tmp_path / "file").write_text("x")
    broken = UrlBackups(f"file://{tmp_path}/file/inside")
    with pytest.raises(DependencyDown, match="cannot be used"), broken.writing("x"):
        pass


# --- encryption

WORDS = "דנה".encode()


async def test_an_encrypted_backup_is_read_with_its_key_alone(
    database: InMemoryBackups, clock: FakeClock, files: Files, tmp_path: Path
) -> None:
    before = {name: dict(rows) for name, rows in database.rows.items()}
    public = new_key(tmp_path / "key")
    new_key(tmp_path / "other")
    # Who makes backups has the public half alone.
    made, manifest = await BackupService(database, files, clock, BackupKeys(public)).create()
    assert made.name.endswith(".zip.age")
    assert manifest.rows == 8
    with files.reading(made.name) as file:
        data = file.read()
    assert data.startswith(b"age-encryption.org/v1")
    assert WORDS not in data
    assert b"manifest.json" not in data
    for keys, said in (
        (BackupKeys(public), "without that key nobody can read it"),
        (BackupKeys(key_file=tmp_path / "other"), "for another key than that of"),
    ):
        with pytest.raises(BadArchive, match=said):
            await BackupService(database, files, clock, keys).restore(made.name, replace=True)
        assert database.rows == before
    service = BackupService(database, files, clock, BackupKeys(key_file=tmp_path / "key"))
    assert (await service.verify(made.name)).searches == 7
    await service.restore(made.name, replace=True)
    assert database.rows == before
    clock.advance(1)
    assert (await service.create())[0].name.endswith(".age")


async def test_a_changed_byte_of_an_encrypted_backup_is_noticed(
    database: InMemoryBackups, clock: FakeClock, tmp_path: Path
) -> None:
    new_key(tmp_path / "key")
    keys, folder = BackupKeys(key_file=tmp_path / "key"), tmp_path / "kept"
    service = BackupService(database, FolderBackups(folder), clock, keys)
    made, _ = await service.create()
    before = {name: dict(rows) for name, rows in database.rows.items()}
    data = (folder / made.name).read_bytes()
    for at in range(0, len(data), 7):
        (folder / made.name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(BadArchive):
            await service.restore(made.name, replace=True)
        assert database.rows == before
    (folder / made.name).write_bytes(data[:-20])
    with pytest.raises(BadArchive):
        await service.restore(made.name, replace=True)


async def test_what_dies_while_it_is_encrypted_is_no_backup(
    database: InMemoryBackups, clock: FakeClock, files: Files, tmp_path: Path
) -> None:
    class Dying(InMemoryBackups):
        async def pages(self, name: str) -> AsyncIterator[list[bytes]]:
            yield [bson.encode({"_id": 1, "text": "x" * 300_000})]
            raise ConnectionError

    public = new_key(tmp_path / "key")
    service = BackupService(Dying(), files, clock, BackupKeys(public))
    with pytest.raises((ConnectionError, DependencyDown)):
        await service.create()
    assert service.kept() == []


def test_a_full_disk_is_no_wrong_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where a backup is written nor where it is decrypted."""
    new_key(tmp_path / "age")
    keys, whole = BackupKeys(key_file=tmp_path / "age"), io.BytesIO()
    with keys.sealed(whole) as file:
        file.write(b"words" * 100_000)
    whole.seek(0)
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - `opened` closes it
    with pytest.raises(OSError, match="No space left"), keys.sealed(full) as file:
        file.write(b"words" * 100_000)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: full)
    with pytest.raises(OSError, match="No space left") as caught:
        keys.opened(whole, "a backup")
    assert caught.value.filename == tempfile.gettempdir()


def test_a_full_disk_is_told_of_the_last_words_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lie in a buffer until the file is read."""
    new_key(tmp_path / "age")
    keys, whole = BackupKeys(key_file=tmp_path / "age"), io.BytesIO()
    with keys.sealed(whole) as file:
        file.write(b"words")
    whole.seek(0)
    full = Path("/dev/full").open("wb")  # noqa: SIM115 - `opened` closes it
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: full)
    with pytest.raises(OSError, match="No space left") as caught:
        keys.opened(whole, "a backup")
    assert caught.value.filename == tempfile.gettempdir()


def test_a_backup_that_cannot_be_read_is_no_wrong_key(tmp_path: Path) -> None:
    class Torn(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    new_key(tmp_path / "age")
    with pytest.raises(OSError, match="Input/output error"):
        BackupKeys(key_file=tmp_path / "age").opened(Torn(), "a backup")


def test_keys_that_are_none_are_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nothing")
    for keys in ({"recipient": "age1x"}, {"key_file": tmp_path / "empty"}, {"key_file": tmp_path}):
        with pytest.raises(ConfigError, match=r"^backup\."):
            BackupKeys(**keys)  # type: ignore[arg-type]
    new_key(tmp_path / "key")
    with pytest.raises(ConfigError, match="is there already"):
        new_key(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0


def test_a_backup_that_is_being_written_is_left_alone(clock: FakeClock, tmp_path: Path) -> None:
    name = "rayapp-backup-2026-01-10T00-00-00-000000Z.zip"
    files = FolderBackups(tmp_path)
    with files.writing(name) as file:
        file.write(b"going on")
        BackupService(InMemoryBackups(), files, clock, BackupKeys()).cleanup(7)
    assert files.listed() == [(name, 8)]


async def test_memory_stays_flat_while_a_large_backup_is_encrypted(
    clock: FakeClock, tmp_path: Path
) -> None:
    class Large(InMemoryBackups):
        async def pages(self, name: str) -> AsyncIterator[list[bytes]]:
            for number in range(24):
                yield [bson.encode({"_id": number, "data": random.randbytes(1 << 20)})]

    public = new_key(tmp_path / "key")
    files = FolderBackups(tmp_path / "kept")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made, _ = await BackupService(Large(), files, clock, BackupKeys(public)).create()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert made.bytes > 48 << 20
    assert grown < 24 << 10  # KB
