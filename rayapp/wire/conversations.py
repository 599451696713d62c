"""Kept conversations over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from rayapp.wire import bases

if TYPE_CHECKING:
    from rayapp.assistant.history.service import ConversationPage, Exported, Switched, TurnPage
    from rayapp.assistant.ports import Conversation, KeptTurn

MAX_TITLE_CHARS = 200
MAX_QUERY_CHARS = 500
PAGE = 50
# Messages of one answer; those of a conversation when it is opened.
MOST_MESSAGES, RESTORED = 400, 20


class ConversationsQuery(bases.Lenient):
    """Which conversations."""

    aliases: ClassVar = {"q": "query"}
    limit: int = Field(PAGE, ge=1, le=bases.MAX_PAGE, description="Newest first.")
    cursor: str | None = bases.optional("`next_cursor` of the page before.")
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)] | None = bases.optional(
        "Only those of which one turn has all these words; without a cursor."
    )


class MessagesQuery(bases.Lenient):
    """Which messages."""

    limit: int = Field(
        RESTORED, ge=1, le=MOST_MESSAGES, description="The newest; a turn is never cut in two."
    )
    cursor: str | None = bases.optional("`next_cursor`: the messages before those.")


class SwitchBody(bases.Lenient, bases.Keyed):
    """Where the user goes."""

    aliases: ClassVar = bases.camel("conversation_id")
    conversation_id: bases.Name | None = bases.optional(
        "The conversation that is open from now on; absent: none is."
    )


class RenameBody(bases.Lenient, bases.Keyed):
    """A title of one's own."""

    title: Annotated[bases.Label, Field(min_length=1, max_length=MAX_TITLE_CHARS)] = Field(
        description="It is never replaced by a model's."
    )


class ConversationView(bases.Answer):
    """One conversation of a list. `match`: the beginning of the turn that a search found."""

    conversation_id: str
    title: str
    titled_by: Literal["words", "model", "person"]
    created_at: datetime
    updated_at: datetime = bases.path("last_at", description="Of its newest turn.")
    turns: int = bases.path("exchanges")
    message_count: int
    active: bool
    match: str | None = bases.Absent

    @classmethod
    def from_row(cls, row: Conversation, active: str | None, found: KeptTurn | None = None) -> Self:
        return cls.of(
            row,
            message_count=2 * row.exchanges,
            active=row.conversation_id == active,
            match=bases.preview(f"{found.question} {found.answer}".strip()) if found else None,
        )


class ConversationsAnswer(bases.Success):
    """Conversations, the newest first."""

    conversations: tuple[ConversationView, ...]
    active: str | None = Field(description="The one that was switched to last.")
    next_cursor: str | None

    @classmethod
    def from_page(cls, page: ConversationPage) -> Self:
        return cls.of(
            page,
            conversations=tuple(
                ConversationView.from_row(row, page.active, page.hits.get(row.conversation_id))
                for row in page.conversations
            ),
        )


class CitedMemory(bases.Answer):
    """A memory that the answer was given with."""

    memory_id: str
    tier: bases.TierWord
    position: int


class ToolRunView(bases.Answer):
    """One call of a tool for the answer."""

    name: str
    run_id: str | None
    ok: bool
    timeout: bool
    error_type: str | None
    latency_ms: float | None


class StoredMessage(bases.Answer):
    """One message. What stands below `at` is of the assistant's alone.

    `content` null: the memory of the turn was deleted, and its words with it.
    """

    message_id: str
    role: Literal["user", "assistant"]
    content: str | None
    at: datetime
    edited_at: datetime | None = bases.Absent
    model: str | None = bases.Absent
    tools: tuple[str, ...] | None = bases.Absent
    tool_runs: tuple[ToolRunView, ...] | None = bases.Absent
    citations: tuple[CitedMemory, ...] | None = bases.Absent
    receipt_id: str | None = bases.Absent
    memory_id: str | None = bases.Absent
    score: int | None = bases.Absent
    feedback: str | None = bases.Absent
    interrupted: bool | None = bases.absent("The answer broke off: this is what had come of it.")

    @classmethod
    def pair(cls, turn: KeptTurn, score: int | None, documents: bool) -> tuple[Self, Self]:
        """The question and its answer."""
        gone = turn.erased
        asked = cls(
            role="user",
            content=None if gone else turn.question,
            message_id=turn.message_id,
            at=turn.at,
            edited_at=turn.edited_at,
        )
        answered = cls.of(
            turn,
            documents,
            role="assistant",
            content=None if gone else turn.answer,
            tool_runs=turn.runs or None,
            score=score,
            interrupted=turn.interrupted or None,
        )
        return asked, answered


def _messages(page: TurnPage, documents: bool) -> tuple[StoredMessage, ...]:
    return tuple(
        one
        for turn in page.turns
        for one in StoredMessage.pair(turn, page.scores.get(turn.message_id), documents)
    )


class ConversationAnswer(bases.Success):
    """One conversation."""

    conversation: ConversationView


class MessagesAnswer(bases.Success):
    """Messages, oldest first; `next_cursor` leads to older ones."""

    conversation_id: str
    title: str
    messages: tuple[StoredMessage, ...]
    next_cursor: str | None

    @classmethod
    def from_page(cls, page: TurnPage, documents: bool) -> Self:
        return cls.of(
            page,
            conversation_id=page.conversation.conversation_id,
            title=page.conversation.title,
            messages=_messages(page, documents),
        )


class SwitchedAnswer(bases.Written):
    """Where the user is now, with the last messages; none of a conversation that is new."""

    conversation_id: str | None
    previous: str | None
    exists: bool
    title: str | None
    messages: tuple[StoredMessage, ...]

    @classmethod
    def from_switched(cls, found: Switched, documents: bool) -> Self:
        page = found.restored
        return cls.of(
            found,
            exists=page is not None,
            title=page.conversation.title if page else None,
            messages=_messages(page, documents) if page else (),
        )


class RenamedAnswer(bases.Written):
    """The conversation under its title."""

    conversation: ConversationView


class ForgottenAnswer(bases.Written):
    """What went with the conversation, by kind."""

    conversation_id: str
    removed: Mapping[str, int]


class LearnedView(bases.Answer):
    """A memory that was stored or learned in the conversation."""

    memory_id: str
    tier: bases.TierWord
    text: str
    status: str
    tags: tuple[str, ...]
    created_at: datetime


class ConversationExport(bases.Success):
    """A conversation with everything that is kept of it; `complete` false: it is longer."""

    conversation: ConversationView
    messages: tuple[StoredMessage, ...]
    memories: tuple[LearnedView, ...]
    complete: bool

    @classmethod
    def from_exported(cls, found: Exported, documents: bool) -> Self:
        row = found.page.conversation
        return cls.of(
            found,
            documents,
            conversation=ConversationView.from_row(row, None),
            messages=_messages(found.page, documents),
        )
