"""How long the job takes that understands everything, on a MongoDB of its own.

    python -m tests.bench.understand --memories 10000 --workers 2

The memories are those of the generated histories, sixty a user. The store is filled first; then the
workers, a process each, go over it as the job does, without Ray. Processor time is that of the
workers; the server's is told beside it.
"""

import argparse
import asyncio
import itertools
import os
import resource
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from jobs.suites.facts_set import histories
from rayapp.bulk.model import Partition
from rayapp.container import bootstrap
from rayapp.container.understanding import understand_work
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.memory.scope import ReadScope
from rayapp.storage.mongo.convert import to_document
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import ITEMS
from tests.support.builders import an_item
from tests.support.mongo_server import running_mongo

OF_A_USER = 60
TICKS = os.sysconf("SC_CLK_TCK")


def settings_of(uri: str) -> Settings:
    return load_settings("local", env={}, overrides={"mongo": {"uri": uri}})


async def fill(uri: str, count: int) -> None:
    """Memories of the histories, each said at its time."""
    database = MongoDatabase(settings_of(uri).mongo)
    await database.ensure_schema()
    told = [one for history in histories(7) for one in history.told]
    rows = []
    for number, one in zip(range(count), itertools.cycle(told), strict=False):
        item = an_item(
            user_id=f"user-{number // OF_A_USER:06}",
            memory_id=f"m-{number % OF_A_USER:03}",
            text=f"{one.text} Note {number}.",
            created_at=one.said_at,
        )
        rows.append(to_document(item))
    items = database.collection(ITEMS)
    for at in range(0, len(rows), 2_000):
        await items.insert_many(rows[at : at + 2_000])
    await database.close()


def work(uri: str, payloads: list[tuple[int, dict[str, Any]]]) -> tuple[Counter[str], float]:
    return asyncio.run(_work(uri, payloads))


async def _work(uri: str, payloads: list[tuple[int, dict[str, Any]]]) -> tuple[Counter[str], float]:
    settings = settings_of(uri)
    stores, runtime = bootstrap.Stores(settings), bootstrap.runtime_of(settings)
    made = understand_work(
        stores,
        bootstrap.load_texts(),
        bootstrap.embedding_service(settings, runtime.metrics),
        runtime,
        user_id=None,
        again=False,
    )
    began, counts = time.process_time(), Counter[str]()
    for index, payload in payloads:
        cursor: Any = None
        while True:
            step = await made.step(Partition(index=index, payload=payload), cursor)
            counts.update(step.counts)
            cursor = step.cursor
            if cursor is None:
                break
    return counts, time.process_time() - began


async def planned(uri: str) -> list[tuple[int, dict[str, Any]]]:
    settings = settings_of(uri)
    stores, runtime = bootstrap.Stores(settings), bootstrap.runtime_of(settings)
    made = understand_work(
        stores,
        bootstrap.load_texts(),
        bootstrap.embedding_service(settings, runtime.metrics),
        runtime,
        user_id=None,
        again=False,
    )
    plan = await made.plan()
    assert await stores.understandings.stored(ReadScope("user-000000")) > 0
    return [(one.index, dict(one.payload)) for one in plan.partitions]


def used_by(pid: int) -> float:
    """Processor seconds of another process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with running_mongo() as server:
        asyncio.run(fill(server.uri, options.memories))
        payloads = asyncio.run(planned(server.uri))
        shares = [payloads[at :: options.workers] for at in range(options.workers)]
        before, began = used_by(server.pid), time.perf_counter()
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            results = list(pool.map(work, itertools.repeat(server.uri), shares))
        took, used = time.perf_counter() - began, used_by(server.pid) - before
    counts = sum((one for one, _ in results), Counter[str]())
    own = sum(seconds for _, seconds in results)
    memories = sum(counts.values())
    print(f"{memories} memories in {took:.1f} s with {options.workers} workers: {dict(counts)}")
    print(
        f"processor of workers {own * 1000 / memories:.2f} ms a memory, of MongoDB "
        f"{used * 1000 / memories:.2f} ms; 100,000 at this rate: {took * 1e5 / memories:.0f} s"
    )
    print(f"most memory of a worker {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss} KB")


if __name__ == "__main__":
    main()
