"""Raw data over HTTP: texts that are kept if they matter, and the whole decision on each."""

from datetime import datetime
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.tiers import Tier
from rayapp.understanding.records import Decided, Fate, Importance
from rayapp.wire import bases

ContentType = Literal["user_chat", "ai_response", "uploaded_file"]
SOURCES: dict[str, SourceType] = {
    "user_chat": SourceType.USER,
    "ai_response": SourceType.ASSISTANT,
    "uploaded_file": SourceType.DOCUMENT,
}


class RawDataItem(bases.Strict):
    """A text, whose it is and what it is about."""

    aliases: ClassVar = {"content": "text", "contentType": "content_type"} | bases.camel(
        *("session_id", "perspective_owner_id", "subject_id", "topic_key", "created_at"),
        "memory_id",
    )
    text: str = Field(description="The text; `content` is another name.")
    content_type: ContentType = Field(
        "user_chat", description="Who said it; what an assistant says counts half."
    )
    session_id: bases.Name | None = bases.optional("Conversation.")
    perspective_owner_id: bases.Name | None = bases.optional("Who told it; default the user.")
    subject_id: bases.Name | None = bases.optional("Whom it is about; default the user.")
    topic_key: bases.Label | None = bases.optional("What it is about.")
    topics: bases.Labels = Field((), description="More that it is about.")
    memory_id: bases.MemoryId | None = bases.optional("Your id; made when absent.")
    created_at: bases.UtcTime | None = bases.optional("When it was said; naive is UTC.")

    def new_memory(self) -> NewMemory:
        """The memory that it becomes if it matters."""
        named = () if self.topic_key is None else (self.topic_key,)
        return NewMemory(
            text=self.text,
            tier=Tier.HISTORY,
            memory_id=self.memory_id,
            created_at=self.created_at,
            source=Source(type=SOURCES[self.content_type], conversation_id=self.session_id),
            subject_id=self.subject_id,
            perspective_owner_id=self.perspective_owner_id,
            topics=tuple(dict.fromkeys((*named, *self.topics))),
        )


class RawDataBody(RawDataItem, bases.Keyed):
    """A text to keep if it matters."""


class RawDataBatchBody(bases.Strict, bases.Keyed):
    """Texts to keep if they matter. One that breaks a rule is refused alone."""

    read_apart: ClassVar = "items"
    items: list[Any] = Field(
        description="Texts, each as in `POST /api/memory/raw-data`.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/RawDataItem"}},
    )


class ReprocessBody(bases.Strict, bases.Keyed):
    """How."""

    force: bases.Flag = Field(False, description="Derive from it whatever its score is.")


class SignalsView(bases.Answer):
    """0 to 1 each."""

    emotional: float
    personal: float
    temporal: float
    decision: float


class ImportanceView(bases.Answer):
    """How much one side of a text matters. `base`: the weighted sum of the signals; then the
    overrides, then the factor of who said it."""

    speaker: str
    score: float
    base: float
    signals: SignalsView
    overrides: tuple[str, ...]
    threshold: float
    source_factor: float = bases.path("factor")
    params: str
    passed: bool

    @classmethod
    def from_side(cls, side: Importance) -> Self:
        signals = SignalsView(**side.signals)
        return cls.of(side, signals=signals, overrides=tuple(o.value for o in side.overrides))


class DecisionView(bases.Answer):
    """What was decided of a text. `fate`: `archived`, `passed_over` (kept, not derived from),
    `waiting` (it will be derived from) or `derived`. `importance` null: not looked at yet."""

    id: str
    fate: Fate
    importance: ImportanceView | None
    sides: tuple[ImportanceView, ...] = Field(description="Of a turn: the question, the answer.")
    topics: tuple[str, ...] = Field(description="Keys by which a topic is known again.")
    trace_id: str | None
    decided_at: datetime | None
    stages_ms: dict[str, float]

    @classmethod
    def from_decided(cls, found: Decided) -> Self:
        row = found.row
        sides = () if row is None else tuple(map(ImportanceView.from_side, row.sides))
        return cls(
            id=found.memory_id or "",
            fate=Fate.WAITING if row is None else row.fate,
            importance=max(sides, key=lambda one: one.score, default=None),
            sides=sides,
            topics=() if row is None else row.topics,
            trace_id=None if row is None else row.trace_id,
            decided_at=None if row is None else row.decided_at,
            stages_ms={} if row is None else dict(row.stages),
        )


class RawDataAnswer(bases.Success):
    """The decision on one text."""

    memory_id: str
    duplicate: bool = Field(description="The text was there already, and is kept once.")
    decision: DecisionView

    @classmethod
    def from_decided(cls, found: Decided) -> Self:
        return cls(
            memory_id=found.memory_id or "",
            duplicate=found.duplicate,
            decision=DecisionView.from_decided(found),
        )


class RawDataResult(bases.Answer):
    """One line per text sent, in order. What was refused was not kept, so it has no id."""

    memory_id: str | None
    duplicate: bool
    decision: DecisionView | None
    code: str | None = bases.Absent
    error: str | None = bases.Absent

    @classmethod
    def from_decided(cls, found: Decided) -> Self:
        if found.error is not None:
            refused = {"code": found.error.code, "error": found.error.message}
            return cls(memory_id=None, duplicate=False, decision=None, **refused)
        return cls(
            memory_id=found.memory_id,
            duplicate=found.duplicate,
            decision=DecisionView.from_decided(found),
        )


class RawDataBatchAnswer(bases.Answer):
    """Results in the order of the texts; no `success` when every one was refused."""

    success: bool
    results: tuple[RawDataResult, ...]
    duplicate: bases.Repeated = None
