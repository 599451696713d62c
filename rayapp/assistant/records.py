"""What an assistant's side asks for and what it gets: plain values, no HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from rayapp.assistant.commands.rules import Performed
from rayapp.assistant.safety.rules import Disclaimer
from rayapp.graphs.records import ContextInsights
from rayapp.inference.ports import Message
from rayapp.learning.records import Recorder, ToolRun
from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier
from rayapp.search.requests import ConfidenceLabel, SearchAnswer
from rayapp.text.utterance import Utterance

Section = Literal["identity", "preference", "pattern", "always", "instruction", "past", "relevant"]
HintName = Literal["web", "documents"]
Complexity = Literal["trivial", "simple", "moderate", "complex"]
ReasonCode = Literal[
    "FAIL_OPEN_DEGRADED",
    "EXPLICIT_TOOL_REQUEST",
    "RESEARCH_INTENT",
    "DATE_QUERY_NEEDS_SEARCH",
    "HIGH_CONFIDENCE_REDUCTION",
    "CHAIN_DEPTH_REACHED",
    "DEFAULT_ALLOW_ALL",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What kind of turn a question is. `intent`: what it asks of tools, in one word."""

    complexity: Complexity = "simple"
    context_type: str = "general"
    language: str = "other"
    intent: str = "general"
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class GatingDecision:
    """Which of the offered tools the assistant may call, and why, in both languages."""

    allowed: tuple[str, ...]
    reduced: int
    reason: ReasonCode
    trace_he: str
    trace_en: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Intents:
    """What a message itself asks for.

    Attributes:
        commands: what it ordered of memory, and what became of it.
        hints: where its answer lies.
        parts: its questions, when it holds several.
        disclaimers: what its answer must say of itself.
    """

    commands: tuple[Performed, ...] = ()
    hints: tuple[HintName, ...] = ()
    parts: tuple[str, ...] = ()
    disclaimers: tuple[Disclaimer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """`recent`: the last messages, oldest first, without the question itself.

    token_budget: of the whole text block; None = the setting. limit: of the search; None =
    estimated from the question. tools: names that are offered to the assistant this turn, who
    called some `tool_rounds` times already.
    recorder: in whose name the answer before is judged by this question; None = it is not.
    """

    query: str
    conversation_id: str | None = None
    message_id: str | None = None
    recent: tuple[Message, ...] = ()
    has_documents: bool = False
    include_datagov: bool | None = None
    token_budget: int | None = None
    limit: int | None = None
    tools: tuple[str, ...] = ()
    tool_rounds: int = 0
    principal: str = ""
    recorder: Recorder | None = None

    def __post_init__(self) -> None:
        """Whoever asks, the question carries what is read of it from here on."""
        object.__setattr__(self, "query", Utterance(self.query))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLine:
    """One memory in the block. `text` is escaped, whole, and stands on one line.

    position: its number; 0 where it stands before every question, because numbers are for what
    this one found. note: when it was said, how it did, and whose word it is; escaped.
    """

    position: int
    section: Section
    tier: Tier
    memory_id: str
    note: str
    text: str
    item: MemoryItem
    tokens: int

    @property
    def numbered(self) -> bool:
        return self.position > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBlock:
    """The text for the assistant. `stable` comes first and changes only when its items do.

    etag: of `stable`. left_out: memory ids that did not fit into the budget.
    """

    stable: str
    volatile: str
    etag: str
    lines: tuple[ContextLine, ...]
    tokens: int
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole block; empty when nothing is known."""
        return self.stable + self.volatile


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantContext:
    """One prefetch. `search` None = it was not reached in time or nothing was to be searched.

    known: ids of the memories that say what the question asks for, word by word.
    """

    request: ContextRequest
    block: ContextBlock
    gating: GatingDecision
    confidence: ConfidenceLabel
    at: datetime
    task: Task = field(default_factory=Task)
    intents: Intents = field(default_factory=Intents)
    search: SearchAnswer | None = None
    insights: ContextInsights | None = None
    known: tuple[str, ...] = ()
    receipt_id: str | None = None
    degraded: tuple[str, ...] = ()
    timings_ms: dict[str, float] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """Of the memories that are shown."""
        return [line.item.text for line in self.block.lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """What is known before the first question of a conversation. Empty `text`: nothing."""

    text: str
    items: tuple[MemoryItem, ...]
    receipt_id: str | None = None
    degraded: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """Of the memories that are shown."""
        return [item.text for item in self.items]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRequest:
    """One call of the exchange hook: the messages so far, the newest last.

    `tools_called`: names of the tools that the assistant called in this turn, in `tool_rounds`
    answers; `tool_runs`: what
    became of calls; `model`: which one answers. `prompt`: the whole prompt is asked for too, for
    its window or for `window` tokens. `interrupted`: the answer broke off, or never came; the last
    message may be the question.
    """

    conversation_id: str
    message_id: str
    messages: tuple[Message, ...]
    limit: int | None = None
    token_budget: int | None = None
    tools: tuple[str, ...] = ()
    tools_called: tuple[str, ...] = ()
    tool_rounds: int = 0
    tool_runs: tuple[ToolRun, ...] = ()
    model: str | None = None
    prompt: bool = False
    window: int | None = None
    interrupted: bool = False
    recorder: Recorder = field(default_factory=Recorder)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExchange:
    """The turn that was stored.

    Attributes:
        scoring_required: the assistant owes a record_response; `reason` says why, or why not.
        replaced: the message was known with other words, and this turn took its place.
        truncated: the text was too long to be kept whole.
        attributed: memories that the marks of the answer moved.
        skipped_positions: marks that name nothing that was shown.
    """

    memory_id: str
    duplicate: bool
    scoring_required: bool
    reason: str = ""
    replaced: bool = False
    truncated: bool = False
    attributed: int = 0
    skipped_positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFeedback:
    """The answer that waits for its score, and the receipt that it was given with."""

    message_id: str
    receipt_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """A thumb on an answer: 1, 0 or -1. No `memory_ids`: what the answer was given with.
    `feedback`: what the person wrote with it."""

    message_id: str
    score: int
    conversation_id: str | None = None
    memory_ids: tuple[str, ...] = ()
    feedback: str | None = None
    recorder: Recorder = field(default_factory=Recorder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreState:
    """Of one answer. An unknown message has no conversation, and owes nothing."""

    message_id: str
    conversation_id: str | None = None
    memory_id: str | None = None
    required: bool = False
    scored_at: datetime | None = None
    score: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call as it came: `arguments` is an object, or the JSON of one.

    Attributes:
        conversation_id, turn_id: of the chat that calls; None = not known.
        may_write: the caller's key covers tools that write.
        idempotency_key: of the request; None = a repeat counts again.
    """

    name: str
    arguments: Mapping[str, Any] | str | None = None
    conversation_id: str | None = None
    turn_id: str | None = None
    may_write: bool = True
    recorder: Recorder = field(default_factory=Recorder)
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """`text` is for the model; `data` holds the same as plain JSON values."""

    tool: str
    text: str
    data: dict[str, Any]
    degraded: tuple[str, ...] = ()
