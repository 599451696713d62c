"""Whether questions find their place in whole books, and how fast books are taken in.

    python -m tests.serve --port 8100
    python -m tests.bench.documents --data DIR --url http://127.0.0.1:8100

Joins the paragraphs of HeQ and ParaShoot into books of about 80,000 characters, each article a
section, uploads them and asks every question of all books. A hit is right when its passage holds
the answer with what stands around it in its paragraph; a page is 2,000 characters. Beside it plain
BM25 over windows of 1,000 characters, and the paragraphs as memories of their own. Exit codes:
0 done, 2 bad arguments, 4 the service is away.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jobs.suites import heq, parashoot
from jobs.suites.bm25 import PlainBm25
from jobs.suites.suite import Document, read_json, spread
from rayapp.client import HitView, Memory, MemoryClient
from rayapp.client.progress import Progress, wait_indexed
from tests.bench.arguments import bench_parser
from tests.bench.ending import DONE, exit_code_of

BOOK_CHARS, PAGE_CHARS, WINDOW_CHARS = 80_000, 2_000, 1_000
# What must stand around an answer, characters on each side.
AROUND = 20
TOP = 10
AT_ONCE = 4
BATCH = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the words that hold its answer, and its page."""

    text: str
    words: str
    page: tuple[str, int]


@dataclass(slots=True)
class Book:
    """`text` as it is uploaded; `starts`: where each paragraph begins in it."""

    name: str
    text: str = ""
    starts: dict[str, int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def page(self, at: int) -> int:
        return at // PAGE_CHARS


Pages = set[tuple[str, int]]
Found = tuple[str, Pages]
Row = tuple[str, str, Sequence[tuple[str, str, int]]]


def articles(data: Path) -> Iterator[tuple[str, list[Row]]]:
    """(set, rows): title, paragraph, and question, answer and its start of each question."""
    rows: list[Row] = []
    for article in read_json(data / heq.FILE, heq.NAME)["data"]:
        for paragraph in article["paragraphs"]:
            asked = [
                (qa["question"], qa["answers"][0]["text"], int(qa["answers"][0]["answer_start"]))
                for qa in paragraph["qas"]
                if not qa["is_impossible"] and qa["answers"]
            ]
            rows.append((article["title"], paragraph["context"], asked))
    yield "heq", rows
    flat = read_json(data / parashoot.FILE, parashoot.NAME)["data"]
    flat.sort(key=lambda row: (row["title"], row["context"]))
    rows = []
    for (title, context), group in groupby(flat, key=lambda row: (row["title"], row["context"])):
        asked = [
            (row["question"], row["answers"]["text"][0], int(row["answers"]["answer_start"][0]))
            for row in group
        ]
        rows.append((title, context, asked))
    yield "parashoot", rows


def books_of(name: str, rows: Sequence[Row]) -> Iterator[Book]:
    book, title = Book(f"{name}-1"), None
    for number, (section, paragraph, asked) in enumerate(rows):
        if section != title:
            title = section
            book.text += f"# {section}\n\n"
        book.starts[paragraph] = len(book.text)
        book.text += " ".join(paragraph.split()) + "\n\n"
        for question, answer, start in asked:
            words = paragraph[max(0, start - AROUND) : start + len(answer) + AROUND]
            page = book.page(book.starts[paragraph] + start)
            book.asked.append(Asked(question, squeezed(words), (book.name, page)))
        if len(book.text) > BOOK_CHARS and number + 1 < len(rows):
            yield book
            book, title = Book(f"{name}-{int(book.name.rpartition('-')[2]) + 1}"), None
    yield book


def squeezed(text: str) -> str:
    return "".join(text.split())


def windows(books: Sequence[Book]) -> list[Document]:
    return [
        Document(f"{book.name}:{at}", book.text[at : at + WINDOW_CHARS])
        for book in books
        for at in range(0, len(book.text), WINDOW_CHARS)
    ]


@dataclass(slots=True)
class Score:
    """Questions, those whose first hit is right, and those with the right page among three."""

    asked: int = 0
    first: int = 0
    third: int = 0
    page: int = 0

    def add(self, asked: Asked, found: Sequence[Found]) -> None:
        """`found`: texts and their pages, best first."""
        right = [asked.words in squeezed(text) for text, _ in found]
        self.asked += 1
        self.first += any(right[:1])
        self.third += any(right[:3])
        self.page += any(asked.page in pages for _, pages in found[:3])


def pages_of(book: Book, start: int, length: int) -> Pages:
    return {(book.name, page) for page in range(book.page(start), book.page(start + length) + 1)}


def hit_pages(books: dict[str, Book], hit: HitView) -> Pages:
    said: dict[str, Any] = hit.source.book or {}
    book = books[said["book_id"]]
    return pages_of(book, round(said["position"] * len(book.text)), len(hit.content))


async def measure(options: argparse.Namespace, console: Console) -> None:
    user = f"bench-{secrets.token_hex(4)}"
    books = [book for name, rows in articles(options.data) for book in books_of(name, rows)]
    scores = {name: Score() for name in ("books", "BM25 windows", "paragraphs")}
    texts = {document.doc_id: document.text for document in windows(books)}
    plain = PlainBm25(windows(books))
    async with MemoryClient(options.url, user_id=user) as client:
        took, by_id = await taken_in(client, books)
        for size, seconds, chunks in took:
            console.print(f"{size:,} characters, {chunks} passages: {seconds:.1f} s")
        await paragraphs_in(client, books, f"{user}-p", console)
        for book in books:
            chosen = spread(book.asked, options.questions)
            for at in range(0, len(chosen), AT_ONCE):
                await asyncio.gather(
                    *(
                        ask(client, one, by_id, plain, texts, scores, f"{user}-p")
                        for one in chosen[at : at + AT_ONCE]
                    )
                )
    table = Table("asked of", "questions", "R@1", "R@3", "page in 3")
    for name, score in scores.items():
        shares = [f"{one / score.asked:.3f}" for one in (score.first, score.third, score.page)]
        pages = shares.pop() if name != "paragraphs" else "-"
        table.add_row(name, str(score.asked), *shares, pages)
    console.print(table)


async def taken_in(
    client: MemoryClient, books: Sequence[Book]
) -> tuple[list[tuple[int, float, int]], dict[str, Book]]:
    """(characters, seconds, passages) of each book, and the books by their ids."""
    took, by_id = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for book in books:
            path = Path(folder) / f"{book.name}.md"
            path.write_text(book.text, encoding="utf-8")
            began = time.monotonic()
            done = await client.upload(path, title=book.name)
            chunks = done.processing_stats.total_chunks
            took.append((len(book.text), time.monotonic() - began, chunks))
            by_id[done.id] = book
    return took, by_id


async def paragraphs_in(
    client: MemoryClient, books: Sequence[Book], user: str, console: Console
) -> None:
    every = [paragraph for book in books for paragraph in book.starts]
    for at in range(0, len(every), BATCH):
        batch = [Memory(text=text, tier="history") for text in every[at : at + BATCH]]
        await client.store_batch(batch, user_id=user)
    with Progress(console) as progress:
        await wait_indexed(client, progress, "index")


async def ask(
    client: MemoryClient,
    one: Asked,
    by_id: dict[str, Book],
    plain: PlainBm25,
    texts: dict[str, str],
    scores: dict[str, Score],
    other: str,
) -> None:
    found = await client.search_books(one.text, limit=TOP)
    hits: list[Found] = [(hit.content, hit_pages(by_id, hit)) for hit in found.results]
    names = plain.rank(one.text, TOP)
    named = {book.name: book for book in by_id.values()}
    floor: list[Found] = [(texts[name], window_pages(named, name)) for name in names]
    reply = await client.search(one.text, limit=TOP, user_id=other)
    alone: list[Found] = [(hit.content, set()) for hit in reply.results]
    for name, rows in (("books", hits), ("BM25 windows", floor), ("paragraphs", alone)):
        scores[name].add(one, rows)


def window_pages(books: dict[str, Book], name: str) -> Pages:
    book, _, at = name.rpartition(":")
    return pages_of(books[book], int(at), WINDOW_CHARS)


def main() -> int:
    made = bench_parser("documents", __doc__, out=False)
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--url", required=True, help="service")
    made.add_argument("--questions", type=int, help="questions per book at most")
    console = Console(markup=False, emoji=False, soft_wrap=True)
    options = made.parse_args()

    def work() -> int:
        asyncio.run(measure(options, console))
        return DONE

    return exit_code_of(work)


if __name__ == "__main__":
    sys.exit(main())
