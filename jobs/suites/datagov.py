"""Does a search find the right dataset of the open-data catalogue? Nothing is stored.

    descriptions  the Hebrew description of a dataset finds the dataset
    questions     our own questions in both languages, with the catalogue asked for
    intent        the same questions without asking for it, beside questions it cannot answer

The catalogue must be in the service, ingested without descriptions: a description that comes back
in an answer is reported as leaked, and the run as failed.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.suites.bm25 import PlainBm25
from jobs.suites.datagov_set import DatagovSet
from jobs.suites.runner import (
    DEPTH,
    Answered,
    RunOptions,
    ServiceSuite,
    SuiteRun,
    reply_or_code,
    side_by_side,
)
from jobs.suites.searched import Searched
from jobs.suites.suite import Document, Question
from rayapp.client import HitView, MemoryClient, SearchReply
from rayapp.client.progress import wait_indexed
from rayapp.core.errors import ConfigError
from rayapp.memory.tiers import DATAGOV_TIERS

INGEST = "rayapp job datagov_ingest --source DIR"
TIERS = frozenset(tier.value for tier in DATAGOV_TIERS)
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LEAK_CHARS = 60  # a description that long does not come back by chance (our choice)
PROBE_CHARS = 200  # of a dataset's own words: enough to find the catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """One search without the flag: did it turn to the catalogue by itself?"""

    question: Question
    to_catalogue: bool


@dataclass(slots=True)
class DatagovRun:
    """Everything a report needs. `leaked`: datasets whose own description came back.

    `searched` counts the searches of all parts, those without the flag too.
    """

    descriptions: SuiteRun
    questions: SuiteRun
    datasets: int
    turned: list[Turned] = field(default_factory=list)
    intent_errors: int = 0
    leaked: list[str] = field(default_factory=list)
    searched: Searched = field(default_factory=Searched)

    @property
    def parts(self) -> tuple[SuiteRun, SuiteRun]:
        return (self.descriptions, self.questions)

    @property
    def failures(self) -> int:
        """Questions without an answer, and descriptions that were in the index."""
        return sum(part.failures for part in self.parts) + self.intent_errors + len(self.leaked)


def datasets_of(hits: Sequence[HitView], known: frozenset[str]) -> tuple[str, ...]:
    """The datasets of the hits, best first, each where its best hit is; others are passed over."""
    found = (dataset_of(hit, known) for hit in hits)
    return tuple(dict.fromkeys(name for name in found if name is not None))


def dataset_of(hit: HitView, known: frozenset[str]) -> str | None:
    """The dataset that the hit belongs to: named in its source, else in its id.

    Categories, expansions and memories of the user belong to none.
    """
    named = (hit.source.datagov or {}).get("dataset_id")
    candidates = [named] if isinstance(named, str) else UUID.findall(hit.memory_id)
    return next((name for name in candidates if name in known), None)


def is_catalogue(reply: SearchReply) -> bool:
    """Whether the search looked into the catalogue: by the tiers it names, else by its hits."""
    searched = reply.debug.tiers or [hit.tier for hit in reply.results]
    return not TIERS.isdisjoint(searched)


def leaks(question: Question, hits: Sequence[HitView], floor_text: str) -> bool:
    """Whether an answer holds the description that was asked with.

    A description that repeats the names of its dataset is in every index: it is no leak.
    """
    asked = _plain(question.text)
    if len(asked) < LEAK_CHARS or asked[:LEAK_CHARS] in _plain(floor_text):
        return False
    return any(asked[:LEAK_CHARS] in _plain(hit.content) for hit in hits)


@dataclass
class DatagovSuite(ServiceSuite[DatagovSet]):
    """Runs all parts through the public API as a user who has no memory."""

    name = "datagov"

    async def run(self) -> DatagovRun:
        """Raises RayappError: the service is away, refuses the caller or has no catalogue."""
        await self._needs_catalogue()
        await wait_indexed(self.client, self.progress, "datagov index", encoded=True)
        run = DatagovRun(
            descriptions=SuiteRun(self.loaded.descriptions.sampled(self.limit_questions)),
            questions=SuiteRun(self.loaded.questions.sampled(self.limit_questions)),
            datasets=len(self.loaded.documents),
        )
        asker = _Asker(self.client, self.options, self._user_id, self.loaded.documents, run)
        asked = tuple(run.questions.suite.every_question())
        described = tuple(run.descriptions.suite.every_question())
        await self._each("descriptions", described, asker.describe)
        await self._each("questions", asked, asker.ask)
        await self._each("intent", (*asked, *self.loaded.controls), asker.ask_unprompted)
        for part in run.parts:
            part.answered.sort(key=lambda one: one.question.question_id)
        return run

    async def _needs_catalogue(self) -> None:
        words = self.loaded.documents[0].text[:PROBE_CHARS]
        reply = await self.client.search(
            words, limit=1, tiers=sorted(TIERS), include_datagov=True, user_id=self._user_id
        )
        if not any(hit.tier in TIERS for hit in reply.results):
            raise ConfigError(
                f"The DataGov catalogue is not in this service: run `{INGEST}` first."
            )

    async def _each(
        self, name: str, questions: Sequence[Question], ask: Callable[[Question], Awaitable[None]]
    ) -> None:
        with self.progress.step(f"datagov {name}", len(questions)) as bar:
            await side_by_side(ask, questions, self.options, bar)


class _Asker:
    """Asks one question and notes in the run what came back."""

    def __init__(
        self,
        client: MemoryClient,
        options: RunOptions,
        user_id: str,
        documents: Sequence[Document],
        run: DatagovRun,
    ) -> None:
        self._client, self._options, self._user_id, self._run = client, options, user_id, run
        self._texts = {document.doc_id: document.text for document in documents}
        self._known = frozenset(self._texts)
        self._floor = PlainBm25(documents)

    async def describe(self, question: Question) -> None:
        hits = await self._ask(question, self._run.descriptions)
        dataset_id = question.question_id
        own = [hit for hit in hits if dataset_of(hit, self._known) == dataset_id]
        if leaks(question, own, self._texts[dataset_id]):
            self._run.leaked.append(dataset_id)

    async def ask(self, question: Question) -> None:
        await self._ask(question, self._run.questions)

    async def ask_unprompted(self, question: Question) -> None:
        reply = await self._search(question, include_datagov=None)
        if isinstance(reply, SearchReply):
            self._run.turned.append(Turned(question=question, to_catalogue=is_catalogue(reply)))
        else:
            self._run.intent_errors += 1

    async def _ask(self, question: Question, part: SuiteRun) -> Sequence[HitView]:
        reply = await self._search(question, include_datagov=True)
        floor = self._floor.rank(question.text, DEPTH)
        asked: dict[str, Any] = {
            "question": question,
            "corpus": part.suite.corpora[0].name,
            "floor": floor,
        }
        if isinstance(reply, str):
            part.answered.append(Answered(ranked=(), error=reply, **asked))
            return ()
        ranked = datasets_of(reply.results, self._known)
        part.answered.append(Answered.of(reply, ranked=ranked, **asked))
        return reply.results

    async def _search(self, question: Question, include_datagov: bool | None) -> SearchReply | str:
        search = self._client.search(
            question.text,
            limit=DEPTH,
            recipe=self._options.recipe,
            user_id=self._user_id,
            include_datagov=include_datagov,
        )
        reply = await reply_or_code(search, self._options)
        if isinstance(reply, SearchReply):
            self._run.searched.add(reply.degraded)
        return reply


def _plain(text: str) -> str:
    """Words alone: an index may change marks, spaces and line ends."""
    return " ".join(re.findall(r"\w+", text))
