"""Backups of the whole store on a real MongoDB: of one moment, and back as they were."""

import asyncio
import secrets
import shlex
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from jobs import backup as job
from rayapp.bulk.model import Job, JobState, Plan, lease_of, shares_of
from rayapp.container.bootstrap import Stores
from rayapp.container.leader_tasks import user_keys_tasks
from rayapp.core.errors import Conflict
from rayapp.core.ids import WARM_UP_USER
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.model import BackupSettings, Settings
from rayapp.portability import backup
from rayapp.portability.backup import BackupManifest, BackupService
from rayapp.portability.rules.archive import MANIFEST
from rayapp.portability.sealing import KEY_FILE, LENGTH_BYTES, KeyList, open_rows
from rayapp.storage.backup_files import FolderBackups
from rayapp.storage.mongo.backup import WINDOW, WINDOW_S, MongoBackups
from rayapp.storage.mongo.database import DURABLE, MongoDatabase
from rayapp.storage.mongo.indexes import AUDIT_LOG
from rayapp.storage.mongo.jobs import MongoJobStore, MongoLeaseStore
from rayapp.storage.mongo.user_keys import MongoUserKeys
from tests.support.archive_world import ArchiveWorld, ask, fill, on_stores, settings_in
from tests.support.mongo_server import MongoServer

pytestmark = pytest.mark.engine
NOW = datetime(2026, 3, 1, tzinfo=UTC)
README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
async def world(tmp_path: Path, mongo: MongoServer, database: MongoDatabase) -> ArchiveWorld:
    settings = settings_in(tmp_path, mongo=mongo.settings().model_dump())
    return await on_stores(Stores(settings), settings)


@pytest.fixture
def service(tmp_path: Path, mongo: MongoServer) -> BackupService:
    return BackupService(
        MongoBackups(mongo.settings()), FolderBackups(tmp_path / "kept"), SystemClock()
    )


async def rows(database: MongoDatabase) -> dict[str, list[dict[str, object]]]:
    names = MongoBackups.names
    return {
        name: await database.collection(name).find({}, sort=[("_id", 1)]).to_list()
        for name in names
    }


async def test_a_backup_comes_back_as_it_was(
    world: ArchiveWorld, service: BackupService, database: MongoDatabase
) -> None:
    await fill(world)
    await fill(ArchiveWorld(world.container, "noa"), "Acre")
    before = await rows(database)
    made, _ = await service.create()
    verified = await service.verify(made.name)
    assert verified.restored.rows == sum(map(len, before.values()))
    living = [row for row in before["memory_items"] if row["status"] != "deleted"]
    assert verified.searches == len(living) > 5
    names = await database.client.list_database_names()
    assert not [name for name in names if name.startswith("rayapp-verify")]
    with pytest.raises(Conflict, match="not empty"):
        await service.restore(made.name)
    async with world.http() as http:
        await ask(http, "POST", "/api/memory/store", {"text": "Later", "memory_id": "later"})
    await service.restore(made.name, replace=True)
    assert await rows(database) == before
    await service.restore(made.name, replace=True)
    assert await rows(database) == before


async def test_what_expired_since_is_no_difference(
    service: BackupService, database: MongoDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server removes what is past its time while a backup of last month is checked."""
    old = {"receipt_id": "r", "user_id": "dana", "expires_at": datetime(2026, 1, 1, tzinfo=UTC)}
    receipts = database.collection("receipts").with_options(write_concern=DURABLE)
    await receipts.insert_one(old)
    made, _ = await service.create()
    load, admin = backup._load, database.client.admin

    async def passes() -> int:
        return int((await admin.command("serverStatus"))["metrics"]["ttl"]["passes"])

    async def loaded(*how: Any) -> backup.Restored:
        found = await load(*how)
        await admin.command({"setParameter": 1, "ttlMonitorEnabled": True})
        try:
            ends = await passes() + 2
            while await passes() < ends:  # noqa: ASYNC110 - the server does it
                await asyncio.sleep(0.1)
        finally:
            await admin.command({"setParameter": 1, "ttlMonitorEnabled": False})
        return found

    monkeypatch.setattr(backup, "_load", loaded)
    assert (await service.verify(made.name)).restored.rows == 1


async def test_a_machine_without_users_is_empty_whatever_the_service_wrote(
    world: ArchiveWorld, service: BackupService, database: MongoDatabase
) -> None:
    """A new machine that waited: today's row, an operator's key, the receipts of its start."""
    await fill(world)
    day, keys = database.collection("daily_metrics"), database.collection("api_keys")
    await day.insert_one({"_id": "old", "day": "2026-01-02", "searches": 7})
    made, _ = await service.create()
    before = await rows(database)
    for name in MongoBackups.names:
        await database.collection(name).delete_many({})
    await day.insert_one({"_id": "new", "day": "2026-01-02", "searches": 0})
    await keys.insert_one({"_id": "mine", "key_hash": "h", "principal": "ops"})
    receipts = database.collection("receipts")
    await receipts.insert_one({"receipt_id": "a start", "user_id": WARM_UP_USER})
    await service.restore(made.name)
    assert await keys.find_one({"_id": "mine"}) is not None
    await keys.delete_one({"_id": "mine"})
    await receipts.delete_one({"receipt_id": "a start"})
    assert await rows(database) == before


async def test_the_index_follows_a_restore_into_the_past(
    world: ArchiveWorld, service: BackupService, mongo: MongoServer, tmp_path: Path
) -> None:
    """It holds revs of after the backup: of what was edited, put away, and stored once more."""

    async def words() -> dict[str, str]:
        points, _ = await world.container.index.scroll(after=None, limit=100)
        found = await world.stores.scan.by_points([point.point_id for point in points])
        by_id = {point.point_id: str(point.payload["lang"]) for point in points}
        return {item.memory_id: by_id[item.point_id] for item in found}

    items = "/api/memory/items"
    async with world.http() as http:
        for name in ("edited", "away"):
            await ask(http, "POST", "/api/memory/store", {"text": name, "memory_id": name})
        await world.work()
        await ask(http, "POST", f"{items}/away/archive", {"reason": "old"})
        await world.work()
        made, _ = await service.create()
        before = await words()
        assert before == {"edited": "en"}
        for text in ("שלום לכולם", "נתראה מחר", "בוקר טוב לך"):
            await ask(http, "PATCH", f"{items}/edited", {"text": text})
        await ask(http, "POST", f"{items}/away/restore")
        await world.work()
        assert await words() == {"edited": "he", "away": "en"}
    await service.restore(made.name, replace=True)
    settings = settings_in(tmp_path, mongo=mongo.settings().model_dump())
    assert await job._mark_restored(settings)
    await world.work()
    assert await words() == before
    assert (await world.stores.items.backlog()).pending == 0


async def test_a_job_of_a_backup_is_driven_under_the_leases_of_the_new_machine(
    service: BackupService, database: MongoDatabase, mongo: MongoServer, tmp_path: Path
) -> None:
    """They count from 1. An old job with a later fence could not be taken, and whoever follows
    the driver of a new one would be told the result of the old one."""
    jobs, leases = MongoJobStore(database), MongoLeaseStore(database)
    for job_id, fence in (("old", 56), ("lost", 57)):
        await jobs.create(Job(job_id=job_id, kind="k", params={}, created_at=NOW))
        await jobs.take(job_id, fence, submission_id=None)
    await jobs.planned("lost", 57, Plan(partitions=shares_of([{}]), total=1))
    await jobs.end("old", 56, JobState.COMPLETED, report={})
    made, _ = await service.create()
    await database.collection("leases").delete_many({})
    await service.restore(made.name, replace=True)
    await job._mark_restored(settings_in(tmp_path, mongo=mongo.settings().model_dump()))
    lease = await leases.acquire(lease_of("k"), "driver", 10.0)
    assert lease is not None
    taken = await jobs.take("lost", lease.fence, submission_id=None)
    assert taken == max(await jobs.recent("k", 9), key=lambda one: one.fence)
    assert [row.fence for row in await jobs.partitions("lost")] == [lease.fence]


async def test_a_moment_that_the_server_keeps_no_more_says_what_to_raise(
    database: MongoDatabase, mongo: MongoServer
) -> None:
    backups, events = MongoBackups(mongo.settings()), database.collection("events")
    admin = database.client.admin

    async def kept_s() -> int:
        return int((await admin.command({"getParameter": 1, WINDOW: 1}))[WINDOW])

    async def read_on() -> None:
        async with backups.snapshot() as snapshot, asyncio.timeout(30):
            assert await kept_s() == WINDOW_S
            await admin.command({"setParameter": 1, WINDOW: 0})
            while not [page async for page in snapshot.pages("events")]:
                await events.insert_one({"event_id": secrets.token_hex(8), "user_id": DANA})
                await asyncio.sleep(0.2)

    before = await kept_s()
    with pytest.raises(Conflict, match=WINDOW):
        await read_on()
    assert await kept_s() == before
    await backups.close()


async def test_what_is_written_meanwhile_is_in_none_or_in_all_of_it(
    world: ArchiveWorld, service: BackupService, database: MongoDatabase
) -> None:
    """A memory that was edited before the backup began is there with its version."""
    stop = asyncio.Event()

    async with world.http() as http:
        await ask(http, "POST", "/api/memory/store", {"text": "0", "memory_id": "m"})

    async def edit() -> None:
        async with world.http() as http:
            for number in range(1, 10_000):
                await ask(http, "PATCH", "/api/memory/items/m", {"text": f"text {number}"})
                if stop.is_set():
                    return

    editing = asyncio.create_task(edit())
    await asyncio.sleep(0.3)
    made = [(await service.create())[0] for _ in range(5)]
    stop.set()
    await editing
    for one in made:
        await service.restore(one.name, replace=True)
        item = await database.collection("memory_items").find_one({"memory_id": "m"})
        versions = await database.collection("memory_versions").count_documents({})
        assert item is not None
        assert item["version"] == versions + 1


# --- sealed


DANA, NOA = "dana-7f", "noa"


@pytest.fixture
def sealing(tmp_path: Path, mongo: MongoServer) -> BackupService:
    return BackupService(
        MongoBackups(mongo.settings()),
        FolderBackups(tmp_path / "kept"),
        SystemClock(),
        key_place=FolderBackups(tmp_path / "keys"),
    )


def blocks_in(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each sealed block of a backup, with its collection."""
    with zipfile.ZipFile(path) as found:
        manifest = BackupManifest.model_validate_json(found.read(MANIFEST))
        for part in manifest.parts:
            data = found.read(part.member) if part.sealed else b""
            while data:
                size = int.from_bytes(data[:LENGTH_BYTES], "little")
                yield part.collection, data[:size]
                data = data[size:]


def readable_in(path: Path, keys: dict[bytes, bytes], *, but: str = "") -> bytes:
    """All that can be read in a backup: rows by these keys, and members as they are. `but`: not
    those of a collection."""
    rows = [b"".join(open_rows(name, block, keys)[0]) for name, block in blocks_in(path)]
    with zipfile.ZipFile(path) as found:
        manifest = BackupManifest.model_validate_json(found.read(MANIFEST))
        left_out = {part.member for part in manifest.parts if part.collection == but}
        members = (name for name in found.namelist() if name not in left_out)
        return b"".join([*rows, *map(found.read, members)])


async def test_nobody_reads_the_words_of_an_erased_user_in_an_older_backup(
    world: ArchiveWorld, sealing: BackupService, database: MongoDatabase, tmp_path: Path
) -> None:
    words = {
        user: [f"w{secrets.token_hex(8)}", f"מילה{secrets.token_hex(8)}"] for user in (DANA, NOA)
    }
    for user, planted in words.items():
        own = ArchiveWorld(world.container, user)
        await fill(own, planted[0])
        async with own.http() as http:
            await ask(http, "POST", "/api/memory/store", {"text": f"The code is {planted[1]}"})
    before = await rows(database)
    made, manifest = await sealing.create()
    assert manifest.rows == sum(map(len, before.values()))
    backup = tmp_path / "kept" / made.name
    key_file = tmp_path / "keys" / KEY_FILE.format(manifest.user_keys)

    def known() -> dict[bytes, bytes]:
        keys = KeyList.model_validate_json(key_file.read_bytes()).keys
        return {one.key_id: one.secret for one in keys}

    data = readable_in(backup, known())
    assert all(word.encode() in data for planted in words.values() for word in planted)
    assert not any(
        word.encode() in readable_in(backup, {}) for planted in words.values() for word in planted
    )

    async with world.http() as http:
        erasing = asyncio.create_task(ask(http, "DELETE", "/api/memory/user?confirm=DELETE"))
        while not erasing.done():
            await world.work()
            await asyncio.sleep(0.02)
        answer = await erasing
    assert answer["complete"]
    certificate = answer["certificate"]
    assert (certificate["removed"]["backup_keys"], certificate["left"]["backup_keys"]) == (1, 0)
    await sealing.user_keys.write()
    kept = {one.key_id: one.secret for one in await MongoUserKeys(database).all()}
    assert kept == known()
    data = readable_in(backup, kept)
    assert not any(word.encode() in data for word in words[DANA])
    # Who did what to whose memory stays known.
    assert DANA.encode() not in readable_in(backup, kept, but=AUDIT_LOG)
    assert all(word.encode() in data for word in words[NOA])

    left = {
        name: [row for row in many if row.get("user_id") != DANA or name == AUDIT_LOG]
        for name, many in before.items()
    }
    gone = sum(len(many) - len(left[name]) for name, many in before.items())
    verified = await sealing.verify(made.name)
    assert verified.restored.unreadable == gone > 20
    assert verified.searches > 5
    restored = await sealing.restore(made.name, replace=True)
    assert (restored.rows, restored.unreadable) == (manifest.rows - gone, gone)
    assert await rows(database) == left


async def test_a_reset_keeps_the_keys_of_older_backups(
    world: ArchiveWorld, sealing: BackupService, database: MongoDatabase
) -> None:
    await fill(world)
    before = await rows(database)
    made, _ = await sealing.create()
    async with world.http() as http:
        await ask(http, "POST", "/api/memory/ops/reset", {"confirm": "DELETE"})
    await sealing.restore(made.name, replace=True)
    assert await rows(database) == before


def restore_of_readme() -> list[str]:
    """What follows `rayapp job backup` in the second command for an empty machine."""
    text = README.read_text(encoding="utf-8").split("Yesterday's backup on an empty machine:")[1]
    up, restore = text.split("```")[1].strip().splitlines()
    assert shlex.split(up)[-2:] == ["up", "--wait"]
    before, options = restore.split("rayapp job backup ")
    assert before == ".venv/bin/"
    return shlex.split(options, comments=True)


def test_the_commands_bring_a_lost_machine_back_and_say_what_is_unreadable(
    mongo: MongoServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a stack: what a command finds of one is given."""

    def settings_of(machine: Path) -> Settings:
        return settings_in(tmp_path, mongo=mongo.settings(machine.name).model_dump())

    def said(machine: str, *options: str, code: int = 0) -> str:
        known = {"/mnt/backups": str(tmp_path / "kept")}
        given = [known.get(one, one) for one in (*options, "--data-dir", machine)]
        assert job.main(given) == code
        return " ".join(capsys.readouterr().out.split())

    async def prepare() -> None:
        database = MongoBackups(settings_of(Path("lost")).mongo)
        await database.prepare()
        await database.close()

    monkeypatch.setattr(job, "attached", settings_of)
    keys = ("--user-keys", str(tmp_path / "keys"))
    place = ("--dir", "/mnt/backups")
    restore = restore_of_readme()
    asyncio.run(prepare())
    with MongoClient[dict[str, Any]](mongo.uri) as client:
        counts = {one: client[one]["memory_deletions"] for one in ("lost", "new")}
        planted = [{"_id": n, "user_id": user, "tier": "x"} for n, user in enumerate((DANA, NOA))]
        counts["lost"].insert_many(planted)
        assert "zip: 2 rows" in said("lost", "create", *place, *keys)
        assert "with --user-keys" in said("new", *restore, code=2)
        assert "2 rows are back" in said("new", *restore, *keys)
        assert list(counts["new"].find({}, sort=[("_id", 1)])) == planted
        client["new"]["backup_keys"].delete_many({"user_id": DANA})
        older = said("new", "list", *place).split()[0]
        sealing = BackupSettings(user_keys=keys[1])
        following = settings_of(Path("new")).model_copy(update={"backup": sealing})
        (task,) = user_keys_tasks(following, SystemClock())
        assert asyncio.run(task.run())
        assert not user_keys_tasks(settings_of(Path("new")), SystemClock())
        unreadable = "1 rows of users who were erased since are unreadable"
        assert (
            f"1 rows came back as they were, 0 memories were found by their words; {unreadable}"
            in (said("other", "verify", older, *place, *keys))
        )
        assert unreadable in said("new", "restore", older, *place, "--replace", "DELETE")
        assert list(counts["new"].find()) == planted[1:]
        said("lost", "create", *place)  # not sealed: the newest one
        warm_up = {"receipt_id": "a start", "user_id": WARM_UP_USER}
        client["empty"]["receipts"].insert_one(warm_up)
        assert "2 rows are back" in said("empty", *restore)
        assert list(client["empty"]["memory_deletions"].find({}, sort=[("_id", 1)])) == planted
