"""Which of the named items an outcome may move, and why the others are left alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rayapp.core.errors import IdempotencyConflict, NotFound
from rayapp.learning.records import AppliedOutcome, OutcomeEvent, Skipped, SkipReason
from rayapp.memory.tiers import TIER_POLICY, Tier

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
    event: OutcomeEvent,
    found: Mapping[str, Target],
    *,
    guest: GuestLimits | None,
    strict: bool,
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
        if reason is None and _is_foreign(target, guest, event.principal):
            reason = "rate" if guest is not None and draft.foreign >= guest.left else None
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
    """Why a guest may not judge this item; None when it may, and always for the owner.

    What a principal stored itself it may judge in full (decision 0013).
    """
    if guest is None or (target is not None and target.stored_by == principal):
        return None
    if memory_id not in guest.shown:
        return "not_shown"
    judged = target is not None and target.point_id in guest.judged
    return "already_scored" if judged else None


def _is_foreign(target: Target | None, guest: GuestLimits | None, principal: str) -> bool:
    """A guest's judgement of what somebody else stored: these are limited in number."""
    return guest is not None and target is not None and target.stored_by != principal


def _count(draft: _Draft, memory_id: str, target: Target) -> None:
    if TIER_POLICY[target.tier].scored:
        draft.targets[target.point_id] = target
        return
    draft.skipped.append(Skipped(memory_id, "not_scored"))
    if target.tier is Tier.BOOKS and target.doc_id:
        draft.books[target.point_id] = None
        draft.documents[target.doc_id] = None
