"""What an outcome does to an item, which items it may move, and what thumbs judge. Pure."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rayapp.core.errors import IdempotencyConflict, NotFound
from rayapp.learning.records import AppliedOutcome, OutcomeEvent, Recorder, Skipped, SkipReason
from rayapp.memory.item import NEUTRAL_SCORE, IndexOp, MemoryItem, Outcome, Stats, Status
from rayapp.memory.rules.lifecycle import SUCCESS_VALUE, rate, round_stored
from rayapp.memory.rules.revision import requeued
from rayapp.memory.tiers import SURVIVES_EXPIRY_SCORE, TIER_POLICY, Tier

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
    newest = stats.last_outcome_at is None or stats.last_outcome_at <= at
    return replace(
        stats,
        **{counter: getattr(stats, counter) + 1},
        **rate(stats.uses + 1, stats.success_count + value),
        score=round_stored(min(1.0, max(0.0, stats.score + SCORE_DELTA[outcome]))),
        last_outcome=outcome if newest else stats.last_outcome,
        last_outcome_at=at if newest else stats.last_outcome_at,
        tier_uses=stats.tier_uses + 1,
        tier_success=round_stored(stats.tier_success + value),
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


def apply_outcome(item: MemoryItem, outcome: Outcome, at: datetime, now: datetime) -> MemoryItem:
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


MILLISECOND = timedelta(milliseconds=1)


def applied_to(before: MemoryItem, event: OutcomeEvent) -> AppliedOutcome:
    """What is kept of `event` on an item that stood as `before`: how it stands since, and what
    really moved."""
    after = apply_outcome(before, event.outcome, event.at, event.at)
    shift = timedelta(0)
    if before.expires_at is not None and after.expires_at is not None:
        shift = after.expires_at - before.expires_at
    return AppliedOutcome(
        memory_id=after.memory_id,
        point_id=after.point_id,
        tier=after.tier,
        uses=after.stats.uses,
        success_count=after.stats.success_count,
        score=after.stats.score,
        wilson_score=after.stats.wilson_score,
        doc_id=after.source.doc_id,
        score_moved=round_stored(after.stats.score - before.stats.score),
        lifetime_moved_ms=round(shift / MILLISECOND),
    )


# Limits of a principal that does not own the memories: such a thumb judged nothing, so it must not
# stand in the way of the next one.
REFUSALS: frozenset[SkipReason] = frozenset({"not_shown", "already_scored", "rate"})
NUMBER_DIGITS = 8  # fixed, so that keys sort by number


@dataclass(frozen=True, slots=True)
class Thumb:
    """The newest thumb on a citation; `skipped` when it is of no memory that can be scored."""

    outcome: Outcome
    skipped: Skipped | None


def key_prefix(conversation_id: str | None, message_id: str) -> str:
    """What the keys of an answer's thumbs start with. The space is in no key of a caller.

    Message ids may be unique in their conversation only. The colon is in no prefix of old rows.
    """
    answer = json.dumps([conversation_id, message_id])
    return f"feedback :{hashlib.sha256(answer.encode()).hexdigest()} "


def old_key_prefix(message_id: str) -> str:
    """The prefix of rows written before conversations were part of it."""
    return f"feedback {hashlib.sha256(message_id.encode()).hexdigest()} "


def of_conversation(
    events: Sequence[OutcomeEvent], conversation_id: str | None
) -> list[OutcomeEvent]:
    """Of the rows under an old prefix, those of this conversation."""
    return [event for event in events if event.conversation_id == conversation_id]


def next_key(prefix: str, events: Sequence[OutcomeEvent]) -> str:
    """The key of the next thumb. `events`: those under `prefix`, newest first."""
    number = int(events[0].idempotency_key.removeprefix(prefix)) + 1 if events else 1
    return f"{prefix}{number:0{NUMBER_DIGITS}d}"


def newest_thumbs(events: Sequence[OutcomeEvent]) -> dict[str, Thumb]:
    """The thumb in effect, by citation. `events`: those of the answer, newest first."""
    found: dict[str, Thumb] = {}
    for event in events:
        skipped = {one.memory_id: one for one in event.skipped}
        for memory_id in event.memory_ids:
            why = skipped.get(memory_id)
            if why is None or why.reason not in REFUSALS:
                found.setdefault(memory_id, Thumb(event.outcome, why))
    return found


def replaced_by(
    events: Sequence[OutcomeEvent], citations: Collection[str], recorder: Recorder
) -> tuple[str, ...]:
    """Keys of the thumbs that a new one on `citations` may replace.

    Only an owner replaces what somebody else recorded (decision 0013).
    """
    named = frozenset(citations)
    return tuple(
        event.idempotency_key
        for event in events
        if recorder.may_judge(event.principal) and not named.isdisjoint(event.memory_ids)
    )


# Hex digits of a fingerprint: 128 bits, so that two requests of one key never meet by chance.
FINGERPRINT_CHARS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The living item behind a named id: the winner when the named one was merged."""

    memory_id: str
    point_id: str
    tier: Tier
    doc_id: str | None = None
    stored_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestLimits:
    """What a principal that does not own the memories may judge through one receipt.

    Attributes:
        shown: memory ids that the receipt showed to this principal; empty without a receipt.
        judged: points that it judged before and may not judge again yet.
        left: memories that it may still judge in this hour.
    """

    shown: frozenset[str] = frozenset()
    judged: frozenset[str] = frozenset()
    left: int = 0


# How long a memory that a guest has judged is closed to it, whatever other receipts show it, and
# the window of its rate.
GUEST_MEMORY_WINDOW = timedelta(hours=24)
GUEST_RATE_WINDOW = timedelta(hours=1)
# When an event was recorded, and the points that it moved.
Judgement = tuple[datetime, tuple[str, ...]]


def guest_limits(
    shown: Iterable[str],
    judged: Iterable[str],
    past: Sequence[Judgement],
    now: datetime,
    per_hour: int,
) -> GuestLimits:
    """What is left to a guest.

    Args:
        judged: points that count as judged through this receipt.
        past: its events of the last `GUEST_MEMORY_WINDOW`.
    """
    recent = sum(len(points) for at, points in past if at > now - GUEST_RATE_WINDOW)
    return GuestLimits(
        shown=frozenset(shown),
        judged=frozenset(judged).union(*(points for _, points in past)),
        left=max(0, per_hour - recent),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomePlan:
    """Attributes:
    targets: items to move, each once, in the order in which they were named.
    documents: books whose effectiveness is learned, each once.
    points: points of everything that counts, books included.
    closes_turn: the receipt counts as scored.
    """

    targets: tuple[Target, ...]
    skipped: tuple[Skipped, ...]
    documents: tuple[str, ...]
    points: tuple[str, ...]
    closes_turn: bool


@dataclass(slots=True)
class _Draft:
    targets: dict[str, Target] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    documents: dict[str, None] = field(default_factory=dict)
    books: dict[str, None] = field(default_factory=dict)
    foreign: int = 0


def plan_outcome(
    event: OutcomeEvent, found: Mapping[str, Target], *, guest: GuestLimits | None, strict: bool
) -> OutcomePlan:
    """Decide over every named id. `found` maps named ids to the items behind them.

    `guest` is None for the owner of the memories.
    Raises NotFound when `strict` and an id has no living item.
    """
    draft = _Draft()
    weak = {skipped.memory_id: skipped for skipped in event.skipped}
    for memory_id in dict.fromkeys(event.memory_ids):
        if memory_id in weak:
            draft.skipped.append(weak[memory_id])
            continue
        target = found.get(memory_id)
        reason = _refusal(memory_id, target, guest, event.principal)
        foreign = target is not None and target.stored_by != event.principal
        if reason is None and guest is not None and foreign:
            # What a guest says of what somebody else stored is limited in number.
            reason = "rate" if draft.foreign >= guest.left else None
            draft.foreign += reason is None
        if reason is None and target is None and strict:
            raise NotFound(
                f"No memory {memory_id} of yours: correct the id or leave it out; "
                "nothing was recorded.",
                details={"memory_id": memory_id},
            )
        if reason is not None or target is None:
            draft.skipped.append(Skipped(memory_id, reason or "gone"))
        else:
            _count(draft, memory_id, target)
    points = (*draft.targets, *draft.books)
    open_ids = not event.memory_ids or len(weak) < len(set(event.memory_ids))
    return OutcomePlan(
        targets=tuple(draft.targets.values()),
        skipped=tuple(draft.skipped),
        documents=tuple(draft.documents),
        points=points,
        closes_turn=open_ids if guest is None else bool(points),
    )


def recorded(
    event: OutcomeEvent, plan: OutcomePlan, applied: Mapping[str, AppliedOutcome]
) -> OutcomeEvent:
    """The event with what became of it; `applied` is keyed by point."""
    return replace(
        event,
        applied=tuple(applied[target.point_id] for target in plan.targets),
        skipped=plan.skipped,
        documents=plan.documents,
    )


def fingerprint(**parts: object) -> str:
    """A short hash of a request's parts, which are JSON values: equal parts, equal hash."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_CHARS]


def check_same(first: OutcomeEvent, event: OutcomeEvent) -> None:
    """Raise IdempotencyConflict unless `event` repeats `first`, which has the same key.

    Two requests are compared as they were sent: what they mean (a position, the newest receipt)
    may be something else by now.
    """
    if first.request_hash and event.request_hash:
        if first.request_hash != event.request_hash:
            raise key_reused()
        return
    same = (
        first.outcome is event.outcome
        and first.receipt_id == event.receipt_id
        and set(first.memory_ids) == set(event.memory_ids)
    )
    if not same:
        raise key_reused()


def key_reused() -> IdempotencyConflict:
    return IdempotencyConflict(
        "This idempotency key was used with another request: use a new key for a new outcome."
    )


def _refusal(
    memory_id: str, target: Target | None, guest: GuestLimits | None, principal: str
) -> SkipReason | None:
    """Why a guest may not judge this item; None when it may, and always for the owner. What a
    principal stored itself it may judge in full (decision 0013)."""
    if guest is None or (target is not None and target.stored_by == principal):
        return None
    if memory_id not in guest.shown:
        return "not_shown"
    judged = target is not None and target.point_id in guest.judged
    return "already_scored" if judged else None


def _count(draft: _Draft, memory_id: str, target: Target) -> None:
    if TIER_POLICY[target.tier].scored:
        draft.targets[target.point_id] = target
        return
    draft.skipped.append(Skipped(memory_id, "not_scored"))
    if target.tier is Tier.BOOKS and target.doc_id:
        draft.books[target.point_id] = None
        draft.documents[target.doc_id] = None
