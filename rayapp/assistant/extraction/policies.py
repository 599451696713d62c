"""What a model is asked about one exchange, and what the rules let through of its answers.

Nothing is written here. A decision is plain JSON, so that it can be kept before it is done.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

from rayapp.assistant.commands.rules import takes_back
from rayapp.assistant.conversations.rules import EXCHANGE_TAG, already_known
from rayapp.assistant.extraction.rules import facts, history
from rayapp.assistant.extraction.rules.facts import Learned, Task, Turn
from rayapp.assistant.history.rules import model_title
from rayapp.assistant.ports import ConversationStore, ExchangeQueue, KeptTurn
from rayapp.core.errors import RayappError
from rayapp.documents.service import BooksService
from rayapp.index.ports import VectorIndex
from rayapp.index.records import ScoredPoint, SubQuery
from rayapp.inference import ports
from rayapp.inference.chat.rules import answers
from rayapp.memory.item import (
    LEARNED_TAG,
    MemoryItem,
    Outcome,
    SourceType,
    Status,
    point_id_of,
    subject_of,
)
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.creation import is_raw_exchange
from rayapp.memory.rules.lifecycle import has_ended
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.search.ports import ReceiptReads
from rayapp.text.slots import slot_of

# Memories that a model is told of, so that it does not say them again (the extraction design).
TOLD = 8
# Nearest memories that a fact is compared with (the extraction design).
COMPARED = 5
# Nearest memories among which one is looked for that a fact replaces: what it says instead of it
# moves the two apart.
LOOKED_THROUGH = 20
# Memories that wait for the index and are compared by their words.
WAITING = 100


@dataclass(frozen=True, slots=True)
class DuplicateMatch:
    """`learned`: a learned memory that says the same; `partly`: but not all of it."""

    known: bool
    learned: MemoryItem | None = None
    partly: bool = False

    def also(self, exchange: facts.LearnedExchange) -> list[dict[str, Any]]:
        """What is to be done about it: that it was said here too, if it came from elsewhere."""
        if self.learned is None:
            return []
        source = self.learned.source
        known = exchange.conversation_id in (source.conversation_id, *source.also)
        return [] if known else [{"said": self.learned.memory_id}]


@dataclass(eq=False)
class KnownMemories:
    """Looks into index and truth. Raises DependencyDown: unseen is not learned either."""

    items: MemoryStore
    index: VectorIndex
    embedder: ports.Embedder
    books: BooksService
    _: KW_ONLY
    timeout_s: float

    async def active(self, user_id: str, memory_id: str) -> MemoryItem | None:
        """The memory unless its user deleted it or put it away."""
        item = await self.items.get(ReadScope(user_id).own, memory_id)
        return item if item is not None and item.status is Status.ACTIVE else None

    async def told(self, exchange: facts.LearnedExchange) -> list[str]:
        """Facts near to what the user said that still held then, the nearest first."""
        near = await self._near(exchange.user_id, exchange.user_text, TOLD)
        return [item.text for item, _ in near if not has_ended(item, exchange.at)]

    async def says(self, exchange: facts.LearnedExchange, line: str) -> DuplicateMatch:
        """Whether a memory, of whatever tier, says the same, or a document of the conversation."""
        user_id, at = exchange.user_id, exchange.at
        if await self._stands_attached(exchange, line):
            return DuplicateMatch(True)
        found = await self._near(user_id, line, COMPARED)
        # What had ended by then is said of a new period.
        near = [(item, cosine) for item, cosine in found if not has_ended(item, at)]
        same = [item for item, cosine in near if facts.known_near(line, item.text, cosine)]
        if not same:
            waiting = [one for one in await self._waiting(user_id) if not has_ended(one, at)]
            same = [item for item in waiting if facts.known_text(line, [item.text])]
            return DuplicateMatch(bool(same), next(filter(_is_learned, same), None))
        partly = all(facts.adds(line, item.text) for item in same)
        return DuplicateMatch(True, next(filter(_is_learned, same), None), partly)

    async def _stands_attached(self, exchange: facts.LearnedExchange, line: str) -> bool:
        """Whether a passage of a document that is attached to the conversation says the same, or
        holds it: nobody else sees that document."""
        own, conversation = exchange.own, exchange.conversation_id
        attached = await self.books.attached(own, conversation)
        if not attached:
            return False
        where = ItemFilter(
            tiers=(Tier.BOOKS,),
            doc_ids=tuple(book.linked_to or book.book_id for book in attached),
            attached_to=conversation,
        )
        near = await self._nearest(own, line, where, LOOKED_THROUGH)
        if any(facts.known_near(line, item.text, cosine) for item, cosine in near):
            return True
        worded = await self.items.text_search(own, where, line, LOOKED_THROUGH)
        passages = (item.text for item, _ in (*near, *worded))
        return facts.known_text(line, passages)

    async def around(self, user_id: str, line: str) -> list[MemoryItem]:
        """Facts near to the line, and those that wait for the index."""
        near = await self._near(user_id, line, LOOKED_THROUGH)
        return [*(item for item, _ in near), *await self._waiting(user_id)]

    async def _waiting(self, user_id: str) -> list[MemoryItem]:
        own = ReadScope(user_id).own
        return _facts(await self.items.pending(own, ItemFilter(), WAITING, with_failed=True))

    async def shown(self, user_id: str, memory_ids: Sequence[str]) -> list[MemoryItem]:
        """The memories of a receipt that are still there, raw turns among them."""
        points = [point_id_of(user_id, memory_id) for memory_id in memory_ids]
        return await self.items.by_points(ReadScope(user_id).own, points) if points else []

    async def _near(self, user_id: str, text: str, limit: int) -> list[tuple[MemoryItem, float]]:
        # Raw turns lie near too, and are left out afterwards: they are where facts come from.
        where = ItemFilter(tiers=CORE_TIERS)
        return (await self._nearest(ReadScope(user_id).own, text, where, 3 * limit))[:limit]

    async def _nearest(
        self, own: ReadScope, text: str, where: ItemFilter, limit: int
    ) -> list[tuple[MemoryItem, float]]:
        """Active memories that are no raw turns with their cosines, the nearest first."""
        (vector,) = await self.embedder.embed([text], "passage", timeout_s=self.timeout_s)
        sub_query = SubQuery(name="known", limit=limit, dense=vector, tiers=where.tiers)
        (points,) = await self.index.query(own, where, [sub_query])
        scores = {point.point_id: point.score for point in _order(points)}
        found = await self.items.by_points(own, list(scores))
        near = [(item, scores[item.point_id]) for item in _facts(found)]
        return sorted(near, key=lambda one: -one[1])


def _is_learned(item: MemoryItem) -> bool:
    """Made here, of an exchange: what a person stored under the same tag is theirs."""
    source = item.source
    made = source.type is SourceType.ASSISTANT and source.tool_run_id is not None
    return made and LEARNED_TAG in item.tags


def _facts(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Active memories about the user that are no raw turns: what is learned is about the user, and
    what is known of somebody else says nothing of it."""
    return [
        i for i in items if i.status is Status.ACTIVE and subject_of(i) is None and not _is_turn(i)
    ]


def _is_turn(item: MemoryItem) -> bool:
    return EXCHANGE_TAG in item.tags or is_raw_exchange(item.text)


def _order(points: Sequence[ScoredPoint]) -> list[ScoredPoint]:
    return sorted(points, key=lambda point: (-point.score, point.point_id))


HELPER_OF: dict[Task, ports.HelperName] = {
    "outcome": "outcome_detection",
    "title": "conversation_title",
    "profile": "profile_detection",
    "fact": "fact_extraction",
    "summary": "history_summary",
}
# Least confidence of a model that two texts say one thing: that of every signal that counts.
SURE_MERGE = 0.7
# Texts that were before the assistant and are told to the model as known, at most.
TOLD_CONTEXT = 20
# Of fewer turns there is nothing to sum up.
LEAST_TURNS = 2
Versions = Callable[[ports.HelperName, ports.PromptLanguage], str]
WasJudged = Callable[[facts.LearnedExchange], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One exchange and what belongs to it. `item` None: it is no memory, or none any more."""

    exchange: facts.LearnedExchange
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
        return injected or facts.known_text(text, [item.text for item in self.shown])


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


@dataclass(eq=False)
class ExtractionPolicies:
    """The five tasks. Raises DependencyDown when something of ours is away.

    `judged`: whether a turn has its judgement already, from what was said after it.
    """

    models: ports.ModelPort
    queue: ExchangeQueue
    receipts: ReceiptReads
    known: KnownMemories
    conversations: ConversationStore
    versions: Versions
    judged: WasJudged

    def __post_init__(self) -> None:
        self.tasks: dict[Task, Callable[[Case], Awaitable[Decided]]] = {
            "outcome": self._outcome,
            "title": self._title,
            "profile": self._profile,
            "fact": self._fact,
            "summary": self._summary,
        }

    @property
    def enabled(self) -> bool:
        """Some helper may be asked."""
        return any(self.models.enabled(helper) for helper in HELPER_OF.values())

    def enabled_for(self, task: Task) -> bool:
        return self.models.enabled(HELPER_OF[task])

    async def decide(self, case: Case, task: Task) -> Decided:
        if not self.enabled_for(task):
            return Decided("off")
        if task != "outcome" and case.item is None:
            return Decided("no_memory")
        if task in ("profile", "fact") and takes_back(case.exchange.user_text):
            return Decided("forgotten")
        return await self.tasks[task](case)

    # --- outcome

    async def _outcome(self, case: Case) -> Decided:
        """The exchange before is judged, by what the user said next."""
        exchange = case.exchange
        if not history.has_reaction(exchange.user_text):
            return Decided("no_reaction")
        before = await self.queue.earlier(exchange.own, exchange, 1)
        if not before:
            return Decided("first_turn")
        return await self.judgement(exchange, before[0])

    async def judgement(
        self, exchange: facts.LearnedExchange, judged: facts.LearnedExchange
    ) -> Decided:
        """What the words of `exchange` say of the answer of `judged`; asked once."""
        if await self.judged(judged):
            return Decided("judged")
        if judged.memory_id is not None and not await self._still_kept(judged):
            return Decided("gone")
        receipt_id = await self._open_receipt(judged)
        if judged.memory_id is None and receipt_id is None:
            return Decided("nothing_to_judge")
        reply = await self._ask(
            exchange,
            "outcome",
            answers.OutcomeJudgement,
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

    async def _open_receipt(self, judged: facts.LearnedExchange) -> str | None:
        """The receipt of the judged turn, unless somebody said already how it went."""
        if judged.receipt_id is None:
            return None
        receipt = await self.receipts.get(judged.own, judged.receipt_id)
        judgeable = receipt is not None and receipt.scored_at is None and bool(receipt.shown)
        return judged.receipt_id if judgeable else None

    # --- what is learned

    async def _profile(self, case: Case) -> Decided:
        exchange = case.exchange
        known = await self.known.told(exchange)
        reply = await self._ask(
            exchange, "profile", answers.ProfileFindings, user_text=exchange.user_text, known=known
        )
        if reply.value is None:
            return _not_decided(reply)
        kept, refused = history.profile_of(
            reply.value.items, case.turn, case.echoes, made=self._making(case, "profile")
        )
        parts: list[dict[str, Any]] = []
        for one in kept:
            met = await self._says(case, one.text)
            if met is None:
                return UNSEEN
            if met.known:
                parts += met.also(exchange)
            else:
                parts.append((await self._replacing(case, one)).to_json())
        if parts:
            return Decided("kept", parts)
        return Decided("known" if kept else (refused[0] if refused else "nothing"))

    async def _fact(self, case: Case) -> Decided:
        exchange = case.exchange
        known = await self.known.told(exchange)
        reply = await self._ask(
            exchange,
            "fact",
            str,
            user_text=exchange.user_text,
            assistant_text=exchange.answer,
            known=[*known, *case.learned],
            context=case.context,
        )
        if reply.value is None:
            return _not_decided(reply)
        checked = facts.fact_of(reply.value, case.turn, case.echoes)
        if checked.text is None:
            return Decided(checked.reason)
        if facts.known_text(checked.text, case.learned):
            return Decided("known")
        met = await self._says(case, checked.text)
        if met is None:
            return UNSEEN
        if met.known:
            merged = await self._merge(case, met, checked.text)
            return merged if merged.part else Decided("known", met.also(exchange) or None)
        parents = tuple(item.trust for item in case.shown)
        made = self._making(case, "fact")
        fact = facts.placed_fact(checked.text, case.turn, parents, made=made)
        return Decided("kept", [(await self._replacing(case, fact)).to_json()])

    async def _replacing(self, case: Case, one: Learned) -> Learned:
        """The fact, with what it takes the place of. What cannot be seen is left as it is: two
        dated facts side by side lose nothing."""
        if slot_of(one.text) is None:
            return one
        exchange = case.exchange
        try:
            items = await self.known.around(exchange.user_id, one.text)
        except RayappError:
            return one
        return replace(one, supersedes=facts.replaced_by(one, items, exchange.at))

    async def _merge(self, case: Case, met: DuplicateMatch, line: str) -> Decided:
        """One text for a learned memory and the line that adds to it; else it stays as it is. The
        model only words it: a text that loses or adds a word is no merge."""
        other = met.learned if met.partly else None
        if other is None or not self.models.enabled("merge_duplicates"):
            return Decided("known")
        question = ports.ModelQuestion(
            helper="merge_duplicates",
            variables={"texts": [other.text, line]},
            answer=answers.MergedMemory,
            language=_language(case),
        )
        reply = await self.models.ask(case.exchange.user_id, question)
        if reply.value is None or not reply.value.same or reply.value.confidence < SURE_MERGE:
            return Decided("known")
        joined = facts.joined_text(reply.value.text, other.text, line)
        if joined.text is None:
            return Decided("known")
        merge = {"memory_id": other.memory_id, "text": joined.text, "version": other.version}
        return Decided("kept", [{"merge": merge}])

    # --- the conversation

    async def _title(self, case: Case) -> Decided:
        """Of the first turn, once: whoever claims a turn works on it alone."""
        exchange = case.exchange
        row = await self.conversations.get(exchange.own, exchange.conversation_id)
        if row is None or row.titled_by != "words":
            return Decided("named")
        before = (exchange.at, exchange.message_id)
        name = exchange.conversation_id
        if await self.conversations.turns(exchange.own, name, limit=1, before=before):
            return Decided("not_first")
        reply = await self._ask(
            exchange, "title", str, user_text=exchange.user_text, assistant_text=exchange.answer
        )
        if reply.value is None:
            return _not_decided(reply)
        title = model_title(reply.value, case.turn)
        return Decided("unusable") if title is None else Decided("kept", {"title": title})

    async def _summary(self, case: Case) -> Decided:
        """Bullets for the conversation as it grows: of those before, and of what came since."""
        exchange = case.exchange
        row = await self.conversations.get(exchange.own, exchange.conversation_id)
        if row is None or not history.summary_due(row.exchanges, row.summed):
            return Decided("not_due")
        most = min(history.MOST_TURNS, row.exchanges - row.summed)
        newest = await self.conversations.turns(exchange.own, row.conversation_id, limit=most)
        turns = await self._turns_left(newest)
        if len(turns) < LEAST_TURNS:
            return Decided("gone")
        if row.bullets:
            turns.insert(0, Turn(user="\n".join(row.bullets), assistant="", trust=1.0))
        messages = [
            message
            for turn in turns
            for message in (
                ports.Message("user", turn.user),
                ports.Message("assistant", turn.assistant),
            )
            if message.content
        ]
        reply = await self._ask(
            exchange, "summary", answers.HistorySummary, messages=messages, bullets=history.BULLETS
        )
        if reply.value is None:
            return _not_decided(reply)
        checked = history.summary_of(reply.value.bullets, turns)
        if checked.text is None:
            return Decided(checked.reason)
        part = {"bullets": checked.text.split("\n"), "summed": row.exchanges}
        return Decided("kept", part)

    async def _turns_left(self, newest: Sequence[KeptTurn]) -> list[Turn]:
        """Oldest first, without those that their user put away."""
        left = []
        for one in reversed(newest):
            item = await self.known.active(one.user_id, one.memory_id)
            if item is not None and not one.erased:
                left.append(Turn(user=one.question, assistant=one.answer, trust=item.trust))
        return left

    async def _still_kept(self, row: facts.LearnedExchange) -> bool:
        """Whether the memory of a turn is still there; else what it said leaves the queue."""
        if row.erased or row.memory_id is None:
            return False
        if await self.known.active(row.user_id, row.memory_id) is not None:
            return True
        await self.queue.erase(row)
        return False

    async def _says(self, case: Case, text: str) -> DuplicateMatch | None:
        """Whether the text is known; None = it cannot be seen, and the answer is lost."""
        try:
            return await self.known.says(case.exchange, text)
        except RayappError:
            return None

    # --- asking

    async def _ask(
        self,
        exchange: facts.LearnedExchange,
        task: Task,
        wanted: type[ports.T],
        /,
        **variables: Any,
    ) -> ports.ModelReply[ports.T]:
        question = ports.ModelQuestion(
            helper=HELPER_OF[task],
            variables=variables,
            answer=wanted,
            language=ports.prompt_language(exchange.user_text),
        )
        return await self.models.ask(exchange.user_id, question)

    def _making(self, case: Case, task: Task) -> facts.Making:
        return facts.Making(case.exchange, self.versions(HELPER_OF[task], _language(case)))


def _turn(exchange: facts.LearnedExchange, item: MemoryItem | None) -> Turn:
    trust = item.trust if item else 0.0
    return Turn(user=exchange.user_text, assistant=exchange.answer, trust=trust)


def _language(case: Case) -> ports.PromptLanguage:
    return ports.prompt_language(case.exchange.user_text)


def _not_decided(reply: ports.ModelReply[Any]) -> Decided:
    """Off and an empty budget are final: nothing is learned then. All else is tried again."""
    why = reply.why or "invalid"
    if why in ("off", "budget"):
        return Decided(why)
    return Decided(why, wait="away" if why in ("breaker", "ledger") else "tried")
