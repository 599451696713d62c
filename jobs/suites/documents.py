"""Do questions find their place in whole books? HeQ and ParaShoot, joined into books.

Paragraphs are joined into books of about 80,000 characters, each article a section, uploaded as
files, and every question is asked of all books. A hit is right when its passage holds the answer
with what stands around it in its paragraph (`passage`), or shows the page of the answer, which is
2,000 characters (`page`). The floor is plain BM25 over windows of 1,000 characters.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from jobs.suites import heq, parashoot
from jobs.suites.bm25 import PlainBm25
from jobs.suites.runner import (
    Answered,
    RunOptions,
    ServiceSuite,
    SuiteRun,
    reply_or_code,
    side_by_side,
)
from jobs.suites.suite import Corpus, Document, Question, Suite, read_json, rows_of
from rayapp.client import HitView, SearchReply
from rayapp.client.progress import wait_indexed

NAME = "documents"
BOOK_CHARS, PAGE_CHARS, WINDOW_CHARS = 80_000, 2_000, 1_000
# What must stand around an answer, characters on each side.
AROUND = 20
# Hits that are looked at: nobody reads on in ten passages of a book.
DEPTH = 10
# What a question is judged by, and the id of a hit that is right.
PASSAGE, PAGE, RIGHT = "passage", "page", "right"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the words that hold its answer, and the page of that."""

    question_id: str
    text: str
    words: str
    page: tuple[str, int]

    def question(self, category: str) -> Question:
        question_id = f"{self.question_id}/{category}"
        return Question(question_id, self.text, (RIGHT,), category, "he")


@dataclass(slots=True)
class Book:
    name: str
    text: str = ""
    asked: list[Asked] = field(default_factory=list)

    def add(self, paragraph: str, questions: Sequence[_Row]) -> None:
        start = len(self.text)
        self.text += " ".join(paragraph.split()) + "\n\n"
        for question_id, text, answer, at in questions:
            around = paragraph[max(0, at - AROUND) : at + len(answer) + AROUND]
            page = (self.name, (start + at) // PAGE_CHARS)
            self.asked.append(Asked(f"{self.name}/{question_id}", text, squeezed(around), page))


# Id, question, answer and its start in the paragraph.
_Row = tuple[str, str, str, int]
# Title of the article, paragraph, questions.
_Paragraph = tuple[str, str, list[_Row]]
# A text that was found, and the pages that it shows.
Found = tuple[str, set[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The books, and the suite of their questions as reports name them."""

    books: tuple[Book, ...]
    suite: Suite

    def sampled(self, limit: int | None) -> DocumentSet:
        """About `limit` questions, each judged twice."""
        chosen = self.suite.sampled(limit)
        kept = {one.question_id.rpartition("/")[0] for one in chosen.every_question()}
        books = tuple(
            replace(book, asked=[one for one in book.asked if one.question_id in kept])
            for book in self.books
        )
        return DocumentSet(books, _suite_of(books))


def load_documents(data: Path) -> DocumentSet:
    """Raises ConfigError: a file is missing or of another shape."""
    books = (*_books("heq", _heq(data)), *_books("parashoot", _parashoot(data)))
    return DocumentSet(books, _suite_of(books))


def _suite_of(books: Sequence[Book]) -> Suite:
    corpora = []
    for book in books:
        asked = [one.question(kind) for one in book.asked for kind in (PASSAGE, PAGE)]
        corpora.append(Corpus(book.name, (Document(book.name, book.text),), tuple(asked)))
    return Suite(name=NAME, corpora=tuple(corpora), headline=frozenset({PASSAGE}))


def _heq(data: Path) -> list[_Paragraph]:
    path = data / heq.FILE
    raw = read_json(path, heq.NAME)
    with rows_of(path, heq.NAME):
        found = [
            (
                article["title"],
                paragraph["context"],
                [
                    _row(qa, qa["answers"][0]["text"], qa["answers"][0]["answer_start"])
                    for qa in paragraph["qas"]
                    if not qa["is_impossible"] and qa["answers"]
                ],
            )
            for article in raw["data"]
            for paragraph in article["paragraphs"]
        ]
        if not any(asked for _, _, asked in found):
            raise ValueError("no question")
        return found


def _parashoot(data: Path) -> list[_Paragraph]:
    path = data / parashoot.FILE
    raw = read_json(path, parashoot.NAME)
    with rows_of(path, parashoot.NAME):
        rows = sorted(raw["data"], key=lambda row: (row["title"], row["context"]))
        return [
            (
                title,
                context,
                [
                    _row(row, row["answers"]["text"][0], row["answers"]["answer_start"][0])
                    for row in group
                ],
            )
            for (title, context), group in groupby(
                rows, key=lambda row: (row["title"], row["context"])
            )
        ]


def _row(asked: Any, answer: str, start: int) -> _Row:
    return str(asked["id"]), str(asked["question"]), str(answer), int(start)


def _books(name: str, paragraphs: Sequence[_Paragraph]) -> Iterator[Book]:
    book, section, number = Book(f"{name}-1"), None, 1
    for title, paragraph, asked in paragraphs:
        if len(book.text) > BOOK_CHARS:
            yield book
            number += 1
            book, section = Book(f"{name}-{number}"), None
        if title != section:
            section = title
            book.text += f"# {title}\n\n"
        book.add(paragraph, asked)
    yield book


def squeezed(text: str) -> str:
    return "".join(text.split())


def judged(asked: Asked, found: Sequence[Found], category: str) -> tuple[str, ...]:
    """The ids of what was found, best first: the first that is right, and names for the others."""
    rights = [
        asked.words in squeezed(text) if category == PASSAGE else asked.page in pages
        for text, pages in found
    ]
    first = rights.index(True) if any(rights) else None
    return tuple(RIGHT if at == first else f"{category}-{at}" for at in range(len(found)))


def pages_of(book: Book, start: int, length: int) -> set[tuple[str, int]]:
    first, last = start // PAGE_CHARS, (start + length) // PAGE_CHARS
    return {(book.name, page) for page in range(first, last + 1)}


@dataclass
class DocumentsSuite(ServiceSuite[DocumentSet]):
    """Uploads the books as one user and asks all of them."""

    name = NAME

    async def run(self) -> SuiteRun:
        """Raises RayappError: the service is away, refuses the caller or cannot take a book in."""
        loaded = self.loaded.sampled(self.limit_questions)
        run = SuiteRun(loaded.suite)
        by_id = await self._upload(loaded.books, run)
        asker = _Asker(self, by_id, _Windows(loaded.books))
        asked = [(book.name, one) for book in loaded.books for one in book.asked]
        with self.progress.step(f"{NAME}: ask", len(asked)) as bar:
            answers = await side_by_side(lambda one: asker.ask(*one), asked, self.options, bar)
        run.answered += itertools.chain.from_iterable(answers)
        return run

    async def _upload(self, books: Sequence[Book], run: SuiteRun) -> dict[str, Book]:
        by_id = {}
        with (
            tempfile.TemporaryDirectory() as folder,
            self.progress.step(f"{NAME}: upload", len(books)) as bar,
        ):
            for book in books:
                path = Path(folder) / f"{book.name}.md"
                path.write_text(book.text, encoding="utf-8")
                done = await self.client.upload(path, title=book.name, user_id=self._user_id)
                by_id[done.id] = book
                run.stored += 1
                bar.advance()
        await wait_indexed(self.client, self.progress, f"{NAME}: index", encoded=True)
        return by_id


class _Windows:
    """Plain BM25 over windows of the books."""

    def __init__(self, books: Sequence[Book]) -> None:
        self._places = {
            f"{book.name}:{at}": (book, at)
            for book in books
            for at in range(0, len(book.text), WINDOW_CHARS)
        }
        self._bm25 = PlainBm25([Document(name, self._text(name)) for name in self._places])

    def _text(self, name: str) -> str:
        book, at = self._places[name]
        return book.text[at : at + WINDOW_CHARS]

    def found(self, question: str) -> list[Found]:
        names = self._bm25.rank(question, DEPTH)
        return [(self._text(name), pages_of(*self._places[name], WINDOW_CHARS)) for name in names]


@dataclass(frozen=True, slots=True)
class _Asker:
    suite: DocumentsSuite
    books: dict[str, Book]
    windows: _Windows

    async def ask(self, corpus: str, asked: Asked) -> list[Answered]:
        """Judged by the passage and by the page."""
        floor = self.windows.found(asked.text)
        reply = await self._reply(asked, self.suite.options)
        answered = []
        for kind in (PASSAGE, PAGE):
            known: dict[str, Any] = {"question": asked.question(kind), "corpus": corpus}
            known["floor"] = judged(asked, floor, kind)
            if isinstance(reply, str):
                answered.append(Answered(ranked=(), error=reply, **known))
            else:
                ranked = judged(asked, [self._found(hit) for hit in reply.results], kind)
                answered.append(Answered.of(reply, ranked=ranked, **known))
        return answered

    async def _reply(self, asked: Asked, options: RunOptions) -> SearchReply | str:
        search = self.suite.client.search(
            asked.text,
            limit=DEPTH,
            tiers=["books"],
            recipe=options.recipe,
            user_id=self.suite._user_id,
        )
        return await reply_or_code(search, options)

    def _found(self, hit: HitView) -> Found:
        said: dict[str, Any] = hit.source.book or {}
        book = self.books[said["book_id"]]
        start = round(said["position"] * len(book.text))
        return hit.content, pages_of(book, start, len(hit.content))
