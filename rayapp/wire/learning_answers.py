"""Shapes of the answers about outcomes and promotion."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from rayapp.wire.answers import Answer, EstimateView


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
