"""Backups of the whole store, over a database in memory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import bson
import pytest

from rayapp.core.errors import Conflict, NotFound
from rayapp.portability.backup import UNFINISHED, BackupService
from rayapp.portability.rules.archive import BadArchive
from tests.support.clock import FakeClock


class InMemoryBackups:
    """Implements `portability.backup.Backups`; `fail_at`: a write that raises, as a death would."""

    names = ("memory_items", "events")

    def __init__(self) -> None:
        self.rows: dict[str, dict[object, bytes]] = {name: {} for name in self.names}
        self.fail_at: int | None = None

    def add(self, name: str, *ids: int) -> None:
        for one in ids:
            self.rows[name][one] = bson.encode({"_id": one, "text": f"דנה {one}"})

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[InMemoryBackups]:
        yield self

    @contextlib.asynccontextmanager
    async def scratch(self, name: str) -> AsyncIterator[InMemoryBackups]:
        yield type(self)()

    async def prepare(self) -> None:
        """Nothing to create."""

    async def total(self) -> int:
        return sum(map(len, self.rows.values()))

    async def empty(self) -> None:
        for rows in self.rows.values():
            rows.clear()

    async def load(self, name: str, rows: Iterable[bytes]) -> None:
        for row in rows:
            if self.fail_at is not None and await self.total() >= self.fail_at:
                raise ConnectionError
            self.rows[name][bson.decode(row)["_id"]] = row

    async def pages(self, name: str) -> AsyncIterator[list[bytes]]:
        rows = [row for _, row in sorted(self.rows[name].items(), key=lambda one: str(one[0]))]
        for start in range(0, len(rows), 2):
            yield rows[start : start + 2]


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
    return BackupService(database, tmp_path / "kept", clock)


async def test_a_backup_comes_back_as_it_was(
    service: BackupService, database: InMemoryBackups
) -> None:
    before = {name: dict(rows) for name, rows in database.rows.items()}
    made = await service.create()
    assert service.manifest(made.name).rows == 8
    assert (await service.verify(made.name)).rows == 8
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
    made = await service.create()
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
    made = await service.create()
    poor = BackupService(Forgetful(), tmp_path / "kept", clock)
    with pytest.raises(BadArchive, match="comes back as 6 rows"):
        await poor.verify(made.name)


async def test_a_broken_backup_is_refused_before_anything_goes(
    service: BackupService, database: InMemoryBackups, tmp_path: Path
) -> None:
    before = {name: dict(rows) for name, rows in database.rows.items()}
    made = await service.create()
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
        made.append((await service.create()).name)
        clock.advance(1)
    left = tmp_path / "kept" / (made[0] + UNFINISHED)
    left.write_bytes(b"cut short")
    assert [one.name for one in service.kept()] == made[::-1]
    assert [one.name for one in service.cleanup(1)] == made[1::-1]
    assert [one.name for one in service.kept()] == made[2:]
    assert not left.exists()
