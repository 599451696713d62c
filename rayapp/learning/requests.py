"""What callers ask of learning and what they get back: plain values, no HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rayapp.learning.records import AppliedOutcome, Signal, Skipped
from rayapp.memory.item import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Who records outcomes. `owner` False limits them to what this principal was shown."""

    principal: str = "local"
    owner: bool = True


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
    """

    message_id: str
    score: int
    conversation_id: str | None = None
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


# --- graph views ---------------------------------------------------------------------------


# --- insights ------------------------------------------------------------------------------
