"""`python -m tests.bench.portability [--turns 20000] [--users 20]`: export, backup, erase and
import of users on a real mongod, beside what the store itself writes; prints a table.

Each user has conversations, as an import from elsewhere leaves them: a turn is a memory, the words
of a turn, and a place in its session. Nothing is indexed: an index is built anew anyway.
"""

import argparse
import asyncio
import io
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import psutil

from rayapp.container.bootstrap import Stores
from rayapp.core.runtime import SystemClock
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.portability.archive import open_zip
from rayapp.portability.backup import BackupService
from rayapp.portability.ports import ExportRequest, ImportRequest
from rayapp.portability.rules.collections import BY_NAME, EXPORTED
from rayapp.portability.rules.kinds import Origin
from rayapp.storage.backup_files import FolderBackups
from rayapp.storage.mongo.backup import MongoBackups
from rayapp.storage.mongo.database import MongoDatabase
from tests.bench.texts import facts
from tests.support.archive_contract import rows_of
from tests.support.archive_world import ArchiveWorld, on_stores, settings_in
from tests.support.foreign_exports import chatgpt, gpt_conversation, gpt_node
from tests.support.mongo_server import MongoServer, running_mongo

TURNS_OF_A_CONVERSATION = 20
ROWS = ("memory_items", "sessions", "turns")
# Documents of one write of the limit beside: as an import writes them.
BATCH = 500
LOOK_S = 0.02


def conversations(turns: int, seed: int) -> bytes:
    """A user's export of ChatGPT."""
    texts = [one.text for one in islice(facts(seed), 2 * turns)]
    found = []
    for first in range(0, turns, TURNS_OF_A_CONVERSATION):
        nodes, last = [], "root"
        for number in range(first, min(turns, first + TURNS_OF_A_CONVERSATION)):
            at = {"create_time": 1_700_000_000.0 + number}
            nodes.append(gpt_node(f"u{number}", last, "user", [texts[2 * number]], **at))
            last = f"a{number}"
            answer = [texts[2 * number + 1]]
            nodes.append(gpt_node(last, f"u{number}", "assistant", answer, **at))
        found.append(gpt_conversation(nodes, f"c{first}"))
    return chatgpt(*found)


@contextmanager
def memory_watched() -> Iterator[Callable[[], float]]:
    """How many MB the process grew at most since."""
    process = psutil.Process()
    idle = highest = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(LOOK_S):
            highest = max(highest, process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: (highest - idle) / (1 << 20)
    finally:
        done.set()
        thread.join()


class Table:
    """Lines of it, as they come."""

    def __init__(self) -> None:
        print(f"{'step':<34}{'rows':>9}{'s':>8}{'rows/s':>9}{'MB above idle':>15}", flush=True)

    @contextmanager
    def line(self, name: str) -> Iterator[Callable[[int], None]]:
        rows = 0

        def add(count: int) -> None:
            nonlocal rows
            rows += count

        with memory_watched() as grown:
            begun = time.perf_counter()
            yield add
            took = time.perf_counter() - begun
            speed = rows / took
            print(f"{name:<34}{rows:>9,}{took:>8.1f}{speed:>9,.0f}{grown():>15.0f}", flush=True)


async def run(server: MongoServer, folder: Path, turns: int, users: int) -> bool:
    settings = settings_in(folder, mongo=server.settings().model_dump())
    database = MongoBackups(settings.mongo)
    await database.prepare()
    world, table = await on_stores(Stores(settings), settings), Table()
    names = [f"user-{number}" for number in range(users)]
    with table.line("import from ChatGPT") as add:
        for number, name in enumerate(names):
            data = io.BytesIO(conversations(turns // users, number))
            scope = WriteScope(name, "local")
            foreign = world.container.foreign_imports
            done = await foreign.run(scope, Origin.CHATGPT, data, "c.zip", dry_run=False)
            add(sum(one.added for one in done.report.counts.values()))
    with table.line("export, zip") as add:
        for name in names:
            path = folder / f"{name}.zip"
            with path.open("wb") as file:
                own = ReadScope(name).own
                async for chunk in world.container.exports.stream(own, ExportRequest()):
                    file.write(chunk)
            with path.open("rb") as file:
                parts = open_zip(file, max_bytes=1 << 40).manifest.parts
                add(sum(part.rows for part in parts))
    await _backups(database, folder, table)
    before = {name: rows_of((folder / f"{name}.zip").read_bytes()) for name in names[:3]}
    await _limit(settings.mongo.model_dump(), folder, names, table)
    with table.line("erase (tombstones and rows)") as add:
        for name in names:
            add(await _erased(world, name))
    await database.empty()
    with table.line("import, checked as a whole") as add:
        for name in names:
            with (folder / f"{name}.zip").open("rb") as file:
                found = open_zip(file, max_bytes=1 << 40)
                scope = WriteScope(name, "local")
                report = await world.container.imports.run(scope, found, ImportRequest())
                add(sum(one.added for one in report.counts.values()))
    after = {name: rows_of(await world.exported(name)) for name in before}
    same = after == before
    print(f"what came back of {len(before)} users is {'' if same else 'NOT '}what left")
    await database.close()
    return same


async def _backups(database: MongoBackups, folder: Path, table: Table) -> None:
    """As they are and sealed, by turns."""
    for turn in range(2):
        for kind, place in (("plain", None), ("sealed", FolderBackups(folder / "keys"))):
            files = FolderBackups(folder / f"{kind}-{turn}")
            service = BackupService(database, files, SystemClock(), key_place=place)
            with table.line(f"backup, {kind}") as add:
                made, manifest = await service.create()
                add(manifest.rows)
            print(f"{made.bytes:,} bytes")
            with table.line(f"restore, {kind}") as add:
                add((await service.restore(made.name, replace=True)).rows)


async def _limit(mongo: dict[str, object], folder: Path, names: list[str], table: Table) -> None:
    """The same documents by the driver alone, with the same indexes, into another database."""
    settings = settings_in(folder, mongo=mongo | {"database": "limit"})
    database = MongoDatabase(settings.mongo)
    await database.ensure_schema()
    with table.line("the store alone (insert_many)") as add:
        for name in names:
            rows = rows_of((folder / f"{name}.zip").read_bytes())
            for collection in ROWS:
                many = [{**row, "user_id": name} for row in rows[collection]]
                for start in range(0, len(many), BATCH):
                    batch = many[start : start + BATCH]
                    await database.collection(collection).insert_many(batch, ordered=False)
                add(len(many))
    await database.client.drop_database("limit")
    await database.close()


async def _erased(world: ArchiveWorld, name: str) -> int:
    count = 0
    for collection in reversed(EXPORTED):
        while gone := await world.stores.archive.clear(
            WriteScope(name, "local"), BY_NAME[collection.name], BATCH
        ):
            count += gone
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--users", type=int, default=20)
    options = parser.parse_args()
    with running_mongo() as server, tempfile.TemporaryDirectory(prefix="rayapp-port-") as folder:
        same = asyncio.run(run(server, Path(folder), options.turns, options.users))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
