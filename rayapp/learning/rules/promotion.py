"""Which item changes its tier or leaves, by ordered named rules; when cycles run. Pure."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from rayapp.core.errors import NotFound, VersionConflict
from rayapp.learning.records import Move
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, Outcome, Status
from rayapp.memory.rules import creation
from rayapp.memory.rules.filtering import is_expired
from rayapp.memory.rules.revision import revised, touch
from rayapp.memory.tiers import GARBAGE_SCORE, Tier


def after_move(stored: MemoryItem, move: Move) -> MemoryItem:
    """`stored` after `move`, which was decided on the state in `move.row`.

    Outcomes do not raise the version, but they are what the decision rests on: when one came
    between, nothing is moved and the caller decides again. So no counter is lost, and no item
    leaves that was just found helpful. A merge adds mentions too, so these must be the same. An id
    that was deleted and stored again is another item: the time it was stored tells them apart.
    """
    read = move.row
    same = stored.version == move.expected_version and stored.stats == read.stats
    same = same and stored.stored_at == move.item.stored_at
    if read.change_type is ChangeType.MERGE:
        same = same and stored.quality == read.quality
    if not same:
        raise VersionConflict(
            f"{stored.memory_id} changed meanwhile: read it again and decide again.",
            details={"memory_id": stored.memory_id, "version": stored.version},
        )
    return revised(stored, move.item, read)


def not_found(move: Move) -> NotFound:
    """The item of `move` is not there any more."""
    return NotFound(
        f"No memory {move.item.memory_id}: check the id, it may have been deleted.",
        details={"memory_id": move.item.memory_id},
    )


def winner_of(loser: MemoryItem, items: Iterable[MemoryItem]) -> MemoryItem | None:
    """The one of `items` that `loser` was merged into."""
    wanted = (loser.user_id, loser.merged_into)
    return next((item for item in items if (item.user_id, item.memory_id) == wanted), None)


Action = Literal["promote", "demote", "archive", "keep"]
Policy = Literal["score", "wilson"]

# The tiers that rules move between; memory_bank, books and DataGov are left alone.
RULED_TIERS: tuple[Tier, ...] = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS)

# Our choices. A score starts at 0.5; `worked` adds 0.2 to it and `failed` takes 0.3.
HISTORY_SCORE = 0.7  # what one success makes of a neutral item
HISTORY_USES = 2  # outcomes: one alone may be chance
PATTERNS_SCORE = 0.9  # the score that also outlives an expiry
PATTERNS_TIER_USES = 3  # outcomes since entering history, its probation
PATTERNS_TIER_SUCCESS = 5.0  # success values since entering history
DEMOTION_SCORE = 0.3  # patterns below it go back to history
YOUNG_GARBAGE_SCORE = 0.1  # `GARBAGE_SCORE` while young
YOUNG = timedelta(days=7)  # since it was stored

EXPIRED = "expired"
# Why the service itself archives: a full bank or conversation, the end of a lifetime.
OWN_REASONS = frozenset({"capacity", EXPIRED})
# Our own uuid5 namespace for the ids of events.
EVENT_NAMESPACE = uuid.UUID("0c1c0a1e-6a5b-5c1d-9f0e-5f7e3b1a9d42")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionParams:
    """`policy` says what gates a promotion; it gates nothing else."""

    policy: Policy = "score"

    def evidence(self, item: MemoryItem) -> float:
        return item.stats.score if self.policy == "score" else item.stats.wilson_score


@dataclass(frozen=True, slots=True)
class Decision:
    """`to` is the tier that a promotion or demotion leads to; `rule`, the name of the one that
    decided, stands in the event."""

    action: Action
    reason: str
    to: Tier | None = None
    rule: str = ""


# One rule; it answers None when it has nothing to say about the item.
Judge = Callable[[MemoryItem, datetime, PromotionParams], Decision | None]


def left_alone(item: MemoryItem, now: datetime, params: PromotionParams) -> Decision | None:
    """Archived items, and tiers that outcomes and time never move."""
    if item.status is Status.ACTIVE and item.tier in RULED_TIERS:
        return None
    return Decision("keep", "not moved by rules")


def promote_working(item: MemoryItem, now: datetime, params: PromotionParams) -> Decision | None:
    """It helped twice: working becomes history."""
    gate, uses = params.evidence(item), item.stats.uses
    if item.tier is not Tier.WORKING or gate < HISTORY_SCORE or uses < HISTORY_USES:
        return None
    return Decision("promote", f"{params.policy} {gate:g} after {uses} uses", Tier.HISTORY)


def promote_history(item: MemoryItem, now: datetime, params: PromotionParams) -> Decision | None:
    """It passed its probation in history: it becomes a pattern, unless it would not stay one."""
    gate, stats = params.evidence(item), item.stats
    if item.tier is not Tier.HISTORY or gate < PATTERNS_SCORE or stats.score < DEMOTION_SCORE:
        return None
    if stats.tier_uses < PATTERNS_TIER_USES or stats.tier_success < PATTERNS_TIER_SUCCESS:
        return None
    reason = f"{params.policy} {gate:g}, success {stats.tier_success:g} in history"
    return Decision("promote", reason, Tier.PATTERNS)


def demote_patterns(item: MemoryItem, now: datetime, params: PromotionParams) -> Decision | None:
    """A pattern that stopped helping goes back to history."""
    score = item.stats.score
    if item.tier is not Tier.PATTERNS or score >= DEMOTION_SCORE:
        return None
    return Decision("demote", f"score {score:g} below {DEMOTION_SCORE:g}", Tier.HISTORY)


def archive_expired(item: MemoryItem, now: datetime, params: PromotionParams) -> Decision | None:
    """Its time is over and its score does not outlive it."""
    return Decision("archive", EXPIRED) if is_expired(item, now) else None


def archive_garbage(item: MemoryItem, now: datetime, params: PromotionParams) -> Decision | None:
    """It was judged and does not help; a young item gets more patience. What is asked of every
    answer holds until it is taken back (decision 0056): a bad answer is no failure of it."""
    score = item.stats.score
    young = now - item.stored_at < YOUNG
    bound = YOUNG_GARBAGE_SCORE if young else GARBAGE_SCORE
    stays = item.tier is Tier.PATTERNS or item.instruction is not None
    if stays or not item.stats.uses or score >= bound:
        return None
    return Decision("archive", f"score {score:g} below {bound:g}")


def buried(item: MemoryItem) -> bool:
    """Archived after it failed, by the rule for garbage or as good as: it helps nobody, but that it
    failed must not be forgotten."""
    failed = item.stats.last_outcome is Outcome.FAILED and item.stats.score < GARBAGE_SCORE
    return item.status is Status.ARCHIVED and item.merged_into is None and failed


PROMOTION_RULES: tuple[Judge, ...] = (
    left_alone,
    promote_working,
    promote_history,
    demote_patterns,
    archive_expired,
    archive_garbage,
)
KEEP = Decision("keep", "no rule applies", rule="none")


def decide(item: MemoryItem, now: datetime, params: PromotionParams) -> Decision:
    """What the first rule says that has something to say."""
    for rule in PROMOTION_RULES:
        decision = rule(item, now, params)
        if decision is not None:
            return replace(decision, rule=rule.__name__)
    return KEEP


def apply_move(item: MemoryItem, decision: Decision, now: datetime) -> MemoryItem:
    """`item` after `decision`: a fresh lifetime and fresh tier counters.

    Lifetime counters stay as they are: resetting one of a pair would falsify the Wilson score.
    """
    if decision.action == "archive":
        return creation.archived(item, decision.reason, now)
    if decision.to is None:
        return item
    return touch(
        item,
        IndexOp.PAYLOAD,
        now,
        tier=decision.to,
        tier_entered_at=now,
        expires_at=creation.lifetime(decision.to, item.instruction, now),
        stats=replace(item.stats, tier_uses=0, tier_success=0.0),
    )


def transition_id(item: MemoryItem, kind: str) -> str:
    """The id of the event about leaving this version of `item`; a repeated try makes the same.

    An id may be stored again after it was deleted: the time it was stored tells the two apart.
    """
    stored = item.stored_at.astimezone(UTC).isoformat(timespec="milliseconds")
    return event_id(item.point_id, stored, str(item.version), kind)


def event_id(*parts: str) -> str:
    """The same for the same parts: who does something twice notes it once."""
    return str(uuid.uuid5(EVENT_NAMESPACE, "\x00".join(parts)))


# Whoever holds this lease runs the cycles.
OWNER_LEASE = "maintenance"


@dataclass(frozen=True, slots=True)
class Activity:
    """What a user stored since the last cycle over all users."""

    stored: int = 0
    conversations: int = 0


def cycle_due(now: Activity, seen: Activity, exchanges: int) -> bool:
    """After every `exchanges` stored exchanges, and on a change of conversation.

    `seen` is the activity at the user's own last cycle, so nobody's cycle counts for another.
    """
    switched = now.conversations > max(1, seen.conversations)
    return switched or now.stored - seen.stored >= exchanges


def is_scheduled(
    *, owned: bool, last_cycle: datetime | None, interval: timedelta, now: datetime
) -> bool:
    """Whether the next cycle over all users will come by itself.

    It does while somebody owns them. Between two owners it does too, until a cycle is overdue;
    before the first cycle an owner is still to come.
    """
    return owned or last_cycle is None or now - last_cycle <= interval
