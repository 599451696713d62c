"""What prepares an assistant, over HTTP: insights, the context of a question, a cold start."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from rayapp.wire import bases

if TYPE_CHECKING:  # programs that only have the client need not hold what these import
    from rayapp.assistant.records import AssistantContext, ColdStart, GatingDecision
    from rayapp.graphs.records import ContextInsights
    from rayapp.inference.ports import Role

# Of a conversation, far more than topic continuity looks at.
MAX_RECENT = 50
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


class ChatMessage(bases.Lenient):
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


def one_per_message(value: object) -> object:
    """A text alone is a message of the user."""
    if not isinstance(value, list | tuple):
        return value
    return [{"content": one} if isinstance(one, str) else one for one in value]


def _last_ones(value: object) -> object:
    return value[-MAX_MESSAGES:] if isinstance(value, list | tuple) else value


# Of a conversation of any length only the end is read.
Messages = Annotated[
    tuple[ChatMessage, ...], BeforeValidator(one_per_message), BeforeValidator(_last_ones)
]


def _in_budget(value: int) -> int:
    return min(value, MAX_BUDGET)


ToolNames = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
    bases.OneOrMore,
    Field(max_length=MAX_TOOLS),
]


class MessageBody(bases.Lenient):
    """One message of the conversation."""

    role: Annotated[str, Field(max_length=64)] = Field("user", description="Who said it.")
    content: str = Field(description="What was said.")


class InsightsBody(bases.Strict):
    """A question, and the conversation it comes from."""

    aliases: ClassVar = bases.camel("conversation_id", "recent_messages")
    query: str = Field(min_length=1, description="The question, in any language.")
    conversation_id: bases.Name | None = bases.optional("For continuity and repetition.")
    recent_messages: Annotated[tuple[str | MessageBody, ...], Field(max_length=MAX_RECENT)] = Field(
        (), description="The last messages, oldest first: texts, or objects with `content`."
    )


class InsightsQuery(InsightsBody):
    """The same as query fields; `recent_messages` may be repeated."""

    recent_messages: Annotated[tuple[str, ...], Field(max_length=MAX_RECENT)] = Field(
        (), description="The last messages, oldest first."
    )


class PrefetchBody(bases.Lenient):
    """A question, the conversation it comes from, and how much context there is room for."""

    aliases: ClassVar = {
        **bases.camel("conversation_id", "message_id", "recent_messages", "has_documents"),
        "includeDataGov": "include_datagov",
        **bases.camel("token_budget", "include_context", "dry_run"),
    }
    query: str = Field(min_length=1, description="The question, in any language.")
    conversation_id: bases.Name | None = bases.optional(
        "For continuity and repetition; kept in the receipt."
    )
    message_id: bases.Name | None = bases.optional("Of the answer that this is for.")
    recent_messages: Messages = Field(
        (),
        description=f"The last messages, oldest first; a text alone is the user's. Of more than "
        f"{MAX_MESSAGES} the last ones are read.",
    )
    has_documents: bases.Flag = Field(
        False, description="Documents stand beside the question: fewer memories are searched for."
    )
    include_datagov: bases.Flag | None = bases.optional(
        "Also search open data; when absent, the words of the question decide."
    )
    token_budget: Annotated[bases.Whole, Field(gt=0), AfterValidator(_in_budget)] | None = (
        bases.optional(
            f"Tokens of the whole block, {MAX_BUDGET} at most; context.token_budget when absent."
        )
    )
    limit: Annotated[bases.Whole, Field(ge=1, le=bases.MAX_PAGE)] | None = bases.optional(
        "Hits to search for, search.max_limit at most; estimated when absent."
    )
    include_context: bases.Flag = Field(False, description="Answer with the text block.")
    tools: ToolNames = Field((), description="Names of the tools offered in this turn.")
    dry_run: bases.Flag = Field(
        False, description="Only show it: nothing that the question orders of memory is done."
    )


class ColdStartBody(bases.Lenient):
    """The conversation that begins."""

    aliases: ClassVar = bases.camel("conversation_id")
    conversation_id: bases.Name | None = bases.optional("Kept in the receipt.")


class InsightConcept(bases.Answer):
    """A concept of the question."""

    concept_id: str = bases.path("key")
    label: str
    type: str


class TierAdviceView(bases.Answer):
    """How well these concepts were answered in a tier; every tier is searched all the same."""

    tier: bases.TierWord
    wilson_score: float = bases.path("wilson")
    uses: int
    advised: bool


class ExperienceView(bases.Answer):
    """A memory that helped or failed before, and what is known of why."""

    memory_id: str = bases.path("item.memory_id")
    tier: bases.TierWord = bases.path("item.tier")
    content: str = bases.path("item.text")
    text_preview: bases.Preview = bases.path("item.text")
    outcome: str
    concept: str
    reason: str
    uses: int = bases.path("item.stats.uses")
    success_rate: float = bases.path("item.stats.success_rate")
    wilson_score: float = bases.path("item.stats.wilson_score")
    success_estimate: bases.Estimate = bases.path("item.stats")
    at: datetime


class ActionAdviceView(bases.Answer):
    """How an action did in this kind of context."""

    action: str
    context_type: str
    uses: int
    success_rate: float
    wilson_score: float = bases.path("wilson")
    advice: str


class SolutionView(bases.Answer):
    """The memory that solved this problem before."""

    memory_id: str
    tier: bases.TierWord
    content: str = bases.path("text")
    wilson_score: float = bases.path("stats.wilson_score")


class InsightsAnswer(bases.Success):
    """What the graphs know of a question."""

    query: str
    language: str
    context_type: str
    concepts: tuple[InsightConcept, ...]
    active_concepts: tuple[str, ...]
    matched_concepts: tuple[str, ...] = Field(description="Those that a graph knows.")
    tier_recommendations: tuple[TierAdviceView, ...] = bases.path("tiers")
    relevant_patterns: tuple[ExperienceView, ...] = bases.path("patterns")
    past_failures: tuple[ExperienceView, ...] = bases.path("failures")
    action_stats: tuple[ActionAdviceView, ...] = bases.path("actions")
    topic_continuity: tuple[str, ...] = bases.path("continuity")
    repeated_question: str | None = bases.path("repeated")
    known_solution: SolutionView | None
    directives: tuple[str, ...]
    meta: bases.BuiltIn

    @classmethod
    def from_insights(cls, found: ContextInsights, documents: bool) -> Self:
        return cls.of(
            found,
            documents,
            active_concepts=tuple(one.label for one in found.concepts),
            matched_concepts=tuple(one.label for one in found.matched),
            meta=found,
        )


class TraceView(bases.Answer):
    """The reason as a sentence in both languages."""

    he: str = bases.path("trace_he")
    en: str = bases.path("trace_en")


class GatingView(bases.Answer):
    """Which of the offered tools may be called, and why."""

    allowed_tools: tuple[str, ...] | None = Field(
        description="Of the tools that the request names; null: it names none."
    )
    reduced_count: int = bases.path("reduced")
    reason_code: str = bases.path("reason")
    trace_explanation: TraceView

    @classmethod
    def from_decision(cls, decision: GatingDecision) -> Self:
        """An empty list would be read as "none may be called" where no tools were named."""
        named = bool(decision.allowed) or decision.reduced > 0
        allowed = decision.allowed if named else None
        return cls.of(decision, allowed_tools=allowed, trace_explanation=decision)


class CommandView(bases.Answer):
    """What the message ordered of memory, and what became of it."""

    kind: str = bases.path("command.kind")
    text: str = bases.path("command.text")
    status: str = Field(
        description="stored, known, removed, listed, not_found, ambiguous (nothing was done) or "
        "refused."
    )
    memory_ids: tuple[str, ...]


class DisclaimerView(bases.Answer):
    """What the answer must not be taken for, in the language of the question."""

    topic: str
    text: str


class IntentsView(bases.Answer):
    """What the message itself asks for, by rules."""

    commands: tuple[CommandView, ...] = Field(
        description="Orders such as `add goal`, `remember that`, `forget that`; done already."
    )
    hints: tuple[str, ...] = Field(description="Where the answer lies: web, documents.")
    parts: tuple[str, ...] = Field(description="Its questions, when it holds several.")
    disclaimers: tuple[DisclaimerView, ...] = Field(
        description="To be shown with the answer: medical, financial, legal."
    )


class TaskView(bases.Answer):
    """What kind of turn the question is."""

    complexity: str
    context_type: str
    language: str
    intent: str
    limit: int


class _BesideText(bases.Success):
    """What the context of a question says beside its text.

    `receipt_id` is what outcomes and MEM marks refer to.
    """

    etag: str = bases.path("block.etag", description="Of the stable part; also the header `ETag`.")
    receipt_id: str | None
    tokens: int = bases.path("block.tokens")
    left_out: tuple[str, ...] = bases.path(
        "block.left_out", description="Memories that did not fit into the budget."
    )
    task: TaskView
    gating: GatingView
    intents: IntentsView

    @classmethod
    def from_context(cls, found: AssistantContext, **others: Any) -> Self:
        return cls.of(found, gating=GatingView.from_decision(found.gating), **others)


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

    @property
    def text(self) -> str | None:
        """None when nothing is known, or when the text was not asked for."""
        return (self.stable_text or "") + (self.volatile_text or "") or None


class PrefetchAnswer(_BesideText):
    """The same in the first client's names."""

    latency_ms: float = Field(alias="latencyMs")
    confidence: str = Field(alias="retrievalConfidence")
    debug: dict[str, Any] = Field(alias="retrievalDebug")
    text: str | None = Field(
        alias="memoryContextInjection",
        description="The whole block; null unless includeContext, or when nothing is known.",
    )
    memory_meta: dict[str, Any] = Field(alias="memoryMeta", description="MemoryMetaV1.")


class ColdMemory(bases.Answer):
    """One memory of a cold start."""

    position: int
    memory_id: str
    tier: bases.TierWord
    subject_id: str | None
    content: str = bases.path("text")


class ColdStartAnswer(bases.Success):
    """What is known of the user. `text` is empty when nothing is."""

    text: str
    memories: tuple[ColdMemory, ...]
    count: int
    receipt_id: str | None
    meta: bases.BuiltIn

    @classmethod
    def from_start(cls, found: ColdStart, documents: bool, took_ms: float) -> Self:
        memories = tuple(
            ColdMemory.of(item, documents, position=place)
            for place, item in enumerate(found.items, start=1)
        )
        meta = bases.BuiltIn(built_ms=took_ms)
        return cls.of(found, memories=memories, count=len(memories), meta=meta)
