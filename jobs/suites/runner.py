"""Runs one suite through the public API: store, wait until indexed, ask, judge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

from jobs.suites.bm25 import PlainBm25
from jobs.suites.searched import Searched
from jobs.suites.suite import Corpus, Document, Question, Suite
from rayapp.client import Memory, MemoryClient, SearchReply
from rayapp.client.progress import Bar, Progress, wait_indexed
from rayapp.core.errors import RayappError
from rayapp.search.resident import SETTLE_S

LoadedT = TypeVar("LoadedT")
AskedT = TypeVar("AskedT")
OneT = TypeVar("OneT")
TIER = "history"  # dialogue turns; no write guard and no capacity limit
BATCH_ITEMS = 200  # items per batch call: a call stays under a second
# What an answered question keeps of its reply.
REPLIED = ("elapsed_ms", "server_ms", "abstained", "confidence", "degraded")
CALLERS_FAULT = frozenset({"unauthorized", "forbidden"})
DEPTH = 50  # results asked per question: ten sessions need more than ten turns
# A user of whom much was written a moment ago, and the first question of any, are searched in the
# index, with the words of the whole collection (decision 0055). What is measured is a user who is
# held: so long after the last write, and after a first question, seconds.
SETTLED_S = SETTLE_S + 1.0
HELD_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """`concurrency` = questions in flight; `recipe` None = the server's default."""

    run_id: str
    recipe: str | None = None
    concurrency: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question with what came back, ids in the suite's own names."""

    question: Question
    corpus: str
    ranked: tuple[str, ...]
    floor: tuple[str, ...]
    elapsed_ms: float = 0.0
    server_ms: float | None = None
    abstained: bool = False
    confidence: str | float | None = None
    degraded: tuple[str, ...] = ()
    error: str | None = None

    @classmethod
    def of(cls, reply: SearchReply, **asked: Any) -> Answered:
        """What a reply says besides its hits; `asked` are the other fields."""
        return cls(**{name: getattr(reply, name) for name in REPLIED}, **asked)


@dataclass(slots=True)
class SuiteRun:
    """Everything a report needs; `rejected` and `errors` are failures of the run."""

    suite: Suite
    stored: int = 0
    duplicates: int = 0
    rejected: list[str] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return len(self.rejected) + sum(1 for one in self.answered if one.error is not None)

    @property
    def searched(self) -> Searched:
        return Searched.of(one.degraded for one in self.answered if one.error is None)

    @property
    def answerable(self) -> list[Answered]:
        return [one for one in self.answered if one.question.gold]

    @property
    def unanswerable(self) -> list[Answered]:
        return [one for one in self.answered if not one.question.gold]


@dataclass
class ServiceSuite(Generic[LoadedT]):
    """What a suite of its own runs with: the loaded set, and the service that it asks."""

    client: MemoryClient
    loaded: LoadedT
    options: RunOptions
    progress: Progress
    limit_questions: int | None = field(default=None, kw_only=True)
    name: ClassVar[str]

    @property
    def _user_id(self) -> str:
        """A user of this run alone."""
        return f"eval-{self.name}-{self.options.run_id}"


def user_of(suite: Suite, corpus: Corpus, run_id: str) -> str:
    """A user of this run alone, so that no run sees another's memories."""
    return f"eval-{suite.name}-{corpus.name}-{run_id}"


@dataclass(slots=True)
class _Names:
    """Documents whose texts the service holds to be equal are one memory, so one name: the first.

    Gold, answer and floor are all read through it, so that no copy costs another one its rank.
    """

    by_memory: dict[str, str] = field(default_factory=dict)
    by_document: dict[str, str] = field(default_factory=dict)

    def add(self, doc_id: str, memory_id: str) -> None:
        self.by_document[doc_id] = self.by_memory.setdefault(memory_id, doc_id)

    def of_memories(self, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.by_memory.get(name, name) for name in ids)

    def of_documents(self, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.by_document.get(name, name) for name in ids))


@dataclass(frozen=True, slots=True)
class StoredSuite:
    """A suite whose memories are in the service under the users of `run_id`."""

    suite: Suite
    run_id: str
    names: dict[str, _Names]
    stored: int
    duplicates: int
    rejected: tuple[str, ...]


async def run_suite(
    client: MemoryClient, suite: Suite, options: RunOptions, progress: Progress
) -> SuiteRun:
    """Store the suite, wait for the index and ask every question.

    Raises RayappError: the service is away or refuses the caller; a single bad document or question
    is recorded in the run instead.
    """
    stored = await store_suite(client, suite, options.run_id, progress)
    return await ask_suite(client, stored, options, progress)


async def store_suite(
    client: MemoryClient, suite: Suite, run_id: str, progress: Progress
) -> StoredSuite:
    """Store every document and wait until all are indexed. Raises as `run_suite`."""
    run = SuiteRun(suite)
    names: dict[str, _Names] = {}
    with progress.step(f"{suite.name}: store", suite.documents) as bar:
        for corpus in suite.corpora:
            known = names.setdefault(corpus.name, _Names())
            user_id = user_of(suite, corpus, run_id)
            for batch in _batches(corpus.documents, BATCH_ITEMS):
                await _store(client, user_id, batch, run, known)
                bar.advance(len(batch))
    await wait_indexed(client, progress, f"{suite.name}: index", encoded=True)
    await asyncio.sleep(SETTLED_S)
    return StoredSuite(
        suite, run_id, names, run.stored, run.duplicates, rejected=tuple(run.rejected)
    )


async def ask_suite(
    client: MemoryClient, stored: StoredSuite, options: RunOptions, progress: Progress
) -> SuiteRun:
    """Ask every question with the recipe of `options`. Raises as `run_suite`."""
    suite = stored.suite
    run = SuiteRun(suite, stored.stored, stored.duplicates, list(stored.rejected))
    label = f"{suite.name}: ask" + (f" {options.recipe}" if options.recipe else "")
    with progress.step(label, suite.questions) as bar:
        for corpus in suite.corpora:
            asker = _Asker(client, stored, corpus, options, PlainBm25(corpus.documents))
            await asker.begin()
            run.answered += await side_by_side(asker.ask, corpus.questions, options, bar)
    return run


async def _store(
    client: MemoryClient, user_id: str, batch: Sequence[Document], run: SuiteRun, known: _Names
) -> None:
    memories = [
        Memory(text=doc.text, tier=TIER, memory_id=doc.doc_id, created_at=doc.created_at)
        for doc in batch
    ]
    replies = await client.store_batch(memories, user_id=user_id)
    for document, reply in zip(batch, replies, strict=True):
        if reply.status == "rejected" or reply.memory_id is None:
            run.rejected.append(f"{document.doc_id}: {reply.code or 'rejected'}")
            continue
        known.add(document.doc_id, reply.memory_id)
        run.stored += reply.status == "stored"
        run.duplicates += reply.status == "duplicate"


@dataclass(frozen=True, slots=True)
class _Asker:
    client: MemoryClient
    stored: StoredSuite
    corpus: Corpus
    options: RunOptions
    floor: PlainBm25

    @property
    def known(self) -> _Names:
        return self.stored.names[self.corpus.name]

    async def begin(self) -> None:
        """A question that is not counted, after which the service holds the user."""
        for question in self.corpus.questions[:1]:
            await self.ask(question)
            await asyncio.sleep(HELD_S)

    async def ask(self, question: Question) -> Answered:
        floor = self.known.of_documents(self.floor.rank(question.text, DEPTH))
        question = replace(question, gold=self.known.of_documents(question.gold))
        user_id = user_of(self.stored.suite, self.corpus, self.stored.run_id)
        reply = await reply_or_code(
            self.client.search(
                question.text, limit=DEPTH, recipe=self.options.recipe, user_id=user_id
            ),
            self.options,
        )
        asked: dict[str, Any] = {"question": question, "corpus": self.corpus.name, "floor": floor}
        if isinstance(reply, str):
            return Answered(ranked=(), error=reply, **asked)
        return Answered.of(reply, ranked=self.known.of_memories(reply.ids), **asked)


async def reply_or_code(asked: Awaitable[OneT], options: RunOptions) -> OneT | str:
    """The answer, or the code of an error that is about this question alone. A named recipe that
    the server refuses, and a caller that it does, fail every question alike."""
    try:
        return await asked
    except RayappError as error:
        if error.retryable or options.recipe is not None or error.code in CALLERS_FAULT:
            raise
        return error.code


async def side_by_side(
    ask: Callable[[AskedT], Awaitable[OneT]],
    questions: Iterable[AskedT],
    options: RunOptions,
    bar: Bar,
) -> list[OneT]:
    """The answers in order, as many asked at once as the options allow; one failure ends the rest
    and leaves no task behind."""
    gate = asyncio.Semaphore(options.concurrency)

    async def one(question: AskedT) -> OneT:
        async with gate:
            answer = await ask(question)
        bar.advance()
        return answer

    tasks = [asyncio.create_task(one(question)) for question in questions]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _batches(documents: Sequence[Document], size: int) -> Iterator[Sequence[Document]]:
    for start in range(0, len(documents), size):
        yield documents[start : start + size]
