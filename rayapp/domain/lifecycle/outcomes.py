"""What an outcome does to counters, score and lifetime of an item."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rayapp.domain.memory import (
    NEUTRAL_SCORE,
    SCORE_DECIMALS,
    IndexOp,
    MemoryItem,
    Outcome,
    Stats,
    Status,
)
from rayapp.domain.revision import requeued
from rayapp.domain.tiers import SURVIVES_EXPIRY_SCORE

# What one outcome adds to `success_count`. It always adds 1 to `uses`, a failure too: otherwise bad
# items would never look worse than new ones.
SUCCESS_VALUE: Mapping[Outcome, float] = {
    Outcome.WORKED: 1.0,
    Outcome.PARTIAL: 0.5,
    Outcome.UNKNOWN: 0.25,
    Outcome.FAILED: 0.0,
}
# What one outcome adds to `score`, which stays in 0..1.
SCORE_DELTA: Mapping[Outcome, float] = {
    Outcome.WORKED: 0.20,
    Outcome.PARTIAL: 0.05,
    Outcome.UNKNOWN: 0.0,
    Outcome.FAILED: -0.30,
}
# How far one outcome moves the expiry.
TTL_SHIFT: Mapping[Outcome, timedelta] = {
    Outcome.WORKED: timedelta(days=7),
    Outcome.PARTIAL: timedelta(days=3),
    Outcome.UNKNOWN: timedelta(0),
    Outcome.FAILED: timedelta(days=-7),
}
# A failure leaves an item at least this lifetime, our choice.
MIN_TTL = timedelta(hours=1)
# Quantile of the normal distribution for 95 % confidence.
WILSON_Z = 1.96


def wilson_lower_bound(success: float, uses: int) -> float:
    """Lower bound of the success rate (Wilson 1927), 4 decimals; 0.5 when never used.

    `success` may be fractional; it counts as `uses` at most.
    """
    return NEUTRAL_SCORE if uses <= 0 else success_estimate(success, uses).low


@dataclass(frozen=True, slots=True)
class SuccessEstimate:
    """How often a memory helps: what is most likely, and between what it lies (95 %); each 0..1."""

    value: float
    low: float
    high: float


def success_estimate(success: float, uses: int) -> SuccessEstimate:
    """The Wilson interval and its centre, 4 decimals: what people are shown (decision 0049).

    The lower bound alone falls from 0.5 to 0.2 with the first success, because it also says how
    little is known. Here no success lowers any of the three numbers, and no failure raises one.
    """
    if uses <= 0:
        return UNJUDGED
    share = min(1.0, max(0.0, success / uses))
    square = WILSON_Z * WILSON_Z
    scale = 1 + square / uses
    centre = share + square / (2 * uses)
    spread = WILSON_Z * math.sqrt((share * (1 - share) + square / (4 * uses)) / uses)
    return SuccessEstimate(
        value=rounded(centre / scale),
        low=rounded(max(0.0, (centre - spread) / scale)),
        high=rounded(min(1.0, (centre + spread) / scale)),
    )


# Nothing is known: what the formula tends to.
UNJUDGED = SuccessEstimate(value=NEUTRAL_SCORE, low=0.0, high=1.0)


def with_outcome(stats: Stats, outcome: Outcome, at: datetime) -> Stats:
    """`stats` after one more outcome. The counters do not depend on the order of outcomes."""
    counter = f"{outcome.value}_count"
    value = SUCCESS_VALUE[outcome]
    uses, success = stats.uses + 1, rounded(stats.success_count + value)
    newest = stats.last_outcome_at is None or stats.last_outcome_at <= at
    return replace(
        stats,
        **{counter: getattr(stats, counter) + 1},
        uses=uses,
        success_count=success,
        success_rate=rounded(success / uses),
        wilson_score=wilson_lower_bound(success, uses),
        score=rounded(min(1.0, max(0.0, stats.score + SCORE_DELTA[outcome]))),
        last_outcome=outcome if newest else stats.last_outcome,
        last_outcome_at=at if newest else stats.last_outcome_at,
        tier_uses=stats.tier_uses + 1,
        tier_success=rounded(stats.tier_success + value),
    )


def moved_expiry(
    expires_at: datetime | None, outcome: Outcome, now: datetime, *, score: float = NEUTRAL_SCORE
) -> datetime | None:
    """The expiry after `outcome`. A failure leaves `MIN_TTL` from now, and never adds time.

    An item that outlived its expiry by its `score` before the outcome has `MIN_TTL` in any case:
    one failure must not hide at once what proved itself.
    """
    if expires_at is None:
        return None
    moved = expires_at + TTL_SHIFT[outcome]
    if expires_at <= now and score >= SURVIVES_EXPIRY_SCORE:
        return max(moved, now + MIN_TTL)
    if moved >= expires_at:
        return moved
    return min(expires_at, max(moved, now + MIN_TTL))


def judged(item: MemoryItem, outcome: Outcome, at: datetime, now: datetime) -> MemoryItem:
    """`item` after an outcome recorded `at`; `now` is when the index is asked to follow.

    An archived item keeps counting, but has no lifetime and no place in the index to move.
    `version` and `updated_at` stay: an outcome is not an edit.
    """
    stats = with_outcome(item.stats, outcome, at)
    if item.status is not Status.ACTIVE:
        return replace(item, stats=stats)
    return replace(
        item,
        stats=stats,
        expires_at=moved_expiry(item.expires_at, outcome, at, score=item.stats.score),
        index=requeued(item.index, IndexOp.PAYLOAD, now),
    )


def rounded(value: float) -> float:
    """Every stored number has 4 decimals, so that stores and domain code agree exactly."""
    return round(value, SCORE_DECIMALS)
