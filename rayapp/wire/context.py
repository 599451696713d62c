"""Body of a prefetch, and what a cold start takes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from rayapp.assistant.context.records import ContextRequest
from rayapp.inference.ports import Message, Role
from rayapp.wire.bases import MAX_PAGE, Flag, Lenient, Name, OneOrMore, Whole

PREFETCH_ALIASES = {
    "conversationId": "conversation_id",
    "messageId": "message_id",
    "recentMessages": "recent_messages",
    "hasDocuments": "has_documents",
    "includeDataGov": "include_datagov",
    "tokenBudget": "token_budget",
    "includeContext": "include_context",
}
COLD_START_ALIASES = {"conversationId": "conversation_id"}
# Messages and tools of one turn: more than any conversation sends, few enough to read.
MAX_MESSAGES = 200
MAX_TOOLS = 500
MAX_BUDGET = 100_000
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}


# "human" is what some programs call the user.
_KNOWN_ROLES = frozenset({"user", "human", *_ROLES})


def _role(value: object) -> object:
    return _ROLES.get(value.lower(), "user") if isinstance(value, str) else value


def _known_role(value: object) -> object:
    if isinstance(value, str) and value.lower() not in _KNOWN_ROLES:
        names = "user, assistant, system, tool, function, developer"
        raise ValueError(f"must be one of {names}")
    return _role(value)


def _text_of(value: object) -> object:
    """Content as text; chat programs also send a list of parts."""
    if isinstance(value, list):
        parts = [part.get("text", "") for part in value if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    return "" if value is None else value


class ChatMessage(Lenient):
    """One message of the conversation."""

    role: Annotated[Literal["system", "user", "assistant", "tool"], BeforeValidator(_role)] = Field(
        "user", description="Who said it; an unknown role counts as the user."
    )
    content: Annotated[str, BeforeValidator(_text_of)] = Field(
        "", description="What was said; a list of parts gives the text of them."
    )


class TurnMessage(ChatMessage):
    """One message of a turn that is kept: who said it decides what is stored."""

    role: Annotated[
        Literal["system", "user", "assistant", "tool"], BeforeValidator(_known_role)
    ] = Field(
        "user", description="Who said it: user, assistant, system, tool, function or developer."
    )


def _messages(value: object) -> object:
    if not isinstance(value, list | tuple):
        return value
    return [{"content": one} if isinstance(one, str) else one for one in value]


Messages = Annotated[
    tuple[ChatMessage, ...],
    BeforeValidator(_messages),
    Field(max_length=MAX_MESSAGES),
]
ToolNames = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
    OneOrMore,
    Field(max_length=MAX_TOOLS),
]


class PrefetchBody(Lenient):
    """A question, the conversation it comes from, and how much context there is room for."""

    query: str = Field(min_length=1, description="The question, in any language.")
    conversation_id: Name | None = Field(
        None, description="For continuity and repetition; kept in the receipt."
    )
    message_id: Name | None = Field(None, description="Of the answer that this is for.")
    recent_messages: Messages = Field(
        (), description="The last messages, oldest first; a text alone is the user's."
    )
    has_documents: Flag = Field(
        False, description="Documents stand beside the question: fewer memories are searched for."
    )
    include_datagov: Flag | None = Field(
        None, description="Also search open data; when absent, the words of the question decide."
    )
    token_budget: Annotated[Whole, Field(gt=0, le=MAX_BUDGET)] | None = Field(
        None, description="Tokens of the whole block; context.token_budget when absent."
    )
    limit: Annotated[Whole, Field(ge=1, le=MAX_PAGE)] | None = Field(
        None, description="Hits to search for, search.max_limit at most; estimated when absent."
    )
    include_context: Flag = Field(False, description="Answer with the text block.")
    tools: ToolNames = Field((), description="Names of the tools offered in this turn.")

    def request(self, principal: str) -> ContextRequest:
        return ContextRequest(
            query=self.query,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
            recent=recent_of(self.recent_messages, self.query),
            has_documents=self.has_documents,
            include_datagov=self.include_datagov,
            token_budget=self.token_budget,
            limit=self.limit,
            tools=self.tools,
            principal=principal,
        )


class ColdStartBody(Lenient):
    """The conversation that begins."""

    conversation_id: Name | None = Field(None, description="Kept in the receipt.")


def recent_of(messages: tuple[ChatMessage, ...], query: str) -> tuple[Message, ...]:
    """The messages before the question: programs often send the question among them."""
    found = tuple(Message(role=one.role, content=one.content) for one in messages)
    if found and found[-1].role == "user" and found[-1].content.strip() == query.strip():
        return found[:-1]
    return found
