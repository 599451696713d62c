"""The seams of the assistant's side: conversations, language models, and what they cost.

Errors: an implementation raises only classes of `rayapp.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from rayapp.domain.context.records import Message
from rayapp.domain.scope import ReadScope, WriteScope
from rayapp.domain.stream_events import StreamEvent, StreamKind

# Turns of a conversation whose scores are kept; older ones count as unknown.
MAX_TURNS = 200
# Fingerprints of a conversation: some 40 KB, and about the last three full blocks of context.
MAX_INJECTED = 4_000


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
class ScoreGiven:
    """What a score is about; None = not named. `score`: -1, 0 or 1, None = by another way.

    Without a message it is about the turn that owes one, in that conversation, or with that
    receipt. At least one of the three is named.
    """

    at: datetime
    conversation_id: str | None = None
    message_id: str | None = None
    receipt_id: str | None = None
    score: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one conversation of a user has seen.

    Attributes:
        injected: fingerprints of the texts that were put before the assistant, newest last.
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


class SessionStore(Protocol):
    """`sessions`: one row per user and conversation, removed some days after the last word."""

    async def get(self, scope: ReadScope, conversation_id: str) -> Session | None: ...
    async def by_message(self, scope: ReadScope, message_id: str) -> Session | None:
        """The session that holds the turn of this message, the newest of several."""
        ...

    async def remember_injected(
        self,
        scope: WriteScope,
        conversation_id: str,
        fingerprints: Sequence[str],
        at: datetime,
        receipt_id: str | None = None,
    ) -> None:
        """Add fingerprints, each once; the oldest go beyond `MAX_INJECTED`. Atomic.

        `receipt_id` becomes that of the newest context; None too, for it has none then.
        """
        ...

    async def add_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> bool:
        """One stored turn more; it owes a score when `required`. Atomic.

        False, with nothing changed, when the message is known.
        """
        ...

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        """A score was given: its turn is marked, and owes nothing any more. Atomic.

        False when no kept turn fits.
        """
        ...

    async def refine(
        self, scope: WriteScope, conversation_id: str, turn_id: str, at: datetime
    ) -> int:
        """One search of the assistant in this turn more; how many it made in this turn."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatUsage:
    """What one answer cost. Tokens as the endpoint counts them, else estimated by length."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """`finish`: what the endpoint says it ended for (`stop`, `length`, ...)."""

    text: str
    finish: str
    usage: ChatUsage
    model: str


class ChatModel(Protocol):
    """A chat model behind an OpenAI-compatible endpoint.

    Raises DependencyDown (away, broken, refuses), DeadlineExceeded (too slow), InvalidInput
    (the endpoint refuses this request).
    """

    @property
    def model(self) -> str: ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float,
        timeout_s: float,
        json_schema: dict[str, Any] | None = None,
    ) -> ChatAnswer:
        """One answer. `json_schema` asks for JSON; an endpoint may ignore it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """One call of a helper, for the ledger of a user. `cost`: in the currency of the settings.

    `ask_id`: the same for both tries of one question. `answered`: the model said something.
    """

    user_id: str
    helper: str
    model: str
    prompt_version: str
    at: datetime
    usage: ChatUsage = field(default_factory=ChatUsage)
    cost: float = 0.0
    ok: bool = True
    duration_ms: float = 0.0
    ask_id: str = ""
    answered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotal:
    """Sums over a time. `by_helper`: name of the helper -> (calls, tokens, cost)."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    by_helper: dict[str, tuple[int, int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallSeen:
    """One call of a helper: `ok` when its answer could be used, `answered` when there was one."""

    helper: str
    ok: bool
    user_id: str = ""
    ask_id: str = ""
    answered: bool = True


class UsageStore(Protocol):
    """The ledger of model calls; rows live for 90 days."""

    async def add(self, row: UsageRow) -> None: ...
    async def total(self, scope: ReadScope, since: datetime) -> UsageTotal: ...
    async def recent(self, since: datetime, limit: int) -> list[CallSeen]:
        """The last calls of all processes and users since then, the newest first."""
        ...


class EventFeed(Protocol):
    """An open look at the events of one user. It must be closed."""

    @property
    def position(self) -> str:
        """Everything before it was told; it moves on without events too."""
        ...

    async def next(self) -> StreamEvent | None:
        """The next event; None after `poll_s` seconds without one."""
        ...

    async def close(self) -> None: ...


class EventStream(Protocol):
    """Changes of the truth as they happen, in the order in which they were committed."""

    async def open(
        self,
        scope: ReadScope,
        *,
        after: str | None,
        kinds: frozenset[StreamKind],
        poll_s: float,
    ) -> EventFeed:
        """Listen from `after` on, None: from now. Events of `StreamKind.JOB` are of all users.

        Raises:
            NotFound: code `position_lost`: `after` is none of ours, or too old to go on from.
        """
        ...
