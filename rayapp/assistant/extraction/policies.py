"""What a model is asked about one exchange, and what the rules let through of its answers.

Nothing is written here. A decision is plain JSON, so that it can be kept before it is done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rayapp.assistant.conversations.rules.fingerprint import already_known
from rayapp.assistant.extraction.known import KnownMemories, Met
from rayapp.assistant.extraction.records import Learned, Task, Turn, learned_to_json
from rayapp.assistant.extraction.rules.exchange import LearnedExchange
from rayapp.assistant.extraction.rules.facts import fact_of, known_text
from rayapp.assistant.extraction.rules.history import (
    BULLETS,
    TURNS,
    placed_summary,
    summary_due,
    summary_of,
)
from rayapp.assistant.extraction.rules.joining import joined_text
from rayapp.assistant.extraction.rules.judging import has_reaction
from rayapp.assistant.extraction.rules.placing import Making, placed_fact
from rayapp.assistant.extraction.rules.profile import profile_of
from rayapp.assistant.ports import ExchangeQueue
from rayapp.core.errors import RayappError
from rayapp.inference.chat.question import (
    HelperName,
    ModelQuestion,
    ModelReply,
    PromptLanguage,
    prompt_language,
)
from rayapp.inference.chat.rules.answers import (
    HistorySummary,
    MergedMemory,
    OutcomeJudgement,
    ProfileFindings,
)
from rayapp.inference.ports import Asking, Message, T
from rayapp.memory.item import MemoryItem, Outcome, Status
from rayapp.memory.scope import ReadScope
from rayapp.search.ports import ReceiptStore

HELPER_OF: dict[Task, HelperName] = {
    "outcome": "outcome_detection",
    "profile": "profile_detection",
    "fact": "fact_extraction",
    "summary": "history_summary",
}
# Least confidence of a model that two texts say one thing: that of every signal that counts.
SURE_MERGE = 0.7
# Texts that were before the assistant and are told to the model as known, at most.
TOLD_CONTEXT = 20
Versions = Callable[[HelperName, PromptLanguage], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One exchange and what belongs to it. `item` None: it is no memory, or none any more."""

    exchange: LearnedExchange
    item: MemoryItem | None
    shown: tuple[MemoryItem, ...] = ()
    learned: tuple[str, ...] = ()

    @property
    def gone(self) -> bool:
        """Its user deleted it or put it away: no word of it is used any more."""
        return self.exchange.memory_id is not None and self.item is None

    @property
    def turn(self) -> Turn:
        return _turn(self.exchange, self.item)

    @property
    def context(self) -> list[str]:
        """What a model may be told of what was shown: nothing that was put away since."""
        return [i.text for i in self.shown if i.status is Status.ACTIVE][:TOLD_CONTEXT]

    def echoes(self, text: str) -> bool:
        """The text was put before the assistant in this conversation."""
        injected = already_known(text, self.exchange.injected)
        return injected or known_text(text, [item.text for item in self.shown])


@dataclass(frozen=True, slots=True)
class Decided:
    """`part`: what is to be done; None = nothing. `wait`: it was not decided, and why not yet.

    `tried`: the model answered badly or late; `away`: it was not there to be asked.
    """

    note: str
    part: Any = None
    wait: Literal["", "tried", "away"] = ""


# The question was asked and paid, so it is repeated only as often as one that failed.
UNSEEN = Decided("unseen", wait="tried")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciders:
    """The four tasks. Raises DependencyDown when something of ours is away."""

    models: Asking
    queue: ExchangeQueue
    receipts: ReceiptStore
    known: KnownMemories
    versions: Versions
    tasks: dict[Task, Callable[[Case], Awaitable[Decided]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tasks: dict[Task, Callable[[Case], Awaitable[Decided]]] = {
            "outcome": self._outcome,
            "profile": self._profile,
            "fact": self._fact,
            "summary": self._summary,
        }
        object.__setattr__(self, "tasks", tasks)

    @property
    def enabled(self) -> bool:
        """Some helper may be asked."""
        return any(self.models.enabled(helper) for helper in HELPER_OF.values())

    async def decide(self, case: Case, task: Task) -> Decided:
        if not self.models.enabled(HELPER_OF[task]):
            return Decided("off")
        if task != "outcome" and case.item is None:
            return Decided("no_memory")
        return await self.tasks[task](case)

    # --- outcome

    async def _outcome(self, case: Case) -> Decided:
        """The exchange before is judged, by what the user said next."""
        exchange = case.exchange
        if not has_reaction(exchange.user_text):
            return Decided("no_reaction")
        before = await self.queue.earlier(_own(exchange), exchange, 1)
        if not before:
            return Decided("first_turn")
        judged = before[0]
        if judged.memory_id is not None and not await self._still_kept([judged]):
            return Decided("gone")
        receipt_id = await self._open_receipt(judged)
        if judged.memory_id is None and receipt_id is None:
            return Decided("nothing_to_judge")
        reply = await self._ask(
            case,
            "outcome",
            OutcomeJudgement,
            question=judged.user_text,
            answer=judged.answer,
            next_message=exchange.user_text,
        )
        if reply.value is None:
            return _not_decided(reply)
        part = {
            "message_id": judged.message_id,
            "memory_id": judged.memory_id,
            "receipt_id": receipt_id,
            "outcome": Outcome(reply.value.outcome).value,
            "confidence": reply.value.confidence,
        }
        return Decided(reply.value.outcome, part)

    async def _open_receipt(self, judged: LearnedExchange) -> str | None:
        """The receipt of the judged turn, unless somebody said already how it went."""
        if judged.receipt_id is None:
            return None
        receipt = await self.receipts.get(_own(judged), judged.receipt_id)
        judgeable = receipt is not None and receipt.scored_at is None and bool(receipt.shown)
        return judged.receipt_id if judgeable else None

    # --- what is learned

    async def _profile(self, case: Case) -> Decided:
        exchange = case.exchange
        known = await self.known.told(exchange.user_id, exchange.user_text)
        reply = await self._ask(
            case, "profile", ProfileFindings, user_text=exchange.user_text, known=known
        )
        if reply.value is None:
            return _not_decided(reply)
        kept, refused = profile_of(
            reply.value.items, case.turn, case.echoes, made=self._made(case, "profile")
        )
        new = []
        for one in kept:
            met = await self._says(case, one.text)
            if met is None:
                return UNSEEN
            if not met.known:
                new.append(one)
        if new:
            return _learned(*new)
        return Decided("known" if kept else (refused[0] if refused else "nothing"))

    async def _fact(self, case: Case) -> Decided:
        exchange = case.exchange
        known = await self.known.told(exchange.user_id, exchange.user_text)
        reply = await self._ask(
            case,
            "fact",
            str,
            user_text=exchange.user_text,
            assistant_text=exchange.answer,
            known=[*known, *case.learned],
            context=case.context,
        )
        if reply.value is None:
            return _not_decided(reply)
        checked = fact_of(reply.value, case.turn, case.echoes)
        if checked.text is None:
            return Decided(checked.reason)
        if known_text(checked.text, case.learned):
            return Decided("known")
        met = await self._says(case, checked.text)
        if met is None:
            return UNSEEN
        if met.known:
            return await self._merged(case, met.extends, checked.text)
        parents = tuple(item.trust for item in case.shown)
        made = self._made(case, "fact")
        return _learned(placed_fact(checked.text, case.turn, parents, made=made))

    async def _merged(self, case: Case, other: MemoryItem | None, line: str) -> Decided:
        """One text for a learned memory and the line that adds to it; else it stays as it is.

        The model only words it: a text that loses or adds a word is no merge.
        """
        if other is None or not self.models.enabled("merge_duplicates"):
            return Decided("known")
        question = ModelQuestion(
            helper="merge_duplicates",
            variables={"texts": [other.text, line]},
            answer=MergedMemory,
            language=_language(case),
        )
        reply = await self.models.ask(case.exchange.user_id, question)
        if reply.value is None or not reply.value.same or reply.value.confidence < SURE_MERGE:
            return Decided("known")
        joined = joined_text(reply.value.text, other.text, line)
        if joined.text is None:
            return Decided("known")
        merge = {"memory_id": other.memory_id, "text": joined.text, "version": other.version}
        return Decided("kept", [{"merge": merge}])

    async def _summary(self, case: Case) -> Decided:
        exchange = case.exchange
        scope = _own(exchange)
        if not summary_due(await self.queue.number_of(scope, exchange)):
            return Decided("not_due")
        # Turns that are no memory stand between; twice as many rows hold enough of the others.
        earlier = await self.queue.earlier(scope, exchange, 2 * TURNS)
        rows = [row for row in earlier if row.memory_id is not None][: TURNS - 1]
        kept = await self._still_kept(rows)
        if not kept:
            return Decided("gone")
        turns = [*(_turn(row, item) for row, item in reversed(kept)), case.turn]
        messages = [
            message
            for turn in turns
            for message in (Message("user", turn.user), Message("assistant", turn.assistant))
        ]
        reply = await self._ask(case, "summary", HistorySummary, messages=messages, bullets=BULLETS)
        if reply.value is None:
            return _not_decided(reply)
        checked = summary_of(reply.value.bullets, turns)
        if checked.text is None:
            return Decided(checked.reason)
        return _learned(placed_summary(checked.text, turns, made=self._made(case, "summary")))

    async def _still_kept(
        self, rows: Sequence[LearnedExchange]
    ) -> list[tuple[LearnedExchange, MemoryItem]]:
        """Turns whose memory is still there, with it. What the others said leaves the queue."""
        kept = []
        for row in rows:
            if row.erased or row.memory_id is None:
                continue
            item = await self.known.active(row.user_id, row.memory_id)
            if item is None:
                await self.queue.erase(row)
            else:
                kept.append((row, item))
        return kept

    async def _says(self, case: Case, text: str) -> Met | None:
        """Whether the text is known; None = it cannot be seen, and the answer is lost."""
        try:
            return await self.known.says(case.exchange.user_id, text)
        except RayappError:
            return None

    # --- asking

    async def _ask(
        self, case: Case, task: Task, wanted: type[T], /, **variables: Any
    ) -> ModelReply[T]:
        question = ModelQuestion(
            helper=HELPER_OF[task],
            variables=variables,
            answer=wanted,
            language=_language(case),
        )
        return await self.models.ask(case.exchange.user_id, question)

    def _made(self, case: Case, task: Task) -> Making:
        return Making(case.exchange, self.versions(HELPER_OF[task], _language(case)))


def _turn(exchange: LearnedExchange, item: MemoryItem | None) -> Turn:
    trust = item.trust if item else 0.0
    return Turn(user=exchange.user_text, assistant=exchange.answer, trust=trust)


def _language(case: Case) -> PromptLanguage:
    return prompt_language(case.exchange.user_text)


def _learned(*new: Learned) -> Decided:
    return Decided("kept", [learned_to_json(one) for one in new])


def _not_decided(reply: ModelReply[Any]) -> Decided:
    """Off and an empty budget are final: nothing is learned then. All else is tried again."""
    why = reply.why or "invalid"
    if why in ("off", "budget"):
        return Decided(why)
    return Decided(why, wait="away" if why in ("breaker", "ledger") else "tried")


def _own(exchange: LearnedExchange) -> ReadScope:
    return ReadScope(exchange.user_id, include_shared=False)
