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


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one conversation of a user has seen.

    Attributes:
        injected: fingerprints of the texts that were put before the assistant, newest last.
        exchanges: stored turns.
        owed_message: the assistant's message that still waits for a record_response.
        owed_receipt: the receipt that such a response would be about.
        refinements: searches that the assistant made itself in the turn `turn_id`.
    """

    user_id: str
    conversation_id: str
    updated_at: datetime
    injected: tuple[str, ...] = ()
    exchanges: int = 0
    owed_message: str | None = None
    owed_receipt: str | None = None
    turn_id: str | None = None
    refinements: int = 0


class SessionStore(Protocol):
    """`sessions`: one row per user and conversation, removed some days after the last word."""

    async def get(self, scope: ReadScope, conversation_id: str) -> Session | None: ...
    async def remember_injected(
        self, scope: WriteScope, conversation_id: str, fingerprints: Sequence[str], at: datetime
    ) -> None:
        """Add fingerprints, each once; the oldest go beyond `MAX_INJECTED`. Atomic."""
        ...

    async def owe(
        self,
        scope: WriteScope,
        conversation_id: str,
        message_id: str | None,
        receipt_id: str | None,
        at: datetime,
    ) -> None:
        """The message that waits for a score; None: none does any more."""
        ...

    async def count_exchange(self, scope: WriteScope, conversation_id: str, at: datetime) -> int:
        """One stored turn more; how many there are now."""
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
    """One call of a helper, for the ledger of a user. `cost`: in the currency of the settings."""

    user_id: str
    helper: str
    model: str
    prompt_version: str
    at: datetime
    usage: ChatUsage = field(default_factory=ChatUsage)
    cost: float = 0.0
    ok: bool = True
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotal:
    """Sums over a time. `by_helper`: name of the helper -> (calls, tokens, cost)."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    by_helper: dict[str, tuple[int, int, float]] = field(default_factory=dict)


class UsageStore(Protocol):
    """The ledger of model calls; rows live for 90 days."""

    async def add(self, row: UsageRow) -> None: ...
    async def total(self, scope: ReadScope, since: datetime) -> UsageTotal: ...
