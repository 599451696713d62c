"""Bodies and answers of outcomes, responses, feedback, scores and promotion."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

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
from rayapp.learning import records
from rayapp.memory.item import Outcome
from rayapp.wire import bases

# The longest key takeaway, characters (client contract).
MAX_TAKEAWAY_CHARS = 1_000
# Memories of one request: as many as the largest search shows (search.max_limit).
MAX_SCORES = 200
MAX_POSITION = 10_000
OUTCOMES = tuple(outcome.value for outcome in Outcome)
DEFAULT_ACTION = "search_memory"
NOTHING_SCORED: Mapping[records.NothingScored, str] = {
    "already_scored": "what this conversation was shown last has been scored already.",
    "nothing_shown": "no memories were shown that could be scored.",
    "none_named": "`related` names no memories.",
    "no_receipt": "name a receipt_id, a conversation_id, or memories in `related`.",
}


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


Position = Annotated[bases.Whole, Field(ge=1, le=MAX_POSITION)]
ActionName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="What the assistant did with the memories; a name of a tool.",
    ),
]
Related = Annotated[Position | bases.MemoryId, WrapValidator(_related)]
Some = Field(min_length=1, max_length=MAX_SCORES)


class Judgement(bases.Strict, bases.Keyed):
    """About what a search showed: the one that is named, or the newest of its conversation."""

    aliases: ClassVar[Mapping[str, str]] = bases.camel("receipt_id", "conversation_id")
    receipt_id: bases.Name | None = bases.optional(
        "`receipt_id` of the search that showed the memories."
    )
    conversation_id: bases.Name | None = bases.optional(
        "Without a receipt: the newest search of this conversation not yet scored."
    )

    @property
    def has_receipt(self) -> bool:
        return self.receipt_id is not None or self.conversation_id is not None


class SignalBody(bases.Strict):
    """Who noticed the outcome, and how sure that is."""

    source: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,64}$")] = Field(
        "explicit", description="`explicit`, or the name of a detector."
    )
    confidence: bases.Share = Field(
        1.0, description="0 to 1; below learning.implicit_confidence a detector's does not count."
    )


class OutcomeBody(Judgement):
    """What became of memories: those named, else all that the receipt shows."""

    aliases: ClassVar = bases.camel("receipt_id", "conversation_id", "memory_ids")
    outcome: OutcomeName
    positions: Annotated[tuple[Position, ...], Some] | None = bases.optional(
        "Positions of the receipt, from 1."
    )
    memory_ids: Annotated[tuple[bases.MemoryId, ...], Some] | None = bases.optional(
        "Memories by id."
    )
    action: ActionName = DEFAULT_ACTION
    signal: SignalBody = Field(SignalBody(), description="Explicit when absent.")

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.positions is not None and not self.has_receipt:
            raise ValueError("positions need a receipt; send receipt_id or conversation_id")
        if self.memory_ids is None and not self.has_receipt:
            raise ValueError("name what was judged; send receipt_id, conversation_id or memory_ids")
        return self


class ResponseBody(Judgement):
    """What an answer taught, and how it went."""

    aliases: ClassVar = bases.camel("receipt_id", "conversation_id", "key_takeaway")
    key_takeaway: Annotated[
        str, Field(min_length=1, max_length=MAX_TAKEAWAY_CHARS), AfterValidator(_not_blank)
    ] = Field(description="What was learned, in one or two sentences; kept in `working`.")
    outcome: OutcomeName = Outcome.UNKNOWN
    related: Annotated[tuple[Related, ...], Field(max_length=MAX_SCORES)] | None = bases.optional(
        "Positions of the receipt (numbers) and memory ids (strings) to score; "
        "all that was shown when absent, nothing when empty."
    )


class FeedbackBody(bases.Lenient, bases.Keyed):
    """A person's thumb on an answer."""

    aliases: ClassVar = bases.camel("message_id", "conversation_id")
    message_id: bases.Name = Field(description="The answer that was rated.")
    score: Annotated[Literal[-1, 0, 1], BeforeValidator(_whole_score)] = Field(
        description="1 worked, 0 partial, -1 failed."
    )
    conversation_id: bases.Name | None = bases.optional("Conversation of the answer.")
    citations: Annotated[tuple[bases.MemoryId, ...], Field(max_length=MAX_SCORES)] = Field(
        (), description="Memories that the answer cites; each is scored once."
    )


Target = Annotated[
    str,
    Field(max_length=bases.MAX_ID_CHARS),
    bases.matching(MEMORY_ID_PATTERN, "is neither a position nor a memory id"),
]


class ScoreBody(Judgement):
    """Each memory with its own outcome."""

    scores: Annotated[dict[Target, OutcomeName], Some] = Field(
        description="Outcome by position or memory id. With receipt_id or conversation_id, "
        "keys of digits alone are positions."
    )
    action: ActionName = DEFAULT_ACTION

    @model_validator(mode="after")
    def _positions_are_plain(self) -> Self:
        for key in self.scores if self.has_receipt else ():
            if key.isdigit() and not (key[0] != "0" and int(key) <= MAX_POSITION):
                raise ValueError(f"a position is 1 to {MAX_POSITION}, without leading zeros")
        return self


class PromoteBody(bases.Strict, bases.Keyed):
    """Whose memories are looked at."""

    all_users: bases.Flag = Field(False, description="All users instead of the acting one.")


class ScoredView(bases.Answer):
    """A memory after its outcome; the id is the winner's when the named one was merged."""

    memory_id: str
    tier: bases.TierWord
    uses: int
    success_count: float
    score: float
    wilson_score: float = Field(description="Lower end of the estimate; 0.5 without uses.")
    success_estimate: bases.Estimate


class SkippedView(bases.Answer):
    """A memory that the outcome left alone, and why."""

    memory_id: str
    reason: records.SkipReason = Field(
        description="not_scored: books and DataGov; gone: deleted since it was shown; "
        "weak_signal: a detector was not sure enough; not_shown, already_scored, rate: limits "
        "of a key that does not own the memories."
    )


class OutcomeAnswerView(bases.Success):
    """`duplicate`: this idempotency key was recorded before; the first result again."""

    duplicate: bool
    updated: tuple[ScoredView, ...]
    skipped: tuple[SkippedView, ...]
    receipt_id: str | None

    @classmethod
    def from_answer(cls, found: records.OutcomeAnswer, documents: bool, **others: Any) -> Self:
        rows = (ScoredView.of(one, documents, success_estimate=one) for one in found.updated)
        return cls.of(found, updated=tuple(rows), **others)


class ResponseAnswerView(OutcomeAnswerView):
    """The kept takeaway, and what was scored with it. `duplicate`: this key was used before."""

    memory_id: str
    scored: int
    message: str = Field(description="What was done; when nothing was scored, why.")

    @classmethod
    def from_response(cls, found: records.ResponseAnswer, documents: bool) -> Self:
        """`duplicate` is that of the whole call; what was scored stands beside the takeaway."""
        return cls.from_answer(
            found.scored,
            documents,
            memory_id=found.memory_id,
            duplicate=found.duplicate,
            scored=len(found.scored.updated),
            message=_response_message(found),
        )


def _response_message(found: records.ResponseAnswer) -> str:
    """Of a repeated call too: it gets the first answer again."""
    if found.nothing is not None:
        return f"Takeaway kept, but nothing was scored: {NOTHING_SCORED[found.nothing]}"
    if not found.scored.updated:
        return "Takeaway kept, but nothing was scored: `skipped` says why for each memory."
    return "Takeaway kept, memories scored."


class FeedbackAnswer(bases.Success):
    """`citationsScored` counts the memories that this call moved; none when it is a duplicate."""

    message: str
    score: int
    citations_scored: int = Field(alias="citationsScored")
    skipped: tuple[SkippedView, ...]
    duplicate: bool


class CycleView(bases.Answer):
    """One promotion cycle. `deleted` stays 0: no rule deletes."""

    examined: int
    promoted: int
    demoted: int
    archived: int
    merged: int
    deleted: int
    errors: int
    duration_ms: float = Field(alias="durationMs")


class PromoteAnswer(bases.Written):
    """What the cycle did."""

    stats: CycleView


class DecayAnswer(bases.Written):
    """What the cycle did, under the name that the first client reads."""

    result: CycleView


class ScheduleView(bases.Answer):
    """When cycles run; `last_run_at` is null before the first one."""

    kind: Literal["promotion_cycle"] = "promotion_cycle"
    interval_ms: int
    running: bool = Field(description="The next cycle comes by itself; not: one goes on now.")
    last_run_at: datetime | None


class ScheduleAnswer(bases.Success):
    """The schedule of the promotion cycle."""

    schedule: ScheduleView
