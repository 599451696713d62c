"""What the disk still holds of an erased user, before and after a restore into empty folders.

    python -m tests.bench.erasure_proof [--words 200] [--folder FOLDER] [--out report.json]

Words in Hebrew and English are planted through the routes on a real mongod and the real embedded
engine, in every kind of what is kept, and as many of another user, who stays. Then the user is
erased, a backup is made, restored into an empty database of a mongod of its own, indexed by a new
engine, and the old folders are deleted. Raw files are searched for each word, byte by byte; the
server writes them without compression, so that none is hidden. The operations log is looked at
apart, entry by entry. Exit codes: 0 nothing of the erased user is in the new files and the other
user is whole, 2 bad arguments, 3 something is left or lost.
"""

import argparse
import asyncio
import json
import random
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.container.bootstrap import Stores
from rayapp.core.runtime import SystemClock
from rayapp.documents.reading import read_document
from rayapp.documents.service import BookWork
from rayapp.index.passages import PassageIndex
from rayapp.portability.backup import BackupService
from rayapp.storage.backup_files import FolderBackups
from rayapp.storage.mongo.backup import MongoBackups
from rayapp.storage.qdrant.edge import QdrantEdgeIndex
from rayapp.storage.qdrant.edge_engine import EdgeEngine
from tests.bench.arguments import positive
from tests.support.archive_world import ArchiveWorld, ask, on_stores, settings_in
from tests.support.in_process_engine import InProcessTransport
from tests.support.mongo_server import MongoServer

GONE, STAYS = "gone-user", "other-user"
DATABASE = "rayapp"
# What a scan would not find in a compressed block, or as the rest of a shared beginning.
PLAIN = (
    *("--wiredTigerCollectionBlockCompressor", "none"),
    *("--wiredTigerJournalCompressor", "none"),
    *("--wiredTigerIndexPrefixCompression", "false"),
    *("--syncdelay", "1"),
)
ENGLISH, HEBREW = "abcdefghijklmnopqrstuvwxyz", "אבגדהוזחטיכלמנסעפצקרשת"
ENGLISH_LETTERS, HEBREW_LETTERS = 14, 10
RUNS = re.compile(rb"[a-z]{14,}|(?:\xd7[\x90-\xaa]){10,}")
CHUNK = 1 << 20
SETTLE_S = 3.0
ERASURES = 30
LATE = (503, 504)
MEMORY = "/api/memory"


def words_of(count: int, seed: int) -> list[str]:
    """Half of them in each language; nobody else says any of them."""
    rolled = random.Random(seed)
    return [
        "".join(rolled.choices(HEBREW, k=HEBREW_LETTERS))
        if number % 2
        else "".join(rolled.choices(ENGLISH, k=ENGLISH_LETTERS))
        for number in range(count)
    ]


class Scan:
    """Which words of which user stand in bytes; a run of letters may hold one anywhere."""

    def __init__(self, gone: Sequence[str], stays: Sequence[str]) -> None:
        self.gone, self.stays = (
            frozenset(one.encode() for one in words) for words in (gone, stays)
        )
        self._words = self.gone | self.stays
        self._sizes = sorted({len(word) for word in self._words})

    def of(self, data: bytes) -> set[bytes]:
        found: set[bytes] = set()
        for run in RUNS.findall(data):
            for size in self._sizes:
                parts = {run[at : at + size] for at in range(len(run) - size + 1)}
                found |= parts & self._words
        return found

    def of_file(self, path: Path) -> set[bytes]:
        found: set[bytes] = set()
        kept = b""
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                if chunk.count(0) < len(chunk):  # files are longer than what is in them
                    found |= self.of(kept + chunk)
                kept = chunk[-256:]
        return found

    def of_folder(self, folder: Path) -> dict[str, set[bytes]]:
        """By kind of file."""
        found: dict[str, set[bytes]] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and (words := self.of_file(path)):
                kind = kind_of(path)
                found[kind] = found.get(kind, set()) | words
        return found

    def counts(self, words: set[bytes]) -> tuple[int, int]:
        """Of the erased user, and of the other one."""
        return len(words & self.gone), len(words & self.stays)


def kind_of(path: Path) -> str:
    name = path.name
    if "engine" in path.parts:
        return "index engine: " + ("log" if "wal" in path.parts else "segments")
    if "journal" in path.parts:
        return "mongod: journal"
    for start in ("collection", "index", "WiredTigerHS"):
        if name.startswith(start):
            return f"mongod: {start} files"
    return f"mongod: {name}" if "mongo" in path.parts else "archives"


@dataclass
class Stack:
    """A mongod and an engine, each with a folder of its own under one."""

    folder: Path
    server: MongoServer
    world: ArchiveWorld
    books: BookWork

    async def work(self) -> None:
        """What the background owners do, until nothing is due."""
        while await self.books.run_once():
            pass
        await self.world.work()

    def oplog(self, scan: Scan) -> tuple[int, set[bytes]]:
        """Entries, and the words in them."""
        options: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)
        found: set[bytes] = set()
        entries = 0
        with MongoClient[Any](self.server.uri) as client:
            for entry in client.local.get_collection("oplog.rs", codec_options=options).find():
                entries += 1
                found |= scan.of(bytes(entry.raw))
        return entries, found

    def written(self) -> None:
        """Everything in memory reaches the files."""
        with MongoClient[Any](self.server.uri) as client:
            client.admin.command({"fsync": 1})
        time.sleep(SETTLE_S)


@asynccontextmanager
async def stack(folder: Path, **overrides: Any) -> AsyncIterator[Stack]:
    """Empty at first; both folders stay."""
    mongo, engine = folder / "mongo", folder / "engine"
    mongo.mkdir(parents=True)
    server = MongoServer(mongo, options=PLAIN)
    server.start()
    try:
        settings = settings_in(
            folder / "data",
            mongo=server.settings(DATABASE).model_dump(),
            backup={"dir": folder / "archives"},
            **overrides,
        )
        stores = Stores(settings)
        await stores.items.ensure_schema()
        edge = QdrantEdgeIndex(
            InProcessTransport(EdgeEngine(engine, settings.qdrant.alias)), settings.qdrant
        )
        world = await on_stores(stores, settings, PassageIndex(edge))
        world.user = GONE
        container = world.container
        books = BookWork(
            container.stores.books, container.memories, read_document, runtime=container.runtime
        )
        yield Stack(folder, server, world, books)
        await container.receipts.flush()
        await container.index.close()
    finally:
        server.stop()


@dataclass(frozen=True)
class Planted:
    """One word, and what is said with it."""

    http: httpx.AsyncClient
    number: int
    word: str

    @property
    def say(self) -> str:
        where = f"house {self.number} is {self.word}"
        return f"The cellar key of {where}; המפתח של בית {self.number} הוא {self.word}"

    @property
    def name(self) -> str:
        return f"m-{self.number}"

    async def store(self, text: str = "") -> None:
        tier = ("working", "history", "patterns")[self.number % 3]
        new = {"text": text or self.say, "tier": tier, "memory_id": self.name, "tags": ["house"]}
        await ask(self.http, "POST", f"{MEMORY}/store", new)


async def a_memory(one: Planted) -> None:
    await one.store()


async def an_old_version(one: Planted) -> None:
    await one.store()
    await ask(one.http, "PATCH", f"{MEMORY}/items/{one.name}", {"text": f"Moved {one.number}"})


async def a_fact(one: Planted) -> None:
    fact = {"text": one.say, "tags": ["house", one.word], "importance": 0.9}
    await ask(one.http, "POST", f"{MEMORY}/memory-bank", fact)


async def a_question(one: Planted) -> None:
    await turn(one.http, one.number, one.say, f"Noted: {one.number}")


async def an_answer(one: Planted) -> None:
    asked = f"Where is key {one.number}? איפה מפתח {one.number}?"
    await turn(one.http, one.number, asked, one.say)


async def a_search(one: Planted) -> None:
    """The question of a receipt, and of an outcome with what the graphs learn of it."""
    await one.store(f"House {one.number} has a cellar")
    query = {"query": f"Which house has the cellar of {one.word}?", "conversation_id": "c-s"}
    found = await ask(one.http, "POST", f"{MEMORY}/search", query)
    judged = {"receipt_id": found["receipt_id"], "outcome": "worked"}
    await ask(one.http, "POST", f"{MEMORY}/outcomes", judged)


async def a_tool_result(one: Planted) -> None:
    told = [{"tool_name": "web_search", "output": f"{one.say}. " * 8}]
    await ask(one.http, "POST", f"{MEMORY}/tool-results", {"results": told})


async def a_document(one: Planted) -> None:
    text = f"# House {one.number}\n\n{one.say}"
    files = {"file": (f"guide-{one.number}.md", text.encode())}
    assert (await one.http.post(f"{MEMORY}/books", files=files)).is_success


async def a_hidden_one(one: Planted) -> None:
    await one.store()
    await ask(one.http, "POST", f"{MEMORY}/ghost", {"memory_id": one.name, "reason": one.word})


async def a_personality(one: Planted) -> None:
    content = f"identity:\n  name: Noa {one.word}\ncommunication: {{tone: warm}}\n"
    body = {"content": content, "name": f"mine-{one.number // 40}"}
    await ask(one.http, "POST", f"{MEMORY}/personality", body)


PLACES = (
    a_memory,
    an_old_version,
    a_fact,
    a_question,
    an_answer,
    a_search,
    a_tool_result,
    a_document,
    a_hidden_one,
    a_personality,
)


async def plant(stack: Stack, user: str, words: Sequence[str]) -> None:
    """Each word is in one place; the places take turns, two words each: one per language."""
    async with stack.world.http(user) as http:
        for number, word in enumerate(words):
            await PLACES[number // 2 % len(PLACES)](Planted(http, number, word))
        await stack.work()


async def turn(http: httpx.AsyncClient, number: int, question: str, answer: str) -> None:
    said = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    body = {"conversation_id": f"c-{number % 7}", "message_id": f"t-{number}", "messages": said}
    await ask(http, "POST", "/api/hooks/exchange", body)


async def erase(stack: Stack, user: str = GONE) -> dict[str, Any]:
    """Until the certificate is complete; the indexer works beside. What a busy machine was too late
    for goes on where it was."""
    async with stack.world.http(user) as http:
        for _ in range(ERASURES):
            asked = asyncio.create_task(http.delete("/api/memory/user?confirm=DELETE"))
            while not asked.done():
                await stack.work()
                await asyncio.sleep(0.02)
            answer = asked.result()
            if answer.status_code in LATE:
                continue
            assert answer.is_success, answer.text
            if (found := answer.json())["complete"]:
                return dict(found["certificate"])
    raise AssertionError("The erasure never came to its end.")


def in_backup(path: Path, scan: Scan) -> set[bytes]:
    """Unpacked."""
    with zipfile.ZipFile(path) as file:
        return {word for name in file.namelist() for word in scan.of(file.read(name))}


class Report:
    """Rows of (when, where, words of the erased user, words of the other one)."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.rows: list[tuple[str, str, int, int]] = []
        self.facts: dict[str, Any] = {}

    def add(self, when: str, where: str, words: set[bytes]) -> tuple[int, int]:
        found = self.scan.counts(words)
        self.rows.append((when, where, *found))
        return found

    def folder(self, when: str, folder: Path) -> tuple[int, int]:
        """Each kind of file, and all of them."""
        found = self.scan.of_folder(folder)
        for kind in sorted(found):
            self.add(when, kind, found[kind])
        return self.add(when, "all files", set().union(*found.values()))

    def oplog(self, when: str, stack: Stack) -> tuple[int, int]:
        entries, words = stack.oplog(self.scan)
        return self.add(when, f"operations log, {entries} entries", words)

    def print(self, console: Console) -> None:
        table = Table("when", "where", "erased user", "other user")
        for when, where, gone, stays in self.rows:
            table.add_row(when, where, str(gone), str(stays))
        console.print(table)


async def prove(folder: Path, report: Report, words: Sequence[Sequence[str]]) -> bool:
    old, new, kept = folder / "old", folder / "new", folder / "backups"
    clock, count = SystemClock(), len(words[0])
    async with stack(old) as first:
        for user, planted in zip((GONE, STAYS), words, strict=True):
            await plant(first, user, planted)
        first.written()
        before = report.folder("planted", old)
        report.oplog("planted", first)
        report.facts["certificate"] = await erase(first)
        first.written()
        report.folder("erased", old)
        report.oplog("erased", first)
        backups = MongoBackups(first.server.settings(DATABASE))
        made, _ = await BackupService(backups, FolderBackups(kept), clock).create()
        await backups.close()
        packed = report.add("erased", "a backup", in_backup(kept / made.name, report.scan))
    begun = time.monotonic()
    async with stack(new) as second:
        backups = MongoBackups(second.server.settings(DATABASE))
        await BackupService(backups, FolderBackups(kept), clock).restore(made.name)
        await backups.close()
        await second.world.stores.items.mark_all_pending()
        await second.work()
        second.written()
        report.facts["restored_s"] = round(time.monotonic() - begun, 1)
        shutil.rmtree(old)
        after = report.folder("restored", folder)
        log = report.oplog("restored", second)
        found, asked = await still_whole(second, words[1])
    report.facts["other_user_found_by_search"] = [found, asked]
    # A personality stored again under its name replaced some words: the backup has the rest.
    stays = packed[1]
    return (
        before == (count, count)
        and (after, log, packed[0]) == ((0, stays), (0, stays), 0)
        and found == asked > 0
    )


async def still_whole(stack: Stack, words: Sequence[str]) -> tuple[int, int]:
    """(found, asked): memories of the other user that a search finds by their word."""
    asked = [word for number, word in enumerate(words) if number // 2 % len(PLACES) == 0]
    found = 0
    async with stack.world.http(STAYS) as http:
        for word in asked:
            answer = await ask(http, "POST", "/api/memory/search", {"query": word, "limit": 3})
            found += any(word in one["content"] for one in answer["results"])
    return found, len(asked)


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.erasure_proof", __doc__)
    made.add_argument("--words", type=positive, default=200, help="planted per user")
    made.add_argument("--folder", type=Path, help="of all files; else a temporary one")
    return made


@contextmanager
def folder_of(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="rayapp-erasure-") as name:
        yield Path(name)


def _run(options: argparse.Namespace) -> int:
    words = words_of(options.words, 7), words_of(options.words, 8)
    report = Report(Scan(*words))
    with folder_of(options.folder) as folder:
        proved = asyncio.run(prove(folder, report, words))
    console = Console()
    report.print(console)
    console.print(json.dumps(report.facts, ensure_ascii=False))
    console.print(f"proved: {proved}")
    named = ("when", "where", "gone", "stays")
    rows = [dict(zip(named, row, strict=True)) for row in report.rows]
    put_json(options.out, {"proved": proved, "rows": rows, **report.facts})
    return DONE if proved else WITH_FAILURES


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
