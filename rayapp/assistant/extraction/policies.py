"""What a model is asked about one exchange, and what the rules let through of its answers.

Nothing is written here. A decision is plain JSON, so that it can be kept before it is done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rayapp.assistant.conversations.rules import already_known
from rayapp.assistant.extraction.records import Learned, Task, Turn, learned_to_json
from rayapp.assistant.extraction.rules.facts import (
    LEARNED_TAG,
    LearnedExchange,
    Making,
    adds,
    fact_of,
    joined_text,
    known_near,
    known_text,
    placed_fact,
)
from rayapp.assistant.extraction.rules.history import (
    BULLETS,
    TURNS,
    has_reaction,
    placed_summary,
    profile_of,
    summary_due,
    summary_of,
)
from rayapp.assistant.ports import ExchangeQueue
from rayapp.core.errors import RayappError
from rayapp.index.ports import VectorIndex
from rayapp.index.records import Arm, ScoredPoint
from rayapp.inference.chat.rules.answers import (
    HistorySummary,
    MergedMemory,
    OutcomeJudgement,
    ProfileFindings,
)
from rayapp.inference.ports import (
    Asking,
    Embedder,
    HelperName,
    Message,
    ModelQuestion,
    ModelReply,
    PromptLanguage,
    T,
    prompt_language,
)
from rayapp.memory.item import MemoryItem, Outcome, SourceType, Status, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.creation import is_raw_exchange
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import CORE_TIERS
from rayapp.search.ports import ReceiptStore

# What is known of a user already, for the rules that keep a fact from being learned twice.

# Memories that a model is told of, so that it does not say them again (the extraction design).
TOLD = 8
# Nearest memories that a fact is compared with (the extraction design).
COMPARED = 5
# Memories that wait for the index and are compared by their words.
WAITING = 100


@dataclass(frozen=True, slots=True)
class Met:
    """`extends`: a learned memory that says the same, but not all of it."""

    known: bool
    extends: MemoryItem | None = None


class KnownMemories:
    """Looks into index and truth. Raises DependencyDown: unseen is not learned either."""

    def __init__(
        self, items: MemoryStore, index: VectorIndex, embedder: Embedder, *, timeout_s: float
    ) -> None:
        self._items = items
        self._index = index
        self._embedder = embedder
        self._timeout_s = timeout_s

    async def active(self, user_id: str, memory_id: str) -> MemoryItem | None:
        """The memory unless its user deleted it or put it away."""
        item = await self._items.get(_own(user_id), memory_id)
        return item if item is not None and item.status is Status.ACTIVE else None

    async def told(self, user_id: str, text: str) -> list[str]:
        """Facts near to what the user said, the nearest first."""
        near = await self._near(user_id, text, TOLD)
        return [item.text for item, _ in near]

    async def says(self, user_id: str, line: str) -> Met:
        """Whether a memory, of whatever tier, says the same."""
        near = await self._near(user_id, line, COMPARED)
        same = [item for item, cosine in near if known_near(line, item.text, cosine)]
        if not same:
            waiting = await self._items.pending(
                _own(user_id), ItemFilter(), WAITING, with_failed=True
            )
            return Met(known_text(line, [item.text for item in _facts(waiting)]))
        if all(adds(line, item.text) for item in same):
            return Met(True, next((item for item in same if _is_learned(item)), None))
        return Met(True)

    async def shown(self, user_id: str, memory_ids: Sequence[str]) -> list[MemoryItem]:
        """The memories of a receipt that are still there, raw turns among them."""
        points = [point_id_of(user_id, memory_id) for memory_id in memory_ids]
        return await self._items.by_points(_own(user_id), points) if points else []

    async def _near(self, user_id: str, text: str, limit: int) -> list[tuple[MemoryItem, float]]:
        (vector,) = await self._embedder.embed([text], "passage", timeout_s=self._timeout_s)
        # Raw turns lie near too, and are left out afterwards: they are where facts come from.
        arm = Arm(name="known", limit=3 * limit, dense=vector, tiers=CORE_TIERS)
        (points,) = await self._index.query(_own(user_id), ItemFilter(tiers=CORE_TIERS), [arm])
        scores = {point.point_id: point.score for point in _ordered(points)}
        found = await self._items.by_points(_own(user_id), list(scores))
        near = [(item, scores[item.point_id]) for item in _facts(found)]
        return sorted(near, key=lambda one: -one[1])[:limit]


def _is_learned(item: MemoryItem) -> bool:
    """Made here, of an exchange: what a person stored under the same tag is theirs."""
    source = item.source
    made = source.type is SourceType.ASSISTANT and source.tool_run_id is not None
    return made and LEARNED_TAG in item.tags


def _facts(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Active memories that are no raw turns."""
    return [i for i in items if i.status is Status.ACTIVE and not is_raw_exchange(i.text)]


def _ordered(points: Sequence[ScoredPoint]) -> list[ScoredPoint]:
    return sorted(points, key=lambda point: (-point.score, point.point_id))


def _own(user_id: str) -> ReadScope:
    return ReadScope(user_id, include_shared=False)


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


class Deciders:
    """The four tasks. Raises DependencyDown when something of ours is away."""

    def __init__(
        self,
        models: Asking,
        queue: ExchangeQueue,
        receipts: ReceiptStore,
        known: KnownMemories,
        versions: Versions,
    ) -> None:
        self.models = models
        self.queue = queue
        self.receipts = receipts
        self.known = known
        self.versions = versions
        self.tasks: dict[Task, Callable[[Case], Awaitable[Decided]]] = {
            "outcome": self._outcome,
            "profile": self._profile,
            "fact": self._fact,
            "summary": self._summary,
        }

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
        before = await self.queue.earlier(_policies_own(exchange), exchange, 1)
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
        receipt = await self.receipts.get(_policies_own(judged), judged.receipt_id)
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
        scope = _policies_own(exchange)
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


def _policies_own(exchange: LearnedExchange) -> ReadScope:
    return ReadScope(exchange.user_id, include_shared=False)
