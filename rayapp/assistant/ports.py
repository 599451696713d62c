"""The seams of the assistant: conversations, personalities, stored exchanges, its services.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.personality.rules import Checked, Template, TemplateLibrary
from rayapp.learning.ports import ScoredSessions
from rayapp.learning.records import ToolRun
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier


class PersonalityStore(Protocol):
    """`personality`: one row per user, with the templates it wrote and the one in use."""

    async def library(self, scope: ReadScope) -> TemplateLibrary:
        """Empty, with nothing in use, for a user who never chose."""

    async def put(self, scope: WriteScope, template: Template, *, activate: bool) -> bool:
        """Save a template under its id, and use it when `activate`; whether it replaced one.

        Conflict, code `personality_full`, when it would be one more than a user may keep.
        """

    async def activate(self, scope: WriteScope, template_id: str, at: datetime) -> None:
        """Use a template. The caller knows that it exists."""

    async def delete(self, scope: WriteScope, template_id: str) -> bool:
        """Forget a template, unless it is in use or not there; whether it was."""


# Models that one user may give a window of their own.
MAX_WINDOWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWindow:
    """What somebody set instead of the table. `model`: its name as `prompt.rules.plain_name`.

    everybody: an operator set it, for all users who have none of their own.
    """

    model: str
    name: str
    tokens: int
    at: datetime
    everybody: bool = False


class WindowStore(Protocol):
    """`model_windows`: one row per user and model; an operator's belong to the shared user."""

    async def windows(self, scope: ReadScope) -> list[OwnWindow]:
        """The user's, then an operator's; each by name."""

    async def put(self, scope: WriteScope, window: OwnWindow) -> None:
        """Raises Conflict, code `windows_full`, when it would be one more than may be kept."""

    async def delete(self, scope: WriteScope, model: str, *, everybody: bool) -> bool:
        """Whether there was one."""


# Turns of a conversation whose scores are kept; older ones count as unknown.
MAX_TURNS = 200
# Fingerprints of a conversation, characters: three to six full blocks of context, or ten to twenty
# usual ones.
MAX_INJECTED_CHARS = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A stored turn, and whether it was scored.

    Attributes:
        memory_id: the memory that holds it.
        required: its assistant owes a score.
        receipt_id: what the answer was given with.
        scored_at, score: of the newest score; `score` is None when it was not a thumb.
    """

    message_id: str
    memory_id: str
    at: datetime
    required: bool = False
    receipt_id: str | None = None
    scored_at: datetime | None = None
    score: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one conversation of a user has seen; its row also holds a `Conversation` from the first
    kept turn on.

    Attributes:
        injected: fingerprints of the contexts that were put before the assistant, those of one
            joined; newest last.
        receipt_id: of the context that was put before the assistant last.
        exchanges: stored turns.
        turns: the last of them, oldest first, at most `MAX_TURNS`.
        owed_message: the assistant's message that still waits for a record_response.
        owed_receipt: the receipt that such a response would be about.
        refinements: searches that the assistant made itself in the turn `turn_id`.
    """

    user_id: str
    conversation_id: str
    updated_at: datetime
    injected: tuple[str, ...] = ()
    receipt_id: str | None = None
    exchanges: int = 0
    turns: tuple[TurnRecord, ...] = ()
    owed_message: str | None = None
    owed_receipt: str | None = None
    turn_id: str | None = None
    refinements: int = 0

    def turn(self, message_id: str) -> TurnRecord | None:
        """The kept turn of this message."""
        return next((one for one in self.turns if one.message_id == message_id), None)


@dataclass(frozen=True, slots=True)
class InjectedContext:
    """A context that was put before the assistant: fingerprints of its texts, joined, and its
    receipt."""

    conversation_id: str
    fingerprints: str
    at: datetime
    receipt_id: str | None = None


class SessionStore(ScoredSessions, Protocol):
    """`sessions`: one row per user and conversation. One without a kept turn is removed some days
    after its last context; one with turns stays until it is deleted."""

    async def get(self, scope: ReadScope, conversation_id: str) -> Session | None: ...
    async def by_message(self, scope: ReadScope, message_id: str) -> Session | None:
        """The session that holds the turn of this message, the newest of several."""

    async def log_injected(self, scope: WriteScope, context: InjectedContext) -> None:
        """Add the fingerprints of one context, equal ones once; beyond `MAX_INJECTED_CHARS` the
        older half of the contexts goes. Atomic.

        Its receipt becomes that of the newest context; None too, for it has none then.
        """

    async def add_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> bool:
        """One stored turn more; it owes a score when `required`. Atomic.

        False, with nothing changed, when the message is known.
        """

    async def replace_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> None:
        """The turn in the place of the kept one of its message; it owes a score when `required`,
        and whatever the earlier one owed is paid."""

    async def refine(
        self, scope: WriteScope, conversation_id: str, turn_id: str, at: datetime
    ) -> int:
        """One search of the assistant in this turn more; how many it made in this turn."""


# Who gave a conversation its title. A person's is never replaced, a model's only by a person.
TitledBy = Literal["words", "model", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a list shows of one.

    Attributes:
        last_at: of its newest turn.
        exchanges: kept turns; each is a question and an answer.
        active_at: when somebody switched to it last.
        bullets: what a model said of its first `summed` turns, each a line.
    """

    user_id: str
    conversation_id: str
    title: str
    titled_by: TitledBy
    created_at: datetime
    last_at: datetime
    exchanges: int = 0
    active_at: datetime | None = None
    bullets: tuple[str, ...] = ()
    summed: int = 0


@dataclass(frozen=True, slots=True)
class Citation:
    """A memory that an answer was given with, and the position that it had there."""

    memory_id: str
    tier: Tier
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTurn:
    """A question and its answer as a person may read them again.

    Attributes:
        memory_id: the memory that holds the turn.
        tools: called for the answer, each call once; `runs`: what became of calls.
        citations: what the answer was given with, under `receipt_id`.
        edited_at: when the same message came again with other words; None = never.
        feedback: what a person wrote with their thumb, the newest.
        interrupted: the answer broke off and holds what had come, or nothing.

    One whose memory was deleted has no words: it only holds its place.
    """

    user_id: str
    conversation_id: str
    message_id: str
    question: str
    answer: str
    at: datetime
    memory_id: str
    model: str | None = None
    tools: tuple[str, ...] = ()
    runs: tuple[ToolRun, ...] = ()
    citations: tuple[Citation, ...] = ()
    receipt_id: str | None = None
    edited_at: datetime | None = None
    feedback: str | None = None
    interrupted: bool = False

    @property
    def erased(self) -> bool:
        return not (self.question or self.answer)


# A place in a list that is sorted by time and, among equal times, by id.
Place = tuple[datetime, str]


class ConversationStore(Protocol):
    """`sessions` and `turns`: the words of each kept turn, until its conversation is deleted."""

    async def keep(self, scope: WriteScope, turn: KeptTurn, title: str) -> None:
        """Keep a turn in place of an earlier one of its message. The first turn of a conversation
        makes it one, with this title. Harmless to repeat."""

    async def turn(
        self, scope: ReadScope, conversation_id: str, message_id: str
    ) -> KeptTurn | None: ...

    async def get(self, scope: ReadScope, conversation_id: str) -> Conversation | None:
        """None too for one of which no turn was kept."""

    async def page(
        self, scope: ReadScope, *, limit: int, before: Place | None = None
    ) -> list[Conversation]:
        """Those whose last turn is newest first; `before`: (last_at, conversation id)."""

    async def turns(
        self, scope: ReadScope, conversation_id: str, *, limit: int, before: Place | None = None
    ) -> list[KeptTurn]:
        """Newest first; `before`: (at, message id)."""

    async def find(
        self, scope: ReadScope, words: Sequence[Sequence[int]], limit: int
    ) -> list[KeptTurn]:
        """The newest turn of each conversation that has one with all these words, newest first.

        A word is the terms of its readings (`history.rules.search_words`): one of them must fit.
        """

    async def name(self, scope: WriteScope, conversation_id: str, title: str, by: TitledBy) -> bool:
        """Give a title. A model's only replaces first words; False when it does not, or there is
        no such conversation."""

    async def comment(
        self, scope: WriteScope, conversation_id: str, message_id: str, feedback: str
    ) -> bool:
        """Keep what a person wrote about an answer; False when no turn with words fits."""

    async def sum_up(
        self, scope: WriteScope, conversation_id: str, bullets: Sequence[str], summed: int
    ) -> bool:
        """Keep bullets over so many turns; False when there are some over as many, or no such
        conversation."""

    async def untell(self, scope: WriteScope, conversation_id: str, title: str | None) -> None:
        """Drop the bullets, which tell of words that are not said any more. `title`: first words,
        in place of what was made of earlier ones; a person's stays."""

    async def activate(self, scope: WriteScope, conversation_id: str | None, at: datetime) -> None:
        """It is the one that its user is in, from now on; None: they are in none."""

    async def active(self, scope: ReadScope) -> str | None:
        """Id of the conversation that was switched to last."""

    async def purge(self, point_ids: Sequence[str]) -> None:
        """Blank the turns that these memories held: their words are gone for good."""

    async def forget(self, scope: WriteScope, conversation_id: str) -> Mapping[str, int]:
        """Remove its rows that are neither memories nor outcomes, its own last: turns, receipts,
        what waits to be learned, what was noted of it; how many, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Personality:
    """A template that can be used, and what is in it."""

    template: Template
    checked: Checked


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPersonality:
    """`overwritten`: a template of the same name was there before."""

    personality: Personality
    overwritten: bool
    activated: bool


# How the work on an exchange ended. `skipped`: nothing was to be asked; `failed`: tried enough.
WorkEnd = Literal["done", "skipped", "failed"]
# A reaction or a summary a week later is about nothing, and the texts of a user lie here a second
# time. Our choice.
EXCHANGE_TTL_S = 7 * 86_400
# What takes the place of an older turn waits so long at least, or it would never be heard.
REPLACED_TTL_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedExchange:
    """`plan`: what was decided about it so far, as plain JSON. `attempts`: tries that failed."""

    exchange: LearnedExchange
    attempts: int = 0
    plan: Mapping[str, Any] = field(default_factory=dict)


class ExchangeSink(Protocol):
    """Where the hook leaves a turn."""

    async def offer(self, scope: WriteScope, exchange: LearnedExchange) -> bool:
        """Queue a turn, once per conversation and message; False when it was queued before.

        Raises Forbidden when it is not the scope's own.
        """

    async def replace(self, scope: WriteScope, exchange: LearnedExchange) -> None:
        """Queue a turn in the place of the one of its message, whatever became of that. Whoever
        works on the earlier one has lost its claim. It lives for a day at least, however old the
        turn is. Raises Forbidden as `offer` does."""


class ExchangeQueue(ExchangeSink, Protocol):
    """`exchanges`: each turn is worked on once, by whoever claims it. Rows live for a week.

    Whoever has lost its claim changes nothing: `keep`, `finish` and `again` answer False then.
    """

    async def claim(
        self, *, token: str, limit: int, claim_s: float, per_user: int | None = None
    ) -> list[ClaimedExchange]:
        """Take what is due for `claim_s` seconds; takes over expired.

        One turn of each user in turn, each user's oldest first, at most `per_user` of one; none of
        a user whose earlier turn is being worked on or was put back and is not due.
        The next claim goes on behind the last user of this one, so nobody's backlog is in the way.
        """

    async def keep(self, exchange: LearnedExchange, token: str, plan: Mapping[str, Any]) -> bool:
        """Keep what was decided, before it is done: a crash repeats the doing, not the deciding."""

    async def finish(
        self, exchange: LearnedExchange, token: str, end: WorkEnd, notes: Mapping[str, str]
    ) -> bool:
        """The turn is not looked at again, and its plan is dropped.

        `notes`: what came of it, by task; no text of users.
        """

    async def again(
        self, exchange: LearnedExchange, token: str, *, delay_s: float, error: str, blamed: bool
    ) -> bool:
        """Try again later. `blamed` False: something was away, and the try does not count."""

    async def earlier(
        self, scope: ReadScope, exchange: LearnedExchange, limit: int
    ) -> list[LearnedExchange]:
        """The turns of its conversation before it, the newest first."""

    async def erase(self, exchange: LearnedExchange) -> None:
        """Its memory is gone: so are its texts and its plan, and nobody works on it any more.

        The row stays, so that no other turn is taken for the one before the next message.
        """

    async def purge(self, point_ids: Sequence[str]) -> None:
        """Erase the turns that these memories held, as `erase` does."""

    async def skip_waiting(self, why: str, limit: int) -> int:
        """End so many waiting turns without looking at them; how many there were."""

    async def waiting(self) -> int:
        """Turns that are not finished, of all users."""
