"""Bodies and answers of outcomes, responses, feedback, scores and promotion."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.learning.records import Signal
from rayapp.memory.item import Outcome
from rayapp.wire.bases import (
    MAX_ID_CHARS,
    Answer,
    EstimateView,
    Flag,
    IdempotencyKey,
    Lenient,
    MemoryId,
    Name,
    Share,
    Strict,
    Whole,
)

OUTCOME_ALIASES = {
    "receiptId": "receipt_id",
    "memoryIds": "memory_ids",
    "conversationId": "conversation_id",
}
RESPONSE_ALIASES = {
    "keyTakeaway": "key_takeaway",
    "receiptId": "receipt_id",
    "conversationId": "conversation_id",
}
FEEDBACK_ALIASES = {"messageId": "message_id", "conversationId": "conversation_id"}
# The longest key takeaway, characters (client contract).
MAX_TAKEAWAY_CHARS = 1_000
# Memories of one request: as many as the largest search shows (search.max_limit).
MAX_SCORES = 200
MAX_POSITION = 10_000
OUTCOMES = tuple(outcome.value for outcome in Outcome)
DEFAULT_ACTION = "search_memory"


def _outcome(value: Any) -> Any:
    if isinstance(value, str) and value in OUTCOMES:
        return value
    raise ValueError(f"is no outcome; send one of {', '.join(OUTCOMES)}")


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("is blank; say what was learned")
    return value


def _whole_score(value: Any) -> Any:
    # `True` equals 1, and 1.0 does too; neither is a thumb.
    if type(value) is not int or value not in (-1, 0, 1):
        raise ValueError("must be 1 (helped), 0 (partly) or -1 (did not help)")
    return value


OutcomeName = Annotated[
    Outcome,
    BeforeValidator(_outcome),
    Field(description="`worked`, `partial`, `unknown` or `failed`."),
]


def _related(value: Any, check: ValidatorFunctionWrapHandler) -> int | str:
    # One sentence instead of one for each of the two kinds.
    try:
        found: int | str = check(value)
    except ValidationError:
        raise ValueError(
            f"must be a position (a whole number from 1 to {MAX_POSITION}) or a memory id"
        ) from None
    return found


Position = Annotated[Whole, Field(ge=1, le=MAX_POSITION)]
ActionName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="What the assistant did with the memories; a name of a tool.",
    ),
]
ReceiptId = Annotated[
    Name | None, Field(description="`receipt_id` of the search that showed the memories.")
]
Related = Annotated[Position | MemoryId, WrapValidator(_related)]
ConversationId = Annotated[
    Name | None,
    Field(description="Without a receipt: the newest search of this conversation not yet scored."),
]


class SignalBody(Strict):
    """Who noticed the outcome, and how sure that is."""

    source: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,64}$")] = Field(
        "explicit", description="`explicit`, or the name of a detector."
    )
    confidence: Share = Field(
        1.0, description="0 to 1; below learning.implicit_confidence a detector's does not count."
    )

    def signal(self) -> Signal:
        return Signal(source=self.source, confidence=self.confidence)


class OutcomeBody(Strict):
    """What became of memories: those named, else all that the receipt shows."""

    outcome: OutcomeName
    receipt_id: ReceiptId = None
    conversation_id: ConversationId = None
    positions: Annotated[tuple[Position, ...], Field(min_length=1, max_length=MAX_SCORES)] | None \
        = Field(None, description="Positions of the receipt, from 1.")  # fmt: skip
    memory_ids: Annotated[tuple[MemoryId, ...], Field(min_length=1, max_length=MAX_SCORES)] \
        | None = Field(None, description="Memories by id.")  # fmt: skip
    action: ActionName = DEFAULT_ACTION
    signal: SignalBody = Field(SignalBody(), description="Explicit when absent.")
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        receipt = self.receipt_id is not None or self.conversation_id is not None
        if self.positions is not None and not receipt:
            raise ValueError("positions need a receipt; send receipt_id or conversation_id")
        if self.memory_ids is None and not receipt:
            raise ValueError("name what was judged; send receipt_id, conversation_id or memory_ids")
        return self


class ResponseBody(Strict):
    """What an answer taught, and how it went."""

    key_takeaway: Annotated[
        str, Field(min_length=1, max_length=MAX_TAKEAWAY_CHARS), AfterValidator(_not_blank)
    ] = Field(description="What was learned, in one or two sentences; kept in `working`.")
    outcome: OutcomeName = Outcome.UNKNOWN
    related: Annotated[tuple[Related, ...], Field(max_length=MAX_SCORES)] | None = Field(
        None,
        description="Positions of the receipt (numbers) and memory ids (strings) to score; "
        "all that was shown when absent, nothing when empty.",
    )
    receipt_id: ReceiptId = None
    conversation_id: ConversationId = None
    idempotency_key: IdempotencyKey = None


class FeedbackBody(Lenient):
    """A person's thumb on an answer."""

    message_id: Name = Field(description="The answer that was rated.")
    score: Annotated[Literal[-1, 0, 1], BeforeValidator(_whole_score)] = Field(
        description="1 worked, 0 partial, -1 failed."
    )
    conversation_id: Name | None = Field(None, description="Conversation of the answer.")
    citations: Annotated[tuple[MemoryId, ...], Field(max_length=MAX_SCORES)] = Field(
        (), description="Memories that the answer cites; each is scored once."
    )
    idempotency_key: IdempotencyKey = None


def _target(value: str) -> str:
    if not MEMORY_ID_PATTERN.fullmatch(value):
        raise ValueError("is neither a position nor a memory id")
    return value


Target = Annotated[str, Field(max_length=MAX_ID_CHARS), AfterValidator(_target)]


class ScoreBody(Strict):
    """Each memory with its own outcome."""

    scores: Annotated[dict[Target, OutcomeName], Field(min_length=1, max_length=MAX_SCORES)] = (
        Field(
            description="Outcome by position or memory id. With receipt_id or conversation_id, "
            "keys of digits alone are positions."
        )
    )
    receipt_id: ReceiptId = None
    conversation_id: ConversationId = None
    action: ActionName = DEFAULT_ACTION
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _positions_are_plain(self) -> Self:
        for key in self.scores if self.shows_positions else ():
            if key.isdigit() and not (key[0] != "0" and int(key) <= MAX_POSITION):
                raise ValueError(f"a position is 1 to {MAX_POSITION}, without leading zeros")
        return self

    @property
    def shows_positions(self) -> bool:
        return self.receipt_id is not None or self.conversation_id is not None


class PromoteBody(Strict):
    """Whose memories are looked at."""

    all_users: Flag = Field(False, description="All users instead of the acting one.")
    idempotency_key: IdempotencyKey = None


# Shapes of the answers about outcomes and promotion.


class ScoredView(Answer):
    """A memory after its outcome; the id is the winner's when the named one was merged."""

    memory_id: str
    tier: str
    uses: int
    success_count: float
    score: float
    wilson_score: float = Field(description="Lower end of the estimate; 0.5 without uses.")
    success_estimate: EstimateView


class SkippedView(Answer):
    """A memory that the outcome left alone, and why."""

    memory_id: str
    reason: Literal["not_scored", "gone", "weak_signal", "not_shown", "already_scored", "rate"] = (
        Field(
            description="not_scored: books and DataGov; gone: deleted since it was shown; "
            "weak_signal: a detector was not sure enough; not_shown, already_scored, rate: limits "
            "of a key that does not own the memories."
        )
    )


class OutcomeAnswerView(Answer):
    """`duplicate`: this idempotency key was recorded before; the first result again."""

    success: Literal[True]
    duplicate: bool
    updated: list[ScoredView]
    skipped: list[SkippedView]
    receipt_id: str | None
    degraded: list[str]


class ResponseAnswerView(Answer):
    """The kept takeaway, and what was scored with it. `duplicate`: this key was used before."""

    success: Literal[True]
    memory_id: str
    duplicate: bool
    scored: int
    message: str = Field(description="What was done; when nothing was scored, why.")
    updated: list[ScoredView]
    skipped: list[SkippedView]
    receipt_id: str | None
    degraded: list[str]


class FeedbackAnswer(Answer):
    """`citationsScored` counts the memories that this call moved; none when it is a duplicate."""

    success: Literal[True]
    message: str
    score: int
    citationsScored: int
    skipped: list[SkippedView]
    duplicate: bool
    degraded: list[str]


class CycleView(Answer):
    """One promotion cycle. `deleted` stays 0: no rule deletes."""

    examined: int
    promoted: int
    demoted: int
    archived: int
    merged: int
    deleted: int
    errors: int
    durationMs: float


class PromoteAnswer(Answer):
    """What the cycle did."""

    success: Literal[True]
    stats: CycleView
    degraded: list[str]
    duplicate: bool | None = None


class DecayAnswer(Answer):
    """What the cycle did, under the name that the first client reads."""

    success: Literal[True]
    result: CycleView
    degraded: list[str]
    duplicate: bool | None = None


class ScheduleView(Answer):
    """When cycles run; `last_run_at` is null before the first one."""

    kind: Literal["promotion_cycle"]
    interval_ms: int
    running: bool = Field(description="The next cycle comes by itself; not: one goes on now.")
    last_run_at: datetime | None


class ScheduleAnswer(Answer):
    """The schedule of the promotion cycle."""

    success: Literal[True]
    schedule: ScheduleView
    degraded: list[str]
