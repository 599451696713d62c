"""The hooks that chat programs call around a turn, over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rayapp.memory.tiers import DATAGOV_TIERS, Tier
from rayapp.wire import bases
from rayapp.wire.context import MAX_BUDGET, GatingView, IntentsView, TurnMessage, one_per_message
from rayapp.wire.learning import MAX_SCORES, SkippedView
from rayapp.wire.prompt import Tokens, TurnPromptAnswer
from rayapp.wire.search import Sort, TierList

if TYPE_CHECKING:
    from rayapp.assistant.records import PendingFeedback

# Characters of `preview` (client contract).
PREVIEW_CHARS = 150
# Hits of the context hook (client contract).
DEFAULT_HITS = 10
MOST_HITS = 50
MIN_QUERY_CHARS = 2
# Messages of one call: a conversation of a thousand turns, which the body limit hardly holds.
MOST_MESSAGES = 2_000
MOST_TOOLS = 500
MAX_FEEDBACK_CHARS = 2_000
MAX_ERROR_CHARS = 100


def _at_most(value: int) -> int:
    return min(value, MOST_HITS)


def _core(tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
    for tier in tiers:
        if tier in DATAGOV_TIERS:
            raise ValueError(f"{tier.value} is no tier of the hooks; ask /api/memory/search")
    return tiers


def _long_enough(value: str) -> str:
    if len(value.strip()) < MIN_QUERY_CHARS:
        raise ValueError(f"needs at least {MIN_QUERY_CHARS} characters; ask something")
    return value


def _tool_names(value: object) -> object:
    """Names, or function schemas as chat programs hold them."""
    return [_tool_name(one) for one in value] if isinstance(value, list) else value


def _tool_name(one: object) -> object:
    if isinstance(one, dict):
        inner = one.get("function")
        one = inner.get("name") if isinstance(inner, dict) else one.get("name")
    return one


def _whole(value: Any) -> Any:
    """Not `true`, and not 1.0: Literal alone takes both for 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be 1, 0 or -1")
    return value


HookLimit = Annotated[int, Field(ge=1), AfterValidator(_at_most)]
HookTiers = Annotated[TierList, BeforeValidator(bases.comma_list), AfterValidator(_core)]
HookQuestion = Annotated[str, AfterValidator(_long_enough)]
ToolNames = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
    BeforeValidator(_tool_names),
    bases.OneOrMore,
    Field(max_length=MOST_TOOLS),
]


class HookContextQuery(bases.Lenient):
    """What the context hook takes, in a body or in a URL."""

    aliases: ClassVar = {"sortBy": "sort_by", "tier": "tiers", "conversationId": "conversation_id"}
    query: HookQuestion = Field(description="The question, in any language.")
    limit: HookLimit = Field(DEFAULT_HITS, description=f"Hits, {MOST_HITS} at most.")
    tiers: HookTiers | None = bases.optional("Of the five core tiers; all when absent.")
    sort_by: Sort | None = bases.optional("Order; the recipe's when absent.")
    conversation_id: bases.Name | None = bases.optional(
        "Kept in the receipt; `scoring_required` is about it."
    )


class ToolRunBody(bases.Lenient):
    """One call of a tool in this turn, as the program around the model saw it."""

    aliases: ClassVar = bases.camel("run_id", "error_type", "latency_ms")
    name: Annotated[str, Field(min_length=1, max_length=200)] = Field(description="Of the tool.")
    run_id: bases.Name | None = bases.optional("Of this call.")
    ok: bases.Flag = Field(True, description="It answered.")
    timeout: bases.Flag = Field(False, description="It was too late; that is no answer.")
    error_type: Annotated[str, Field(max_length=MAX_ERROR_CHARS)] | None = bases.optional(
        "What went wrong, in a word."
    )
    latency_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = bases.optional(
        "How long it took."
    )

    @model_validator(mode="before")
    @classmethod
    def _fold(cls, value: Any) -> Any:
        """Other names are folded for the whole body alone."""
        if not isinstance(value, dict):
            return value
        return {cls.aliases.get(name, name): one for name, one in value.items()}


class ExchangeBody(bases.Lenient):
    """The messages so far, the newest last."""

    aliases: ClassVar = {
        **bases.camel("conversation_id", "message_id", "token_budget", "tools_called", "tool_runs"),
        "modelId": "model",
        **bases.camel("include_prompt"),
        "contextWindow": "window",
    }
    conversation_id: bases.Name = Field(description="The conversation.")
    message_id: bases.Name = Field(description="Of the answer: with it, a turn is kept once.")
    messages: Annotated[
        tuple[TurnMessage, ...], BeforeValidator(one_per_message), Field(min_length=1)
    ] = Field(
        max_length=MOST_MESSAGES,
        description="Every field of a message comes back.",
        json_schema_extra={"minItems": 1},
    )
    limit: HookLimit = Field(DEFAULT_HITS, description=f"Memories to find, {MOST_HITS} at most.")
    token_budget: Annotated[bases.Whole, Field(gt=0, le=MAX_BUDGET)] | None = bases.optional(
        "Tokens of the context; context.token_budget when absent."
    )
    tools: ToolNames = Field((), description="Tools offered in this turn: names, or schemas.")
    tools_called: ToolNames = Field(
        (), description="Tools called in this turn; `tool_calls` of the messages are added."
    )
    tool_runs: Annotated[tuple[ToolRunBody, ...], Field(max_length=MOST_TOOLS)] = Field(
        (),
        description="What became of calls in this turn. A tool of which no call answered has "
        "failed; the others share the outcome of the turn.",
    )
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = bases.optional(
        "The model that answers; kept with the turn."
    )
    interrupted: bases.Flag = Field(
        False,
        description="The answer broke off: it is kept with its question, and nothing is learned of "
        "it. A last message whose `finish_reason` is `length` or `content_filter` says the same.",
    )
    include_prompt: bases.Flag = Field(
        False, description="Answer with the whole prompt too, as `POST /api/memory/prompt` does."
    )
    window: Tokens | None = bases.optional(
        "Tokens of the window of that prompt, instead of the model's."
    )


class HookScoreBody(bases.Lenient):
    """A thumb on an answer."""

    aliases: ClassVar = {
        **bases.camel("conversation_id", "message_id", "memory_ids"),
        "citations": "memory_ids",
    }
    message_id: bases.Name = Field(description="The answer that is scored.")
    conversation_id: bases.Name | None = bases.optional("Conversation of the answer.")
    score: Annotated[Literal[-1, 0, 1], BeforeValidator(_whole)] = Field(
        description="1 worked, 0 partial, -1 failed."
    )
    memory_ids: Annotated[tuple[bases.MemoryId, ...], Field(max_length=MAX_SCORES)] = Field(
        (), description="Memories to score; what the answer was given with when absent."
    )
    feedback: Annotated[str, Field(max_length=MAX_FEEDBACK_CHARS)] | None = bases.optional(
        "What the person wrote; kept with the turn, if it is known."
    )


class HookScoreQuery(bases.Lenient):
    """Which answer."""

    aliases: ClassVar = bases.camel("conversation_id", "message_id")
    message_id: bases.Name = Field(description="The answer.")
    conversation_id: bases.Name | None = bases.optional("The newest one that has it.")


# Shapes of the answers of the hooks: bare, as the first client reads them.

Beginning = Annotated[str, BeforeValidator(lambda text: text[:PREVIEW_CHARS])]


class HookContextView(bases.Camel):
    """One memory for a prompt."""

    tier: bases.TierWord = bases.path("item.tier")
    content: str = bases.path("item.text")
    score: float = bases.path("summary.final_score")
    memory_id: str = bases.path("item.memory_id", alias="memoryId")
    doc_id: str | None = bases.path("item.source.doc_id", alias="docId")
    chunk_id: str | None = bases.path("item.source.chunk_id", alias="chunkId")
    preview: Beginning = bases.path("item.text")
    created_at: datetime = bases.path("item.created_at", alias="createdAt")


class ScoringView(bases.Camel):
    """What the conversation owes: `messageId` is the answer that waits for its score."""

    required: bool
    message_id: str | None
    receipt_id: str | None

    @classmethod
    def from_pending(cls, owed: PendingFeedback | None) -> Self:
        return cls(
            required=owed is not None,
            message_id=owed.message_id if owed else None,
            receipt_id=owed.receipt_id if owed else None,
        )


class HookContextAnswer(bases.Answer):
    """What memory knows about a question."""

    contexts: tuple[HookContextView, ...] = bases.path("hits")
    total: int
    query: str
    tiers_searched: tuple[str, ...] = Field(alias="tiersSearched")
    latency_ms: float = Field(alias="latencyMs")
    confidence: Literal["high", "medium", "low"]
    receipt_id: str | None
    scoring_required: bool
    scoring: ScoringView
    degraded: tuple[str, ...]


class StoredView(bases.Answer):
    """The turn that was kept."""

    memory_id: str
    duplicate: bool
    scoring_required: bool
    reason: str
    replaced: bool = Field(description="It took the place of the same message with other words.")
    truncated: bool
    attributed: int
    skipped_positions: tuple[int, ...]


class ExchangeAnswerView(bases.Answer):
    """The messages with their context, and what became of the turn."""

    messages: tuple[dict[str, Any], ...]
    memory_meta: dict[str, Any] = Field(alias="memoryMeta")
    stored: StoredView | None
    scoring_required: bool
    scoring: ScoringView
    required_scoring: bool
    current_state: Literal["scored", "unscored"]
    gating: GatingView
    intents: IntentsView
    latency_ms: float = Field(alias="latencyMs")
    degraded: tuple[str, ...]
    prompt: TurnPromptAnswer | None = bases.Absent
    duplicate: bases.Repeated = None


class HookScoreAnswer(bases.Success):
    """`updated` counts the memories that it moved."""

    updated: int
    message_id: str = Field(alias="messageId")
    timestamp: datetime
    skipped: tuple[SkippedView, ...]
    duplicate: bool


class HookScoreState(bases.Camel):
    """Whether an answer was scored; an unknown one was not."""

    message_id: str
    conversation_id: str | None
    scored: bool
    timestamp: datetime | None
    required: bool
    score: int | None
    memory_id: str | None
