"""Two memories that say the same become one. Pure: used by promotion and by deduplication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.learning.records import Move
from rayapp.memory.item import (
    NEUTRAL_SCORE,
    ChangeType,
    IndexOp,
    MemoryItem,
    Quality,
    Stats,
)
from rayapp.memory.rules import creation
from rayapp.memory.rules.creation import MAX_TAGS
from rayapp.memory.rules.revision import replaced_state, requeued
from rayapp.memory.rules.success import rounded, wilson_lower_bound


def older_first(one: MemoryItem, other: MemoryItem) -> tuple[MemoryItem, MemoryItem]:
    """(winner, loser): the id that was stored first is kept."""
    if (other.stored_at, other.memory_id) < (one.stored_at, one.memory_id):
        return other, one
    return one, other


def merged(winner: MemoryItem, loser: MemoryItem, now: datetime) -> tuple[MemoryItem, MemoryItem]:
    """`winner` with what was learned of both, and `loser` archived and pointing at it.

    The winner keeps its id, text, tier and source. Tier counters are added only when both stand
    in one tier: elsewhere they were earned under another probation.
    """
    same_tier = winner.tier is loser.tier
    kept = replace(
        winner,
        stats=_added(winner.stats, loser.stats, same_tier=same_tier),
        quality=_better(winner.quality, loser.quality),
        tags=_united(winner.tags, loser.tags),
        entities=_united(winner.entities, loser.entities),
        always_inject=winner.always_inject or loser.always_inject,
        created_at=min(winner.created_at, loser.created_at),
        tier_entered_at=(
            min(winner.tier_entered_at, loser.tier_entered_at)
            if same_tier
            else winner.tier_entered_at
        ),
        expires_at=_later(winner.expires_at, loser.expires_at),
        updated_at=now,
        index=requeued(winner.index, IndexOp.PAYLOAD, now),
    )
    gone = creation.archived(loser, f"merged into {winner.memory_id}", now)
    return kept, replace(gone, merged_into=winner.memory_id)


def merge_moves(
    winner: MemoryItem,
    loser: MemoryItem,
    *,
    now: datetime,
    reason: str | None,
    read: MemoryItem | None = None,
) -> list[Move]:
    """The moves of a merge; the loser comes first, so that it gives its text free.

    Args:
        read: the winner as the store holds it, when it also changes its tier in this transition.
    """
    kept, gone = merged(winner, loser, now)
    stored = read if read is not None else winner
    return [_move(gone, loser, reason, now), _move(kept, stored, reason, now)]


def _move(item: MemoryItem, read: MemoryItem, reason: str | None, now: datetime) -> Move:
    row = replaced_state(read, ChangeType.MERGE, reason, now)
    return Move(item=item, expected_version=read.version, row=row)


def _added(winner: Stats, loser: Stats, *, same_tier: bool) -> Stats:
    """Counters of both; what follows from counters is computed again."""
    uses = winner.uses + loser.uses
    success = rounded(winner.success_count + loser.success_count)
    last = winner if _last(winner) >= _last(loser) else loser
    return Stats(
        uses=uses,
        success_count=success,
        worked_count=winner.worked_count + loser.worked_count,
        partial_count=winner.partial_count + loser.partial_count,
        unknown_count=winner.unknown_count + loser.unknown_count,
        failed_count=winner.failed_count + loser.failed_count,
        success_rate=rounded(success / uses) if uses else NEUTRAL_SCORE,
        wilson_score=wilson_lower_bound(success, uses),
        score=_score(winner, loser),
        last_outcome=last.last_outcome,
        last_outcome_at=last.last_outcome_at,
        tier_uses=winner.tier_uses + (loser.tier_uses if same_tier else 0),
        tier_success=rounded(winner.tier_success + (loser.tier_success if same_tier else 0.0)),
    )


def _score(winner: Stats, loser: Stats) -> float:
    """Weighted by uses: what was judged more often knows better.

    A copy that was never judged says nothing; of two of them the winner's score stays.
    """
    uses = winner.uses + loser.uses
    if not uses:
        return winner.score
    weighted = winner.score * winner.uses + loser.score * loser.uses
    return rounded(weighted / uses)


def _last(stats: Stats) -> tuple[bool, float]:
    """Orders by the time of the last outcome; none comes before any."""
    at = stats.last_outcome_at
    return at is not None, at.timestamp() if at is not None else 0.0


def _better(winner: Quality, loser: Quality) -> Quality:
    """The higher quality score of the two, the winner's when equal, with mentions of both."""
    best = loser if loser.quality_score > winner.quality_score else winner
    return replace(best, mentioned_count=winner.mentioned_count + loser.mentioned_count)


def _united(winner: Sequence[str], loser: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*winner, *loser)))[:MAX_TAGS]


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)
