"""Bodies and answers of what prepares an assistant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from rayapp.assistant.context.records import ContextRequest
from rayapp.inference.ports import Message, Role
from rayapp.wire.bases import MAX_PAGE, Answer, EstimateView, Flag, Lenient, Name, OneOrMore, Whole
from rayapp.wire.client_answers import BuiltIn

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


# Shapes of the answers that prepare an assistant.


class InsightConcept(Answer):
    """A concept of the question."""

    concept_id: str
    label: str
    type: str


class TierAdviceView(Answer):
    """How well these concepts were answered in a tier; every tier is searched all the same."""

    tier: str
    wilson_score: float
    uses: int
    advised: bool


class ExperienceView(Answer):
    """A memory that helped or failed before, and what is known of why."""

    memory_id: str
    tier: str
    content: str
    text_preview: str
    outcome: str
    concept: str
    reason: str
    uses: int
    success_rate: float
    wilson_score: float
    success_estimate: EstimateView
    at: datetime


class ActionAdviceView(Answer):
    """How an action did in this kind of context."""

    action: str
    context_type: str
    uses: int
    success_rate: float
    wilson_score: float
    advice: str


class SolutionView(Answer):
    """The memory that solved this problem before."""

    memory_id: str
    tier: str
    content: str
    wilson_score: float


class InsightsAnswer(Answer):
    """What the graphs know of a question."""

    success: Literal[True]
    query: str
    language: str
    context_type: str
    concepts: list[InsightConcept]
    active_concepts: list[str]
    matched_concepts: list[str] = Field(description="Those that a graph knows.")
    tier_recommendations: list[TierAdviceView]
    relevant_patterns: list[ExperienceView]
    past_failures: list[ExperienceView]
    action_stats: list[ActionAdviceView]
    topic_continuity: list[str]
    repeated_question: str | None
    known_solution: SolutionView | None
    directives: list[str]
    meta: BuiltIn
    degraded: list[str]


class TraceView(Answer):
    """The reason as a sentence in both languages."""

    he: str
    en: str


class GatingView(Answer):
    """Which of the offered tools may be called, and why."""

    allowed_tools: list[str] | None = Field(
        description="Of the tools that the request names; null: it names none."
    )
    reduced_count: int
    reason_code: str
    trace_explanation: TraceView


class TaskView(Answer):
    """What kind of turn the question is."""

    complexity: str
    context_type: str
    language: str
    intent: str
    limit: int


class _BesideText(Answer):
    """What the context of a question says beside its text.

    `receipt_id` is what outcomes and MEM marks refer to.
    """

    success: Literal[True]
    etag: str = Field(description="Of the stable part; also the header `ETag`.")
    receipt_id: str | None
    tokens: int
    left_out: list[str] = Field(description="Memories that did not fit into the budget.")
    task: TaskView
    gating: GatingView
    degraded: list[str]


class ContextAnswer(_BesideText):
    """The context of one question. Stable and volatile text are one block, in this order."""

    latency_ms: float
    confidence: str
    stable_text: str | None = Field(
        description="Equal until one of its memories changes; null unless include_context."
    )
    volatile_text: str | None = Field(description="The rest of the block.")
    memory_meta: dict[str, Any] = Field(
        description="MemoryMetaV1, to be kept with the message: lines, citations, debug. A "
        "conversation or a message that was not named is null."
    )


class PrefetchAnswer(_BesideText):
    """The same in the first client's names."""

    latencyMs: float
    retrievalConfidence: str
    retrievalDebug: dict[str, Any]
    memoryContextInjection: str | None = Field(
        description="The whole block; null unless includeContext, or when nothing is known."
    )
    memoryMeta: dict[str, Any] = Field(description="MemoryMetaV1.")


class ColdMemory(Answer):
    """One memory of a cold start."""

    position: int
    memory_id: str
    tier: str
    content: str


class ColdStartAnswer(Answer):
    """What is known of the user. `text` is empty when nothing is."""

    success: Literal[True]
    text: str
    memories: list[ColdMemory]
    count: int
    receipt_id: str | None
    meta: BuiltIn
    degraded: list[str]
