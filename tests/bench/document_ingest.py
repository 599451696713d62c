"""What searches feel while a long PDF is taken in, and how long that takes.

    python -m tests.bench.document_ingest --pages 500 --out ingest.json

Starts a stack of its own (or takes that of --data-dir), stores memories of several users, who
search at a steady pace, sends a PDF in Hebrew (RAYAPP_REALDATA/documents) and goes on until it can
be asked about, then asks for a line of its middle. Exit codes: 0 done, 2 bad arguments, 3 above a
bar, 4 the stack did not start.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.client import Memory, MemoryClient
from rayapp.local.cli.output import number_table
from rayapp.memory.tiers import Tier
from rayapp.search.rules.evaluation import percentile
from tests.bench.arguments import positive, positive_number
from tests.bench.document_readers import LINES, SAME_TEXT, pages_of, paragraphs_of, real_documents
from tests.bench.faults import stack_of
from tests.bench.texts import facts
from tests.bench.wire import Connection
from tests.support.pdf_files import drawn_pdf

SEARCH = "/api/memory/search"
# The bars of the product: seconds for 500 pages on two cores, and how much slower searches may be.
DONE_S, SLOWER = 60.0, 1.5
WARM_S, QUIET_S = 5.0, 30.0
BATCH = 100
OWNER = "reader-0"

Took = tuple[str, float]


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.document_ingest", __doc__)
    made.add_argument("--pages", type=positive, default=500)
    made.add_argument("--users", type=positive, default=20)
    made.add_argument("--memories", type=positive, default=200, help="of each user")
    made.add_argument("--rate", type=positive_number, default=20.0, help="searches a second")
    made.add_argument("--data-dir", type=Path, help="a running stack; default: one of its own")
    made.set_defaults(replicas=1)
    return made


class Searches:
    """Users who ask at a steady pace, each on a connection of their own, and what each answer took:
    (user, milliseconds from when the question was due)."""

    def __init__(self, url: str, questions: Sequence[tuple[str, str]], rate: float) -> None:
        self._people = {user: _Person(url, user) for user, _ in questions}
        self._questions, self._rate = questions, rate

    @property
    def failed(self) -> int:
        return sum(one.failed for one in self._people.values())

    async def run(self, ended: asyncio.Event) -> list[Took]:
        """Ask until `ended`, and wait for what was asked."""
        begun, asked = time.perf_counter(), []
        for number in count():
            due = begun + number / self._rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if ended.is_set():
                break
            user, question = self._questions[number % len(self._questions)]
            asked.append(asyncio.create_task(self._people[user].ask(question, due)))
        return await asyncio.gather(*asked)

    async def run_for(self, seconds: float) -> list[Took]:
        ended = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, ended.set)
        return await self.run(ended)


class _Person:
    """Asks one question after the other."""

    def __init__(self, url: str, user: str) -> None:
        self._user, self._connection, self._turn = user, Connection(url), asyncio.Lock()
        self.failed = 0

    async def ask(self, question: str, due: float) -> Took:
        body = orjson.dumps({"query": question, "limit": 10})
        async with self._turn:
            status, _ = await self._connection.call("POST", SEARCH, body, self._user)
        self.failed += status != 200
        return self._user, (time.perf_counter() - due) * 1000


async def filled(client: MemoryClient, arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Memories of every user, and (user, question) about them in random order."""
    random_, source = random.Random(7), facts(7)
    asked = []
    for number in range(arguments.users):
        user_id, mine = f"reader-{number}", list(islice(source, arguments.memories))
        for at in range(0, len(mine), BATCH):
            memories = [Memory(text=one.text, tier=Tier.HISTORY) for one in mine[at : at + BATCH]]
            await client.store_batch(memories, user_id=user_id)
        asked += [(user_id, one.question(random_)) for one in random_.sample(mine, 20)]
    random_.shuffle(asked)
    return asked


def paragraphs(known: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Headings and texts without end, no two alike: what pages repeat is left out as a header."""
    random_ = random.Random(7)
    # Words of all of them: pages of the same words would be compared as near-duplicates.
    words = [word for _, body in known for word in body.split()]
    for number in count(1):
        heading, body = known[number % len(known)]
        yield f"{heading} {number}", " ".join(random_.choices(words, k=len(body.split())))


async def measured(url: str, arguments: argparse.Namespace, pdf: Path, line: str) -> dict[str, Any]:
    async with MemoryClient(url, timeout_s=120) as client:
        searches = Searches(url, await filled(client, arguments), arguments.rate)
        await searches.run_for(WARM_S)
        await asyncio.sleep(WARM_S)
        before = await searches.run_for(QUIET_S)
        ended, begun = asyncio.Event(), time.perf_counter()
        beside = asyncio.create_task(searches.run(ended))
        book = await client.upload(pdf, title="A long one", user_id=OWNER)
        taken_s = time.perf_counter() - begun
        ended.set()
        meanwhile = await beside
        after = await searches.run_for(QUIET_S / 2)
        found = await client.search(line, tiers=["documents"], user_id=OWNER)
        return {
            "pages": arguments.pages,
            "status": book.status,
            "chunks": book.processing_stats.total_chunks,
            "seconds": round(taken_s, 1),
            "found": bool(found.results),
            "failed_searches": searches.failed,
            "searches": {
                name: summary([ms for _, ms in took])
                for name, took in (
                    ("before", before),
                    ("beside", meanwhile),
                    ("after", after),
                    ("beside, the owner", [one for one in meanwhile if one[0] == OWNER]),
                    ("beside, others", [one for one in meanwhile if one[0] != OWNER]),
                )
            },
        }


def summary(took_ms: Sequence[float]) -> dict[str, float]:
    return {
        "count": len(took_ms),
        "p50_ms": round(percentile(took_ms, 0.5), 1),
        "p95_ms": round(percentile(took_ms, 0.95), 1),
        "max_ms": round(max(took_ms), 1),
    }


def misses(report: dict[str, Any]) -> list[str]:
    searches = report["searches"]
    slower = searches["beside"]["p95_ms"] / searches["before"]["p95_ms"]
    said = []
    if report["status"] != "completed" or not report["found"]:
        said.append("The document cannot be asked about.")
    if report["seconds"] > DONE_S * report["pages"] / 500:
        said.append(f"Done after {report['seconds']} s, above {DONE_S:g} s for 500 pages.")
    if slower > SLOWER:
        said.append(f"p95 of searches beside it is {slower:.2f} times the one before.")
    if report["failed_searches"]:
        said.append(f"{report['failed_searches']} searches failed.")
    return said


def table(report: dict[str, Any]) -> Table:
    title = f"{report['pages']} pages, {report['chunks']} chunks: {report['seconds']} s"
    rows = ([name, *map(str, row.values())] for name, row in report["searches"].items())
    return number_table(title, ("searches", "count", "p50, ms", "p95, ms", "max, ms"), rows)


def _run(arguments: argparse.Namespace) -> int:
    known = paragraphs_of((real_documents() / "he" / SAME_TEXT).read_text(encoding="utf-8"))
    texts = list(islice(paragraphs(known), LINES * arguments.pages // 2))
    pages = list(islice(pages_of(texts), arguments.pages))
    assert len(pages) == arguments.pages
    # A line of the body, on a page in the middle.
    line = pages[len(pages) // 2][2][0]
    with stack_of(arguments) as service:
        pdf = service.folder / "long.pdf"
        pdf.write_bytes(drawn_pdf(pages))
        report = asyncio.run(measured(service.url, arguments, pdf, line))
    report["load_average"] = round(os.getloadavg()[0], 1)
    console = Console()
    console.print(table(report))
    said = misses(report)
    for one in said:
        console.print(one, highlight=False)
    put_json(arguments.out, report)
    return WITH_FAILURES if said else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
