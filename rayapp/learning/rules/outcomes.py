"""What an outcome does to counters, score and lifetime of an item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from rayapp.memory.item import (
    NEUTRAL_SCORE,
    IndexOp,
    MemoryItem,
    Outcome,
    Stats,
    Status,
)
from rayapp.memory.rules.revision import requeued
from rayapp.memory.rules.success import SUCCESS_VALUE, rounded, wilson_lower_bound
from rayapp.memory.tiers import SURVIVES_EXPIRY_SCORE

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
