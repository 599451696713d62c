"""`python -m tests.reliability.portability_kills [--kills 20] [--within S]`: whoever exports,
imports, restores, backs up or erases is killed -9 at random moments, on a real mongod; prints a
table.

After a kill the same is done again. Then there is what an unhurt one leaves, and before that never
an archive or a backup that is not whole.
"""

import argparse
import asyncio
import contextlib
import json
import math
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rayapp.container.bootstrap import Stores
from rayapp.core.errors import DeadlineExceeded, StoreDown
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.model import Settings
from rayapp.portability.archive import of_payload, open_zip
from rayapp.portability.backup import BackupService
from rayapp.portability.ports import ExportRequest, ImportRequest
from rayapp.portability.rules.archive import of_line
from rayapp.portability.rules.kinds import Kind, Merge, Origin
from rayapp.storage.backup_files import FolderBackups
from rayapp.storage.mongo.backup import MongoBackups
from tests.support.archive_contract import rows_of
from tests.support.archive_world import ArchiveWorld, fill, on_stores, settings_in
from tests.support.mongo_server import running_mongo

ALL = frozenset(Kind)
# A killed process leaves its transaction open; the server keeps one for 60 s by default.
TRANSACTION_S = 2
TRIES = 5
MEMORIES = 1_500
# An outcome is due for promotion after a minute by default: whoever does background work then
# settles those of every user, and that is no doing of what is killed.
AT_ONCE = {"settle_s": 0.0}
SPARE = "noa"  # whose rows nobody may touch
# A killed one is begun in tenths of a second when its imports are there before.
PRELOADED = ["tests.support.archive_contract", "tests.support.archive_world"]
# Acts with sealed backups; the others erase a user whom a backup then brings back.
SEALED = frozenset({"backup", "backup restore"})
Rows = Mapping[str, Any]


@dataclass
class Stage:
    """A world on one database, its folder, and its backups."""

    world: ArchiveWorld
    folder: Path
    backups: BackupService

    @property
    def archive(self) -> Path:
        return self.folder / "user.zip"


async def export(stage: Stage) -> None:
    await stage.world.container.exports.keep(stage.world.reads, ExportRequest(kinds=ALL))


async def import_(stage: Stage) -> None:
    await _import(stage, Merge.MERGE)


async def restore(stage: Stage) -> None:
    world, complete = stage.world, False
    while not complete:
        with stage.archive.open("rb") as file:
            asked = ImportRequest(merge=Merge.REPLACE)
            found = open_zip(file, max_bytes=1 << 30)
            done = await world.container.imports.restore(world.writes, found, asked)
            complete = done.report.complete


async def _import(stage: Stage, merge: Merge) -> None:
    world, complete = stage.world, False
    while not complete:
        with stage.archive.open("rb") as file:
            found = open_zip(file, max_bytes=1 << 30)
            request = ImportRequest(merge=merge)
            complete = (await world.container.imports.run(world.writes, found, request)).complete


async def back_up(stage: Stage) -> None:
    await stage.backups.create()


async def bring_back(stage: Stage) -> None:
    await stage.backups.restore(stage.backups.kept()[-1].name, replace=True)


async def erase(stage: Stage) -> None:
    complete = False
    while not complete:
        erasing = asyncio.create_task(stage.world.container.erasure.erase(stage.world.writes))
        while not erasing.done():
            await stage.world.work()
            await asyncio.sleep(0.02)
        complete = (await erasing).complete


async def patiently(act: Callable[[], Awaitable[Any]]) -> None:
    """As a person does who is told to try again: a dead process's transaction is in the way until
    the server ends it."""
    for _ in range(TRIES):
        try:
            await act()
            return
        except (DeadlineExceeded, StoreDown):
            await asyncio.sleep(TRANSACTION_S)
    await act()


ACTS: Mapping[str, Callable[[Stage], Awaitable[None]]] = {
    "export": export,
    "import": import_,
    "restore": restore,
    "backup": back_up,
    "backup restore": bring_back,
    "erase": erase,
}


@asynccontextmanager
async def opened(name: str, settings: Settings, folder: Path) -> AsyncIterator[Stage]:
    database = MongoBackups(settings.mongo)
    await database.prepare()
    keys = FolderBackups(folder / "keys") if name in SEALED else None
    whole = FolderBackups(folder / "whole")
    backups = BackupService(database, whole, SystemClock(), key_place=keys)
    world = await on_stores(Stores(settings), settings)
    try:
        yield Stage(world, folder, backups)
    finally:
        await database.close()


def act(name: str, settings: Settings, folder: Path, said: Connection) -> None:
    """In a process of its own: what is killed."""

    async def run() -> None:
        async with opened(name, settings, folder) as stage:
            said.send("ready")
            await ACTS[name](stage)
            said.send("done")

    asyncio.run(run())


@dataclass
class Result:
    """`late`: kills that came when all was done."""

    name: str
    kills: int = 0
    late: int = 0
    took_s: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Trial:
    """One act on one database, killed again and again."""

    def __init__(
        self, name: str, settings: Settings, folder: Path, *, seed: int, memories: int
    ) -> None:
        self._name, self._settings, self._folder = name, settings, folder
        self._memories = memories
        self._random = random.Random(f"{name}{seed}")
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(PRELOADED)

    async def run(self, kills: int, within_s: float) -> Result:
        result, ends = Result(self._name), time.monotonic() + within_s
        async with opened(self._name, self._settings, self._folder) as stage:
            await _prepare(stage, self._memories)
            wanted = await _whole(stage)
            spare = await _user(stage, SPARE)
            await self._reset(stage)
            longest = await asyncio.to_thread(self._acted, None)
            result.took_s = longest
            while result.kills - result.late < kills and time.monotonic() < ends:
                await self._reset(stage)
                before = await _user(stage)
                at = self._random.uniform(0, longest)
                result.late += await asyncio.to_thread(self._acted, at) < at
                result.kills += 1
                wrong = await self._judge(stage, before, wanted, spare)
                result.wrong += [f"killed after {at:.2f} s: {one}" for one in wrong]
        return result

    def _acted(self, kill_after_s: float | None) -> float:
        """Seconds from the moment it was ready; killed after so many."""
        ours, theirs = self._processes.Pipe()
        process = self._processes.Process(
            target=act, args=(self._name, self._settings, self._folder, theirs)
        )
        process.start()
        theirs.close()
        try:
            assert ours.recv() == "ready"
            begun = time.monotonic()
            with contextlib.suppress(EOFError):
                if ours.poll(kill_after_s):
                    ours.recv()
            took = time.monotonic() - begun
            if kill_after_s is not None:
                process.kill()
            return took
        finally:
            process.join()
            ours.close()

    async def _reset(self, stage: Stage) -> None:
        """What the act begins with."""
        for one in await stage.world.container.exports.kept(stage.world.reads):
            (next(stage.folder.rglob(one.name))).unlink()
        name = stage.backups.kept()[-1].name
        for one in stage.backups.kept()[:-1]:
            (stage.folder / "whole" / one.name).unlink()
        await patiently(lambda: stage.backups.restore(name, replace=True))
        if self._name == "import":
            await patiently(lambda: erase(stage))
        if self._name == "restore":
            async with stage.world.http() as http:
                body = {"text": "What is there before a restore"}
                assert (await http.post("/api/memory/store", json=body)).is_success

    async def _judge(self, stage: Stage, before: Rows, wanted: Rows, spare: Rows) -> list[str]:
        wrong = []
        folder = stage.folder / "backups"
        archives = [one.name for one in await stage.world.container.exports.kept(stage.world.reads)]
        if self._name == "export" and any(
            rows_of(next(folder.rglob(one)).read_bytes()) != before for one in archives
        ):
            wrong.append("an archive is not whole")
        for one in stage.backups.kept():
            if stage.backups.manifest(one.name).rows == 0:
                wrong.append("a backup is not whole")
        await patiently(lambda: ACTS[self._name](stage))
        after = await _user(stage)
        expected: Rows = {} if self._name == "erase" else wanted
        if self._name == "erase":
            after = {name: rows for name, rows in after.items() if rows}
        if after != expected:
            names = [name for name in {*after, *expected} if after.get(name) != expected.get(name)]
            wrong.append(f"another state after a repeat: {sorted(names)}")
        others = await _user(stage, SPARE)
        if changed := [name for name in spare if others[name] != spare[name]]:
            wrong.append(f"another user's rows changed: {changed}")
        if self._name == "restore" and not await self._kept_before(stage, before):
            wrong.append("what was there before is in no archive")
        if self._name == "backup":
            await stage.backups.verify(stage.backups.kept()[0].name)
        return wrong

    async def _kept_before(self, stage: Stage, before: Rows) -> bool:
        for one in await stage.world.container.exports.kept(stage.world.reads):
            data = next((stage.folder / "backups").rglob(one.name)).read_bytes()
            if (rows_of(data) if one.name.endswith(".zip") else json_rows(data)) == before:
                return True
        return False


def json_rows(data: bytes) -> Rows:
    """As `rows_of`, of an archive in JSON."""
    found = of_payload(json.loads(data))
    parts = found.collections()
    rows = {one.name: [of_line(line) for line in found.lines(one.name)] for one in parts}
    for name, row in ((name, row) for name, many in rows.items() for row in many):
        for renewed in found.manifest.renewed[name]:
            row.pop(renewed, None)
    keys = {one.name: one.key for one in parts}
    return {
        name: sorted(many, key=lambda row: [str(row[part]) for part in keys[name]])
        for name, many in rows.items()
    }


async def _prepare(stage: Stage, memories: int) -> None:
    await fill(stage.world)
    await fill(ArchiveWorld(stage.world.container, SPARE), "Acre")
    assert await stage.world.stores.outcomes.backlog() == 0  # or rows change with nobody's help
    rows = [{"memory": f"Fact {n} of Dana: shelf {n * 7}; עובדה {n}"} for n in range(memories)]
    path = stage.folder / "mem0.json"
    path.write_text(json.dumps(rows))
    with path.open("rb") as file:
        await stage.world.container.foreign_imports.run(
            stage.world.writes, Origin.MEM0, file, path.name, dry_run=False
        )
    stage.archive.write_bytes(await stage.world.exported(kinds=ALL))
    await stage.backups.create()


async def _whole(stage: Stage) -> Rows:
    return rows_of(stage.archive.read_bytes())


async def _user(stage: Stage, user: str = "") -> Rows:
    return rows_of(await stage.world.exported(user, kinds=ALL))


async def trials(
    kills: int,
    seed: int,
    names: tuple[str, ...] = tuple(ACTS),
    memories: int = MEMORIES,
    within_s: float = math.inf,
) -> list[Result]:
    """Of each act so many kills before its end, or those that time is left for, seconds."""
    with running_mongo(TRANSACTION_S) as server:
        results = []
        for number, name in enumerate(names):
            with tempfile.TemporaryDirectory(prefix="rayapp-kills-") as folder:
                mongo = server.settings().model_copy(update={"database": f"kills-{number}"})
                settings = settings_in(Path(folder), mongo=mongo.model_dump(), promotion=AT_ONCE)
                trial = Trial(name, settings, Path(folder), seed=seed, memories=memories)
                results.append(await trial.run(kills, within_s))
        return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    parser.add_argument("--within", type=float, default=math.inf, help="seconds for each act")
    parser.add_argument("--only", choices=tuple(ACTS), nargs="*")
    options = parser.parse_args()
    names = tuple(options.only or ACTS)
    print(f"{'act':<16}{'unhurt s':>10}{'kills':>8}{'too late':>10}{'wrong':>8}")
    failed = False
    asked = trials(options.kills, options.seed, names, options.memories, options.within)
    for one in asyncio.run(asked):
        print(f"{one.name:<16}{one.took_s:>10.2f}{one.kills:>8}{one.late:>10}{len(one.wrong):>8}")
        for sentence in one.wrong:
            print(f"  {sentence}")
        failed |= bool(one.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
