"""Does the service know what is true after facts changed, ended and were deleted?

Generated histories (`facts_set.py`) are stored, each under a user of its own, some memories are
deleted again, and both the typed graph and the search are asked. What is understood comes a moment
after what is stored, so the questions are asked until the answers stay the same.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from jobs.suites.bm25 import PlainBm25
from jobs.suites.facts_set import PERSON, FactQuestion, History, histories
from jobs.suites.runner import TIER, ServiceSuite, reply_or_code, side_by_side, store_suite, user_of
from jobs.suites.searched import Searched
from jobs.suites.suite import Corpus, Document, Suite, spread
from rayapp.text.normalize import normalize
from rayapp.understanding.statements.requests import Knowing, NodeEnd

NAME = "facts"
SEED = 7
# Between two looks, and how many must agree.
LOOK_S, LOOKS = 2.0, 3
MOST_LOOKS = 60


@dataclass(frozen=True, slots=True)
class FactsSet:
    """The histories."""

    histories: tuple[History, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a history."""

    history: History
    question: FactQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one question got: of the graph, of the search beside it, and of plain BM25 over what is
    left. `merged`: nodes that are two people of the history."""

    asked: Asked
    knowing: str = ""
    names: frozenset[str] = frozenset()
    searched: bool = False
    floor: bool = False
    merged: int = 0
    degraded: tuple[str, ...] = ()
    error: str | None = None

    @property
    def right(self) -> bool:
        return says_what_is_right(self.asked.question, self.knowing, self.names)


@dataclass(slots=True)
class FactsRun:
    """Everything a report needs."""

    stored: int = 0
    rejected: list[str] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return len(self.rejected) + sum(one.error is not None for one in self.answered)

    @property
    def searched(self) -> Searched:
        return Searched.of(one.degraded for one in self.answered if one.error is None)


def load_facts(data: Path) -> FactsSet:
    """The same histories for everybody; nothing of `data` is read."""
    return FactsSet(tuple(histories(SEED)))


def plain(name: str) -> str:
    """A name as it is compared."""
    return normalize(name).casefold()


def says_what_is_right(question: FactQuestion, knowing: str, names: frozenset[str]) -> bool:
    """Whether exactly what is right was said."""
    return knowing == question.knowing.value and names == {plain(one) for one in question.names}


def search_says(question: FactQuestion, texts: Sequence[str]) -> bool:
    """Whether the first hits of a search say what is right, and nothing where nothing is known."""
    if question.knowing is not Knowing.KNOWN:
        return not texts
    said = " ".join(texts[: max(len(question.names), 1)])
    return all(name in said for name in question.names)


def plainly_found(history: History, question: FactQuestion) -> bool:
    """Whether plain BM25 over the memories that are left says what is right."""
    left = {one.memory_id: one.text for one in history.told if one.memory_id not in history.deleted}
    if not left:
        return question.knowing is not Knowing.KNOWN
    documents = [Document(doc_id=doc_id, text=text) for doc_id, text in left.items()]
    ranked = PlainBm25(documents).rank(question.text, max(len(question.names), 1))
    return search_says(question, [left[one] for one in ranked])


@dataclass
class FactsSuite(ServiceSuite[FactsSet]):
    """Runs all histories under users of this run alone."""

    name: ClassVar[str] = NAME

    async def run(self) -> FactsRun:
        """Raises RayappError: the service is away or refuses the caller."""
        every = [Asked(one, each) for one in self.loaded.histories for each in one.questions]
        asked = spread(every, self.limit_questions)
        suite = Suite(name=NAME, corpora=tuple(_corpora(one.history for one in asked)))
        kept = await store_suite(self.client, suite, self.options.run_id, self.progress)
        run = FactsRun(stored=kept.stored, rejected=list(kept.rejected))
        await self._settled(asked)
        with self.progress.step(f"{NAME}: delete", len(asked)) as bar:
            await side_by_side(self._forget, asked, self.options, bar)
        run.answered = await self._settled(asked)
        return run

    async def _settled(self, asked: Sequence[Asked]) -> list[Answered]:
        """The answers, once they stay the same."""
        answers: list[Answered] = []
        same = 0
        with self.progress.step(f"{NAME}: ask", len(asked)) as bar:
            for _ in range(MOST_LOOKS):
                before = answers
                answers = await side_by_side(self._ask, asked, self.options, bar)
                told = [[(one.knowing, one.names) for one in some] for some in (before, answers)]
                same = same + 1 if told[0] == told[1] else 0
                if same >= LOOKS - 1:
                    break
                await asyncio.sleep(LOOK_S)
        return answers

    async def _forget(self, asked: Asked) -> None:
        for memory_id in asked.history.deleted:
            await self.client.delete(memory_id, user_id=self._user(asked.history))

    async def _ask(self, asked: Asked) -> Answered:
        question, user_id = asked.question, self._user(asked.history)
        reply = await reply_or_code(
            self.client.query_knowledge(**_body(question), user_id=user_id), self.options
        )
        if isinstance(reply, str):
            return Answered(asked=asked, error=reply)
        depth = max(len(question.names), 1)
        found = await reply_or_code(
            self.client.search(question.text, limit=depth, tiers=[TIER], user_id=user_id),
            self.options,
        )
        if isinstance(found, str):
            return Answered(asked=asked, error=found)
        names = (
            one.target.name if one.target else str(one.relationship.value) for one in reply.found
        )
        return Answered(
            asked=asked,
            knowing=reply.knowing.value,
            names=frozenset(map(plain, names)),
            searched=search_says(question, [one.content for one in found.results]),
            floor=plainly_found(asked.history, question),
            merged=await self._wrong_merges(asked.history),
            degraded=tuple(found.degraded),
        )

    async def _wrong_merges(self, history: History) -> int:
        """People of whom two homes are told, where each of them has one."""
        if not history.people:
            return 0
        user_id = self._user(history)
        told = await self.client.query_knowledge(
            source={"type": PERSON}, relation="LIVES_IN", include_past=True, user_id=user_id
        )
        homes = Counter(one.source.id for one in told.found)
        return sum(count > 1 for count in homes.values())

    def _user(self, history: History) -> str:
        corpus = Corpus(history.history_id, (), ())
        return user_of(Suite(name=NAME, corpora=()), corpus, self.options.run_id)


def _corpora(some: Any) -> list[Corpus]:
    found = {one.history_id: one for one in some}
    return [
        Corpus(
            name,
            tuple(
                Document(doc_id=told.memory_id, text=told.text, created_at=told.said_at)
                for told in one.told
            ),
            (),
        )
        for name, one in found.items()
    ]


def _body(question: FactQuestion) -> dict[str, Any]:
    asked = question.asked
    at = asked.as_of.isoformat() if asked.as_of else None
    return {"source": _end(asked.source), "relation": asked.relation, "as_of": at}


def _end(end: NodeEnd) -> dict[str, str]:
    fields = {"type": end.type, "name": end.name, "node_id": end.node_id}
    return {name: value for name, value in fields.items() if value is not None}
