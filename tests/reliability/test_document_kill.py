"""The owner of documents killed -9 again and again: each ends whole, no chunk is there twice."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import Counter

import pytest

from rayapp.container.bootstrap import new_id, runtime_of
from rayapp.core.errors import DependencyDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import Runtime, SystemClock
from rayapp.core.settings.load import load_settings
from rayapp.documents import service as documents
from rayapp.documents.ports import BookQuery, BookState
from rayapp.documents.reading import read_document
from rayapp.documents.service import BooksService, BookWork
from rayapp.memory.item import IndexOp
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.documents import CHUNK_PAGE, MongoBookStore
from rayapp.storage.mongo.indexes import ITEMS, UPLOADS
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.support.mongo_server import MongoServer

pytestmark = [pytest.mark.engine, pytest.mark.fault, pytest.mark.takes(60)]

DANA, READS = WriteScope("dana"), ReadScope("dana")
BOOKS, KILLS = 24, 20
# The dead owner's claim is in the way until it ends.
CLAIM_S = 1.0
# From the start of the work to the kill, seconds: reading a book takes about one.
LONGEST_S = 0.8
SENTENCE = "Page {n}: the children of book {book} played in the yard; הילדים שיחקו בחצר. "


def runtime() -> Runtime:
    return runtime_of(load_settings(env={}), InMemoryMetrics())


def work_on(database: MongoDatabase) -> BookWork:
    memories = MemoriesService(
        MongoMemoryStore(database),
        clock=SystemClock(),
        metrics=InMemoryMetrics(),
        limits=TextLimits(text=100_000, memory_bank=10_000),
        capacity=1_000,
        new_id=new_id,
    )
    return BookWork(MongoBookStore(database), memories, read_document, runtime=runtime())


async def owner(uri: str, name: str) -> None:
    """Works until it is killed."""
    documents.CLAIM_S = CLAIM_S
    settings = load_settings(env={}, overrides={"mongo": {"uri": uri, "database": name}})
    work = work_on(MongoDatabase(settings.mongo))
    print("ready", flush=True)
    while True:
        if not await work.run_once():
            await asyncio.sleep(0.02)


def text_of(book: int) -> bytes:
    pages = (
        f"# Chapter {chapter}\n\n"
        + "\n\n".join(SENTENCE.format(n=chapter * 40 + n, book=book) * 6 for n in range(40))
        for chapter in range(12)
    )
    return "\n\n".join(pages).encode()


async def chunk_counts(database: MongoDatabase) -> Counter[str]:
    rows = await database.collection(ITEMS).find({}, {"dedup_scope": 1}).to_list()
    return Counter(row["dedup_scope"] for row in rows)


async def killed(database: MongoDatabase, mongo: MongoServer, name: str, after_s: float) -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, mongo.uri, name),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ,
    )
    try:
        assert child.stdout is not None
        assert await child.stdout.readline() == b"ready\n"
        await asyncio.sleep(after_s)
    finally:
        child.send_signal(signal.SIGKILL)
        await child.wait()


async def index_all(database: MongoDatabase) -> None:
    """What an indexer would do."""
    synced = {"index.sync_state": "synced", "index.op": IndexOp.VECTOR.value}
    await database.collection(ITEMS).update_many({}, {"$set": synced})


async def test_twenty_kills_end_every_document_whole_and_nothing_twice(
    mongo: MongoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "CLAIM_S", CLAIM_S)
    dice = random.Random(7)
    database = MongoDatabase(mongo.settings("kills"))
    await database.ensure_schema()
    store, items = MongoBookStore(database), MongoMemoryStore(database)
    books = BooksService(store, items, runtime=runtime())
    for number in range(BOOKS):
        await books.upload(DANA, text_of(number), f"book {number}.md")
    seen: dict[str, set[int]] = {}
    stages: Counter[str] = Counter()
    for _ in range(KILLS):
        await killed(database, mongo, "kills", dice.uniform(0.0, LONGEST_S))
        rows, _ = await store.page(READS, BookQuery())
        counts = await chunk_counts(database)
        for row in rows:
            # All chunks where the row says so; else some first pages of them.
            pages = {row.chunks} if row.chunks else {0, CHUNK_PAGE}
            assert counts[row.book_id] in pages
            seen.setdefault(row.book_id, set()).add(row.chunks)
            stages[row.stage.value] += 1
            assert row.state in (BookState.PENDING, BookState.PROCESSING)
    print(dict(stages))
    assert all(len(numbers - {0}) <= 1 for numbers in seen.values())
    await finished(database, books)
    rows, total = await store.page(READS, BookQuery())
    assert total == BOOKS
    for row in rows:
        assert row.state is BookState.COMPLETED
        chunks = await books.chunks(READS, row, 0, 2 * row.chunks)
        assert len(chunks) == row.chunks > 100
        said = await books.text(READS, row, 10**9)
        number = int(row.file_name.split()[1].removesuffix(".md"))
        assert "".join(said.split()) == "".join(text_of(number).decode().replace("# ", "").split())
    assert sum((await chunk_counts(database)).values()) == sum(row.chunks for row in rows)
    assert await database.collection(UPLOADS).count_documents({}) == 0
    await database.close()


async def finished(database: MongoDatabase, books: BooksService) -> None:
    work = work_on(database)
    for _ in range(200):
        with contextlib.suppress(DependencyDown):
            await work.run_once()
        await index_all(database)
        rows, _ = await books.page(READS, BookQuery())
        if all(row.state is BookState.COMPLETED for row in rows):
            return
        await asyncio.sleep(0.1)
    raise AssertionError([(row.stage.value, row.error, row.tries) for row in rows])


if __name__ == "__main__":
    asyncio.run(owner(sys.argv[1], sys.argv[2]))
