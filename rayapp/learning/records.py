"""What an outcome is, what recording one leaves behind, and what callers ask of learning."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rayapp.memory.item import MemoryItem, MemoryVersion, Outcome
from rayapp.memory.tiers import Tier

# Why an outcome left an item alone. `not_scored`: books and DataGov tiers; `gone`:
# shown once, deleted since; `weak_signal`: an implicit signal below the confidence that counts;
# `not_shown`, `already_scored`, `rate`: limits of a principal that does not own the memories.
SkipReason = Literal["not_scored", "gone", "weak_signal", "not_shown", "already_scored", "rate"]
# The outbox: effects that an accepted outcome still owes after its answer. The index payload is
# not among them: the update of the item queues it in the same write.
Effect = Literal["graph", "promotion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Who noticed the outcome. `explicit` ones count in full, others from a confidence on."""

    source: str = "explicit"
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Skipped:
    memory_id: str
    reason: SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedOutcome:
    """An item after the outcome. `memory_id` is the winner's when the named one was merged.

    `score_moved` and `lifetime_moved_ms` are what the outcome really changed, after every limit;
    None in rows of older versions.
    """

    memory_id: str
    point_id: str
    tier: Tier
    uses: int
    success_count: float
    score: float
    wilson_score: float
    doc_id: str | None = None
    score_moved: float | None = None
    lifetime_moved_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What later verdicts took over from an event: points of items, books, and tools."""

    points: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeEvent:
    """One row of `memory_outcomes`; unique by (user_id, idempotency_key).

    Attributes:
        principal: who recorded it; `owner` False limits it to what it was shown.
        memory_ids: the items it is about, as named by the caller or by the receipt.
        query, concepts, context_type: of the receipt, empty without one.
        action: what the assistant did when the items helped or failed.
        applied, skipped: filled in when it is recorded. Ids that the caller lists in `skipped`
            beforehand (weak signals) are kept with their reason and never applied.
        documents: doc_ids of the book items among them, filled in when it is recorded: a book's
            items are not scored, its effectiveness is learned all the same.
        tools: what the assistant used for the answer; such an event is about no items.
        request_hash: fingerprint of the request that a caller's key stands for; empty for keys
            that the service made.
        takeaway_id: the memory kept with it, which a retry of the response answers for ever.
        replaces: keys of the earlier events whose verdict on the same items it takes the place
            of; None for an outcome that is no verdict of a thumb: nothing replaces it.
        withdrawn: the part of it that later events replaced.
        counted: what of it was withdrawn when the graphs counted it, set when more is withdrawn
            afterwards; None until then.
    """

    user_id: str
    idempotency_key: str
    principal: str
    outcome: Outcome
    at: datetime
    memory_ids: tuple[str, ...]
    owner: bool = True
    receipt_id: str | None = None
    conversation_id: str | None = None
    query: str = ""
    concepts: tuple[str, ...] = ()
    context_type: str = "general"
    action: str = "search_memory"
    signal: Signal = field(default_factory=Signal)
    applied: tuple[AppliedOutcome, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    documents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    request_hash: str = ""
    takeaway_id: str | None = None
    replaces: tuple[str, ...] | None = None
    withdrawn: Withdrawn = field(default_factory=Withdrawn)
    counted: Withdrawn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """One call of a tool in a turn, as the program around the model saw it.

    Attributes:
        run_id: of the call, among those of its turn.
        ok: it answered; not so after an error, or when `timeout` says that it was too late.
        error_type: what went wrong, in a word.
    """

    name: str
    run_id: str | None = None
    ok: bool = True
    timeout: bool = False
    error_type: str | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """What a kept turn used tools for. `answered`, `failed`: their names, each once."""

    conversation_id: str
    message_id: str
    context_type: str
    answered: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One item's change in a transition: compare-and-set on `expected_version`."""

    item: MemoryItem
    expected_version: int
    row: MemoryVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Who records outcomes. `owner` False limits them to what this principal was shown."""

    principal: str = "local"
    owner: bool = True

    def may_judge(self, principal: str | None) -> bool:
        """What was shown to, or recorded by, this principal."""
        return self.owner or principal == self.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRequest:
    """About `memory_ids`, or `positions` (from 1) of a receipt, or all that the receipt shows.

    A receipt is named, or found as the newest unscored one of `conversation_id`. `request_hash`
    is the fingerprint of the larger request that this one is a part of; empty when it is whole.
    """

    outcome: Outcome
    memory_ids: tuple[str, ...] | None = None
    positions: tuple[int, ...] | None = None
    receipt_id: str | None = None
    conversation_id: str | None = None
    idempotency_key: str | None = None
    signal: Signal = field(default_factory=Signal)
    recorder: Recorder = field(default_factory=Recorder)
    action: str = "search_memory"
    request_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeAnswer:
    updated: tuple[AppliedOutcome, ...]
    skipped: tuple[Skipped, ...]
    duplicate: bool
    receipt_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    """record_response. `related` None = everything that the receipt shows.

    `related` holds positions of the receipt (int) and memory ids (str), mixed.
    """

    key_takeaway: str
    outcome: Outcome = Outcome.UNKNOWN
    related: tuple[int | str, ...] | None = None
    receipt_id: str | None = None
    conversation_id: str | None = None
    idempotency_key: str | None = None
    recorder: Recorder = field(default_factory=Recorder)


# Why a response scored nothing. already_scored: what the conversation was shown last was scored
# before. nothing_shown: no search showed a memory. none_named: `related` is empty. no_receipt: no
# search and no conversation was named.
NothingScored = Literal["already_scored", "nothing_shown", "none_named", "no_receipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseAnswer:
    """`scored` is empty when there was nothing to score; `nothing` says why.

    `duplicate`: the key was used before, and this call changed nothing. A takeaway whose text is
    known already is none: `memory_id` is then the memory that has the text.
    """

    memory_id: str
    duplicate: bool
    scored: OutcomeAnswer
    nothing: NothingScored | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRequest:
    """A person's thumb on an answer: 1 worked, 0 partial, -1 failed, once per citation.

    The newest thumb on a citation counts: the same one again changes nothing, another one does.
    `found`: the caller did not name the conversation, it is that of the message.
    """

    message_id: str
    score: int
    conversation_id: str | None = None
    found: bool = False
    citations: tuple[str, ...] = ()
    recorder: Recorder = field(default_factory=Recorder)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionReport:
    """One cycle. `deleted` stays 0: rules archive, they delete nothing."""

    examined: int = 0
    promoted: int = 0
    demoted: int = 0
    archived: int = 0
    merged: int = 0
    deleted: int = 0
    errors: int = 0
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionSchedule:
    """`running`: the next cycle over all users comes by itself, not: one goes on now."""

    interval_ms: int
    running: bool
    last_run_at: datetime | None
