"""When two facts say the same, which of them stays, and how they become one. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.learning.records import Move
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, Quality, Stats, Status
from rayapp.memory.rules import creation
from rayapp.memory.rules.creation import MAX_TAGS
from rayapp.memory.rules.lifecycle import rate, reopen, round_stored
from rayapp.memory.rules.revision import replaced_state, requeued
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import normalize
from rayapp.text.paraphrase import says_the_same
from rayapp.text.signature import difference

# Where a fact is kept for good; elsewhere a repetition runs out by itself.
DEDUP_TIERS = frozenset({Tier.MEMORY_BANK, Tier.PATTERNS})


def told_apart(item: MemoryItem, other: MemoryItem, cosine: float, similarity: float) -> str | None:
    """The first thing that tells the two apart, in a word; None: they become one memory. The order
    of the two does not matter.

    `similarity`: least cosine of two texts that say the same; 0 = nothing is merged.
    """
    return _apart(item, other) or _distance(cosine, similarity) or _unlike(item, other)


def pair(a: MemoryItem, b: MemoryItem) -> tuple[MemoryItem, MemoryItem]:
    """(winner, loser): the one of higher quality stays, then the more trusted word, so that of a
    person's text and a model's the person's is kept; then Wilson, then the newer, then the greater
    id."""
    return (a, b) if _standing(a) >= _standing(b) else (b, a)


def _standing(item: MemoryItem) -> tuple[float, float, float, datetime, str]:
    quality, wilson = item.quality.quality_score, item.stats.wilson_score
    return (quality, item.trust, wilson, item.stored_at, item.memory_id)


def _apart(item: MemoryItem, other: MemoryItem) -> str | None:
    """What keeps the two apart whatever they say."""
    checks = (
        ("id", item.point_id != other.point_id),
        ("user", item.user_id == other.user_id),
        ("tier", item.tier is other.tier and item.tier in DEDUP_TIERS),
        ("status", item.status is Status.ACTIVE and other.status is Status.ACTIVE),
        ("subject", _about(item) == _about(other)),
        ("scope", item.dedup_scope == other.dedup_scope),
        ("validity", _validity(item) == _validity(other)),
    )
    return next((name for name, holds in checks if not holds), None)


def _about(item: MemoryItem) -> tuple[str | None, ...]:
    return item.org_id, item.subject_id, item.perspective_owner_id


def _validity(item: MemoryItem) -> tuple[object, ...]:
    return item.valid_from, item.valid_to, item.supersedes, item.superseded_by


def _distance(cosine: float, similarity: float) -> str | None:
    if similarity <= 0.0:
        return "off"
    # Written so that a cosine that is not a number never merges.
    return None if cosine >= similarity else "distance"


def _unlike(item: MemoryItem, other: MemoryItem) -> str | None:
    """What one of the two says and the other does not."""
    if not _labels_agree(item.entities, other.entities):
        return "entities"
    found = difference(item.text, other.text)
    # Every word is compared next, so none can be another name.
    if found not in (None, "names"):
        return found
    return None if says_the_same(item.text, other.text) else "words"


def _labels_agree(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Nobody names an entity, or one of the lists holds the other."""
    one, other = ({normalize(label).casefold() for label in labels} for labels in (a, b))
    return not one or not other or one <= other or other <= one


def older_first(one: MemoryItem, other: MemoryItem) -> tuple[MemoryItem, MemoryItem]:
    """(winner, loser): the id that was stored first is kept."""
    if (other.stored_at, other.memory_id) < (one.stored_at, one.memory_id):
        return other, one
    return one, other


def merged(winner: MemoryItem, loser: MemoryItem, now: datetime) -> tuple[MemoryItem, MemoryItem]:
    """`winner` with what was learned of both, and `loser` archived and pointing at it.

    The winner keeps its id, text, tier and source. Tier counters are added only when both stand
    in one tier: elsewhere they were earned under another probation. A current loser makes a winner
    that was superseded current again: it was said again.
    """
    same_tier = winner.tier is loser.tier
    kept = replace(
        winner,
        stats=_add(winner.stats, loser.stats, same_tier=same_tier),
        quality=_better(winner.quality, loser.quality),
        tags=_unite(winner.tags, loser.tags),
        entities=_unite(winner.entities, loser.entities),
        always_inject=winner.always_inject or loser.always_inject,
        instruction=winner.instruction or loser.instruction,
        created_at=min(winner.created_at, loser.created_at),
        tier_entered_at=(
            min(winner.tier_entered_at, loser.tier_entered_at)
            if same_tier
            else winner.tier_entered_at
        ),
        expires_at=later(winner.expires_at, loser.expires_at),
        updated_at=now,
        index=requeued(winner.index, IndexOp.PAYLOAD, now),
    )
    if loser.superseded_by is None and _said_since(loser, winner.valid_to):
        kept = replace(reopen(kept), valid_to=later(kept.valid_to, loser.valid_to))
    gone = creation.archived(loser, f"merged into {winner.memory_id}", now)
    return kept, replace(gone, merged_into=winner.memory_id)


def _said_since(item: MemoryItem, closed_at: datetime | None) -> bool:
    """A copy of before the replacement says nothing against it."""
    return closed_at is None or item.stored_at >= closed_at


def merge_moves(
    winner: MemoryItem,
    loser: MemoryItem,
    *,
    now: datetime,
    reason: str | None,
    read: MemoryItem | None = None,
) -> list[Move]:
    """The moves of a merge; the loser comes first, so that it gives its text free.

    `read`: the winner as the store holds it, when it also changes its tier in this transition.
    """
    kept, gone = merged(winner, loser, now)
    stored = read if read is not None else winner
    return [_move(gone, loser, reason, now), _move(kept, stored, reason, now)]


def _move(item: MemoryItem, read: MemoryItem, reason: str | None, now: datetime) -> Move:
    row = replaced_state(read, ChangeType.MERGE, reason, now)
    return Move(item=item, expected_version=read.version, row=row)


def _add(winner: Stats, loser: Stats, *, same_tier: bool) -> Stats:
    """Counters of both; what follows from counters is computed again."""
    last = winner if _last(winner) >= _last(loser) else loser
    return Stats(
        **rate(winner.uses + loser.uses, winner.success_count + loser.success_count),
        worked_count=winner.worked_count + loser.worked_count,
        partial_count=winner.partial_count + loser.partial_count,
        unknown_count=winner.unknown_count + loser.unknown_count,
        failed_count=winner.failed_count + loser.failed_count,
        score=_score(winner, loser),
        last_outcome=last.last_outcome,
        last_outcome_at=last.last_outcome_at,
        tier_uses=winner.tier_uses + (loser.tier_uses if same_tier else 0),
        tier_success=round_stored(winner.tier_success + (loser.tier_success if same_tier else 0.0)),
    )


def _score(winner: Stats, loser: Stats) -> float:
    """Weighted by uses: what was judged more often knows better. A copy that was never judged says
    nothing; of two of them the winner's score stays."""
    uses = winner.uses + loser.uses
    if not uses:
        return winner.score
    weighted = winner.score * winner.uses + loser.score * loser.uses
    return round_stored(weighted / uses)


def _last(stats: Stats) -> tuple[bool, float]:
    """Orders by the time of the last outcome; none comes before any."""
    at = stats.last_outcome_at
    return at is not None, at.timestamp() if at is not None else 0.0


def _better(winner: Quality, loser: Quality) -> Quality:
    """The higher quality score of the two, the winner's when equal, with mentions of both."""
    best = loser if loser.quality_score > winner.quality_score else winner
    return replace(best, mentioned_count=winner.mentioned_count + loser.mentioned_count)


def _unite(winner: Sequence[str], loser: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*winner, *loser)))[:MAX_TAGS]


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later of two expiries; none is the latest."""
    return None if one is None or other is None else max(one, other)
