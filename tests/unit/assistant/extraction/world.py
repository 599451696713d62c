"""Conversations that are learned from, on the whole service over fakes and a scripted model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from rayapp.assistant.conversations.rules import fingerprints_of
from rayapp.assistant.extraction.executor import ExtractionExecutor
from rayapp.assistant.extraction.policies import ExtractionPolicies, KnownMemories
from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.extraction.service import ExchangeLearning
from rayapp.assistant.ports import KeptTurn, TurnRecord
from rayapp.container import bootstrap
from rayapp.core.vectors import IndexSchema
from rayapp.documents.service import BooksService
from rayapp.index.point_builder import PointBuilder
from rayapp.index.service import IndexingService
from rayapp.inference.chat.rules.answers import (
    HistorySummary,
    MergedMemory,
    OutcomeJudgement,
    ProfileFindings,
)
from rayapp.inference.ports import HelperName, ModelPort, ModelQuestion, ModelReply, WhyNot
from rayapp.memory.item import MemoryItem, Source, SourceType
from rayapp.memory.requests import ItemQuery, NewMemory
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from tests.support.harness import ModelEmbedder, Switchable
from tests.support.outcome_services import OutcomeServices
from tests.support.stores.documents import InMemoryBookStore
from tests.support.stores.index import InMemoryIndex
from tests.support.stores.stores import InMemoryLeaseStore

T = TypeVar("T")
DANA, READS = WriteScope("dana", "agent"), ReadScope("dana", include_shared=False)
Answer = Callable[[dict[str, Any]], Any]


def nothing(variables: dict[str, Any]) -> str:
    return "NOTHING"


def nobody(variables: dict[str, Any]) -> ProfileFindings:
    return ProfileFindings(items=[])


def unsure(variables: dict[str, Any]) -> OutcomeJudgement:
    return judgement("unknown", 0.2)


def judgement(outcome: str, confidence: float) -> OutcomeJudgement:
    return OutcomeJudgement.model_validate({"outcome": outcome, "confidence": confidence})


@dataclass
class ScriptedAnswers:
    """`ModelPort`: `answers` by helper; a str that is a `WhyNot` in `why` is no answer.

    `asked` holds every question, in order.
    """

    off: set[HelperName] = field(default_factory=set)
    why: dict[HelperName, WhyNot] = field(default_factory=dict)
    asked: list[tuple[HelperName, dict[str, Any]]] = field(default_factory=list)
    answers: dict[HelperName, Answer] = field(
        default_factory=lambda: {
            "outcome_detection": unsure,
            "profile_detection": nobody,
            "fact_extraction": nothing,
            "conversation_title": nothing,
            "history_summary": lambda variables: HistorySummary(bullets=[]),
            "merge_duplicates": lambda variables: MergedMemory(same=False, confidence=1.0),
        }
    )

    def enabled(self, helper: HelperName) -> bool:
        return helper not in self.off

    async def close(self) -> None:
        self.off.update(self.answers)

    async def ask(self, user_id: str, question: ModelQuestion[T]) -> ModelReply[T]:
        self.asked.append((question.helper, dict(question.variables)))
        if question.helper in self.why:
            return ModelReply(why=self.why[question.helper])
        value = self.answers[question.helper](dict(question.variables))
        assert isinstance(value, question.answer)
        return ModelReply(value=cast(T, value))

    def questions(self, helper: HelperName) -> list[dict[str, Any]]:
        return [variables for name, variables in self.asked if name == helper]


class World(OutcomeServices):
    """`await World.open()`, then `say` and `learn`."""

    schema: IndexSchema

    def __init__(self, models: ModelPort) -> None:
        super().__init__()
        self.models = models
        self.leases = InMemoryLeaseStore(self.clock)
        self.index: Any = Switchable(InMemoryIndex())
        self.embedder = ModelEmbedder()
        self.numbers = itertools.count(1)
        self.book_rows = InMemoryBookStore(self.items, self.clock)
        self.books = BooksService(self.book_rows, self.items, runtime=self.runtime)
        self.learning = self.worker()

    @classmethod
    async def open(cls, models: ModelPort | None = None) -> World:
        self = cls(models or ScriptedAnswers())
        await self.begin()
        return self

    async def begin(self) -> None:
        """Open the index; before anything else."""
        analyser = bootstrap.load_texts().analyser
        self.schema = bootstrap.schema_of(await self.embedder.info(), analyser)
        await self.index.open(self.schema)
        await self.index.rebuilt()

    @property
    def script(self) -> ScriptedAnswers:
        assert isinstance(self.models, ScriptedAnswers)
        return self.models

    def worker(self, **replaced: Any) -> ExchangeLearning:
        """A process that learns; several share the stores. `replaced`: parts that fail."""
        queue = replaced.get("queue", self.queue)
        executor = ExtractionExecutor(
            replaced.get("memories", self.memories),
            replaced.get("outcomes", self.outcomes),
            replaced.get("events", self.events),
            self.conversations,
            tools=self.tool_verdicts,
            runtime=self.runtime,
        )
        policies = ExtractionPolicies(
            models=self.models,
            queue=queue,
            receipts=self.receipts,
            known=KnownMemories(self.items, self.index, self.embedder, self.books, timeout_s=5.0),
            conversations=self.conversations,
            versions=lambda helper, language: f"{language}1",
            judged=executor.judged,
        )
        return ExchangeLearning(queue, policies, executor, runtime=self.runtime)

    async def index_all(self) -> None:
        """Run the indexer until nothing is due."""
        analyser = bootstrap.load_texts().analyser
        maker = PointBuilder(self.embedder, analyser, schema=self.schema, timeout_s=5.0)
        indexing = IndexingService(
            self.items,
            self.index,
            maker,
            self.leases,
            on_deleted=self.queue.purge,
            on_hidden=self.queue.purge,
            runtime=self.runtime,
        )
        while await indexing.run_once():
            pass

    async def store(self, text: str, **fields: Any) -> str:
        result = await self.memories.store(DANA, NewMemory(text=text, **fields))
        assert result.memory_id is not None
        return result.memory_id

    async def receipt(self, *shown: str, number: int = 1) -> str:
        receipt = self.receipt_of(f"r-{number}", shown)
        await self.receipts.put_many([receipt])
        return receipt.receipt_id

    async def say(
        self,
        user: str,
        answer: str,
        *,
        kept: bool = True,
        injected: Sequence[str] = (),
        receipt_id: str | None = None,
        shown: Sequence[str] = (),
        conversation: str = "c-1",
        trust: float | None = None,
    ) -> LearnedExchange:
        """One turn: stored as a memory, and left for the worker."""
        message_id = f"m-{next(self.numbers)}"
        self.clock.advance(10)
        memory_id = None
        if kept:
            memory_id = await self.store(
                f"User: {user}\nAssistant: {answer}",
                trust=trust,
                source=Source(
                    type=SourceType.ASSISTANT, conversation_id=conversation, message_id=message_id
                ),
            )
            kept_turn = KeptTurn(
                user_id="dana",
                conversation_id=conversation,
                message_id=message_id,
                question=user,
                answer=answer,
                at=self.clock.now(),
                memory_id=memory_id,
            )
            await self.conversations.keep(DANA, kept_turn, user)
            record = TurnRecord(message_id=message_id, memory_id=memory_id, at=self.clock.now())
            await self.sessions.add_turn(DANA, conversation, record)
        exchange = LearnedExchange(
            user_id="dana",
            conversation_id=conversation,
            message_id=message_id,
            user_text=user,
            answer=answer,
            memory_id=memory_id,
            at=self.clock.now(),
            principal="agent",
            injected=fingerprints_of(injected),
            receipt_id=receipt_id,
            shown=tuple(shown),
        )
        await self.queue.offer(DANA, exchange)
        return exchange

    async def learn(self, worker: ExchangeLearning | None = None) -> int:
        """Work until nothing is due."""
        total = 0
        while done := await (worker or self.learning).run_once():
            total += done
        return total

    async def learned(self) -> list[MemoryItem]:
        where = ItemFilter(tags_any=("learned",))
        listed = await self.memories.page(READS, where, ItemQuery())
        return sorted(listed.items, key=lambda item: item.text)

    async def texts(self) -> list[str]:
        return [item.text for item in await self.learned()]

    async def item(self, memory_id: str | None) -> MemoryItem:
        assert memory_id is not None
        return await self.memories.get(READS, memory_id)

    async def uses(self, *memory_ids: str | None) -> list[int]:
        return [(await self.item(one)).stats.uses for one in memory_ids]

    def kept_texts(self, exchange: LearnedExchange) -> str:
        """All that the queue still says of a turn."""
        kept = self.queue._rows[exchange.key]
        return f"{kept.exchange.user_text}{kept.exchange.answer}{kept.plan or ''}"

    def notes(self, exchange: LearnedExchange) -> dict[str, str]:
        return self.queue.result_of(exchange)[1]

    def state(self, exchange: LearnedExchange) -> str:
        return self.queue.result_of(exchange)[0]
