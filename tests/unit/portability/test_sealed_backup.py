"""Backups that seal the rows of each user: who is erased stays out of older ones."""

import contextlib
from pathlib import Path

import pytest

from rayapp.portability.backup import BackupService
from rayapp.portability.encryption import BackupKeys, new_key
from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.sealing import KEY_FILE
from rayapp.storage.backup_files import FolderBackups, UrlBackups
from tests.support.clock import FakeClock
from tests.support.stores.backups import InMemoryBackups, owner_of

DANA, NOA = "דנה", "noa"


def filled() -> InMemoryBackups:
    made = InMemoryBackups()
    made.add("memory_items", *range(7), user_id=DANA)
    made.add("memory_items", *range(7, 12), user_id=NOA)
    made.add("events", 1, user_id=DANA)
    made.add("events", 2)
    return made


def rows_of(database: InMemoryBackups) -> dict[str, dict[object, bytes]]:
    return {name: dict(rows) for name, rows in database.rows.items()}


@pytest.fixture
def database() -> InMemoryBackups:
    return filled()


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def age(request: pytest.FixtureRequest, tmp_path: Path) -> BackupKeys:
    if not request.param:
        return BackupKeys()
    new_key(tmp_path / "age")
    return BackupKeys(key_file=tmp_path / "age")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def service_of(
    database: InMemoryBackups, place: Path | None, age: BackupKeys, clock: FakeClock | None = None
) -> BackupService:
    folder = place.parent / "kept" if place else Path("nowhere")
    keys = None if place is None else FolderBackups(place)
    return BackupService(database, FolderBackups(folder), clock or FakeClock(), age, keys)


async def test_it_comes_back_as_it_was_on_an_empty_machine(
    database: InMemoryBackups, place: Path, age: BackupKeys
) -> None:
    made, manifest = await service_of(database, place, age).create()
    assert (manifest.rows, manifest.version) == (14, 2)
    for part in manifest.parts:
        assert part.sealed
    new = InMemoryBackups()
    service = service_of(new, place, age)
    assert (await service.verify(made.name)).restored.rows == 14
    assert not new.user_keys.rows  # who only looks takes nothing in
    restored = await service.restore(made.name)
    assert (restored.rows, restored.unreadable) == (14, 0)
    assert new.rows == database.rows
    assert new.user_keys.rows == database.user_keys.rows
    # The file is this database's from now on: an erasure here reaches the backups of before.
    new.erase(DANA)
    await service.user_keys.write()
    assert (await service_of(InMemoryBackups(), place, age).verify(made.name)).restored.rows == 6


async def test_keys_may_lie_in_the_store_of_the_backups(
    database: InMemoryBackups, tmp_path: Path, age: BackupKeys
) -> None:
    places = [UrlBackups(f"file://{tmp_path}/{name}") for name in ("kept", "keys")]
    service = BackupService(database, places[0], FakeClock(), age, places[1])
    made, manifest = await service.create()
    assert places[1].listed()[0][0] == KEY_FILE.format(manifest.user_keys)
    assert (await service.verify(made.name)).restored.rows == manifest.rows == 14


async def test_who_was_erased_since_stays_out_and_is_counted(
    database: InMemoryBackups, place: Path, age: BackupKeys
) -> None:
    service = service_of(database, place, age)
    made, _ = await service.create()
    before = rows_of(database)
    database.erase(DANA)
    for _ in range(2):  # with what the database knows; then with the file alone
        verified = await service.verify(made.name)
        assert (verified.restored.rows, verified.restored.unreadable) == (6, 8)
        restored = await service.restore(made.name, replace=True)
        assert (restored.rows, restored.unreadable) == (6, 8)
        assert database.rows == {
            name: {key: row for key, row in rows.items() if owner_of(row) != DANA}
            for name, rows in before.items()
        }
        await service.user_keys.write()
        database = InMemoryBackups()
        service = service_of(database, place, age)


async def test_who_came_after_the_keys_were_made_is_in_the_next_one(
    place: Path, age: BackupKeys
) -> None:
    class Growing(InMemoryBackups):
        def snapshot(self) -> contextlib.AbstractAsyncContextManager[InMemoryBackups]:
            self.add("events", 3, user_id="later")
            return super().snapshot()

    database, clock = Growing(), FakeClock()
    database.add("events", 1, user_id=DANA)
    service = service_of(database, place, age, clock)
    assert (await service.create())[1].rows == 1
    clock.advance(1)
    assert (await service.create())[1].rows == 2


async def test_who_is_erased_while_it_is_made_is_in_none(place: Path, age: BackupKeys) -> None:
    class Erasing(InMemoryBackups):
        def snapshot(self) -> contextlib.AbstractAsyncContextManager[InMemoryBackups]:
            self.user_keys.erase(DANA)  # the moment of the backup still has the rows
            return super().snapshot()

    database = Erasing()
    database.add("events", 1, user_id=DANA)
    database.add("events", 2, user_id=NOA)
    service = service_of(database, place, age)
    made, manifest = await service.create()
    assert manifest.rows == 2
    restored = await service.restore(made.name, replace=True)
    assert (restored.rows, restored.unreadable) == (1, 1)


async def test_without_the_keys_nothing_is_touched(
    database: InMemoryBackups, place: Path, age: BackupKeys, tmp_path: Path
) -> None:
    made, _ = await service_of(database, place, age).create()
    place.rename(tmp_path / "elsewhere")  # noqa: ASYNC240 - nobody waits for this loop
    new = InMemoryBackups()
    new.add("events", 9, user_id="here")
    before = rows_of(new)
    for act in (service_of(new, place, age).verify, service_of(new, place, age).restore):
        with pytest.raises(BadArchive, match="name its folder or address with --user-keys"):
            await act(made.name)
    assert (new.rows, new.user_keys.rows) == (before, {})


async def test_keys_are_away_from_the_machine_before_a_backup_has_its_name(
    database: InMemoryBackups, place: Path, age: BackupKeys
) -> None:
    place.write_text("no folder")  # noqa: ASYNC240 - nobody waits for this loop
    service = service_of(database, place, age)
    with pytest.raises(OSError, match="keys"):
        await service.create()
    assert service.kept() == []


async def test_a_restore_that_was_cut_short_is_finished_by_a_repeat(
    database: InMemoryBackups, place: Path, age: BackupKeys
) -> None:
    made, _ = await service_of(database, place, age).create()
    for at in range(14):
        new = InMemoryBackups()
        new.fail_at = at
        service = service_of(new, place, age)
        with pytest.raises(ConnectionError):
            await service.restore(made.name)
        new.fail_at = None
        await service.restore(made.name, replace=True)
        assert new.rows == database.rows


async def test_a_new_machine_writes_a_file_of_its_own(
    database: InMemoryBackups, place: Path, age: BackupKeys
) -> None:
    """A backup by the clock, before anybody restored: the keys of the lost one stay."""
    clock = FakeClock()
    made, manifest = await service_of(database, place, age, clock).create()
    clock.advance(1)
    new = InMemoryBackups()
    new.add("events", 5, user_id=DANA)
    service = service_of(new, place, age, clock)
    early, other = await service.create()
    assert manifest.user_keys != other.user_keys
    restored = await service.restore(made.name, replace=True)
    assert (restored.rows, new.rows) == (14, database.rows)
    # Both files hold all keys, and follow.
    new.erase(DANA)
    await service.user_keys.write()
    for name, rows in ((made.name, 6), (early.name, 0)):
        looked = await service_of(InMemoryBackups(), place, age).verify(name)
        assert looked.restored.rows == rows


async def test_backups_of_both_kinds_lie_side_by_side(
    database: InMemoryBackups, place: Path, age: BackupKeys
) -> None:
    clock = FakeClock()
    sealed, _ = await service_of(database, place, age, clock).create()
    clock.advance(1)
    files = FolderBackups(place.parent / "kept")
    plain = BackupService(database, files, clock, age)
    open_, manifest = await plain.create()
    assert manifest.version == 1
    assert '"sealed"' not in manifest.model_dump_json()
    assert '"user_keys"' not in manifest.model_dump_json()
    before = rows_of(database)
    database.erase(DANA)
    # The database has the keys, so no place need be named; what was never sealed has everybody.
    assert (await plain.restore(sealed.name, replace=True)).unreadable == 8
    assert (await plain.restore(open_.name, replace=True)).unreadable == 0
    assert database.rows == before


async def test_a_changed_byte_is_noticed(place: Path) -> None:
    database = filled()
    service = service_of(database, place, BackupKeys())
    made, _ = await service.create()
    before = rows_of(database)
    path = place.parent / "kept" / made.name
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with contextlib.suppress(BadArchive):
            await service.restore(made.name, replace=True)
        assert database.rows == before, at
