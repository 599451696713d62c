"""A changed verdict takes the place of the earlier one: what is taken back, and how. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from rayapp.graphs.rules.content import CLOCK_SKEW, happened_to
from rayapp.learning.records import AppliedOutcome, OutcomeEvent, Withdrawn
from rayapp.learning.rules import outcomes
from rayapp.memory.item import IndexOp, MemoryItem, Status
from rayapp.memory.rules.lifecycle import SUCCESS_VALUE, rate, round_stored
from rayapp.memory.rules.revision import requeued


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """One earlier verdict on one item, which the item gives back."""

    event: OutcomeEvent
    applied: AppliedOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What a new verdict takes back: by point of its targets and of what was merged into them, and
    by key of the earlier events."""

    takings: Mapping[str, tuple[Taking, ...]]
    withdrawn: Mapping[str, Withdrawn]


def standing(event: OutcomeEvent, withdrawn: Withdrawn) -> OutcomeEvent:
    """`event` without what was withdrawn."""
    return replace(
        event,
        applied=tuple(one for one in event.applied if one.point_id not in withdrawn.points),
        documents=tuple(doc for doc in event.documents if doc not in withdrawn.documents),
        tools=tuple(tool for tool in event.tools if tool not in withdrawn.tools),
    )


def counts(event: OutcomeEvent) -> bool:
    """Whether the graphs have anything to count of it."""
    return bool(event.applied or event.documents or event.tools)


def replacement(
    earlier: Iterable[OutcomeEvent],
    event: OutcomeEvent,
    found: Mapping[str, outcomes.Target],
    plan: outcomes.OutcomePlan,
) -> Replacement:
    """What of `earlier` gives way to `event`: the items that it moves, and the books and tools that
    it judges.

    An item that was merged since gives back what the loser brought into it, and so does the row of
    the loser: that is what it is again, should it be set free.
    """
    moved = {target.point_id for target in plan.targets}
    behind = {target.point_id: target.point_id for target in plan.targets}
    by_name = {name: t.point_id for name, t in found.items() if t.point_id in moved}
    takings: dict[str, tuple[Taking, ...]] = {}
    withdrawn: dict[str, Withdrawn] = {}
    for old in earlier:
        still = standing(old, old.withdrawn)
        points: list[str] = []
        for one in still.applied:
            point = behind.get(one.point_id) or by_name.get(one.memory_id)
            if point is None:
                continue
            for row in {point, one.point_id}:
                takings[row] = (*takings.get(row, ()), Taking(event=old, applied=one))
            points.append(one.point_id)
        documents = [doc for doc in still.documents if doc in plan.documents]
        tools = tuple(tool for tool in still.tools if tool in event.tools)
        if points or documents or tools:
            withdrawn[old.idempotency_key] = Withdrawn(tuple(points), tuple(documents), tools)
    return Replacement(takings=takings, withdrawn=withdrawn)


def withdrawing(event: OutcomeEvent, taken: Withdrawn, *, owes: bool) -> tuple[OutcomeEvent, bool]:
    """`event` after more of it was withdrawn, and whether it owes the graphs now.

    `owes`: whether the graphs have still to count it as it stood until now.
    """
    before = event.withdrawn
    changed = replace(
        event,
        withdrawn=Withdrawn(
            before.points + taken.points,
            before.documents + taken.documents,
            before.tools + taken.tools,
        ),
        counted=event.counted if owes else before,
    )
    left = standing(changed, changed.withdrawn)
    return changed, changed.counted is not None or counts(left)


def everything(event: OutcomeEvent) -> tuple[tuple[Taking, ...], Withdrawn]:
    """What still stands of an event: what its items would give back, and all of it as withdrawn."""
    left = standing(event, event.withdrawn)
    takings = tuple(Taking(event=event, applied=one) for one in left.applied)
    points = tuple(one.point_id for one in left.applied)
    return takings, Withdrawn(points, left.documents, left.tools)


def withdrawn_key(key: str, token: str) -> str:
    """The key of an event that was withdrawn as a whole: its own is free again. The space is in no
    key of a caller."""
    return f"withdrawn {token} {key}"


def counted_since(stored: Iterable[tuple[str, datetime]]) -> dict[str, datetime]:
    """From when on outcomes of each point count for a memory; the ones before were about a deleted
    memory that had the id.

    `stored`: the point of the memory and of each one that was merged into it, and when that was
    stored.
    """
    return {point_id: at - CLOCK_SKEW for point_id, at in stored}


def given_back(
    item: MemoryItem, takings: Iterable[Taking], last: OutcomeEvent | None, now: datetime
) -> MemoryItem:
    """`item` without these outcomes, which nothing takes the place of. `last`: the newest other
    outcome that stands and counts for it; the index is asked to follow."""
    without = taken_back(item, takings, now)
    stats = replace(
        without.stats,
        last_outcome=last.outcome if last else None,
        last_outcome_at=last.at if last else None,
    )
    if item.status is not Status.ACTIVE:
        return replace(without, stats=stats)
    return replace(without, stats=stats, index=requeued(item.index, IndexOp.PAYLOAD, now))


def taken_back(item: MemoryItem, takings: Iterable[Taking], now: datetime) -> MemoryItem:
    """`item` without these verdicts. What it does not count any more is not taken from it.

    Counters go back exactly. `score` goes back by what the verdict really moved it and stays in
    0..1: exactly what it was, unless one of the others met a limit because of it. Tier counters and
    the lifetime belong to a stay in a tier: they go back while that stay lasts.
    """
    for taking in takings:
        item = _taken_back(item, taking, now)
    return item


def _taken_back(item: MemoryItem, taking: Taking, now: datetime) -> MemoryItem:
    event, one = taking.event, taking.applied
    outcome = event.outcome
    counter = f"{outcome.value}_count"
    count = getattr(item.stats, counter)
    # The copy that was kept of two may be the later one, and has the counters of both.
    another = item.point_id == one.point_id and not happened_to(item, event.at)
    if count < 1 or item.stats.uses < 1 or another:
        return item
    value = SUCCESS_VALUE[outcome]
    moved = outcomes.SCORE_DELTA[outcome] if one.score_moved is None else one.score_moved
    stats = replace(
        item.stats,
        **rate(item.stats.uses - 1, max(0.0, item.stats.success_count - value)),
        **{counter: count - 1},
        score=round_stored(min(1.0, max(0.0, item.stats.score - moved))),
    )
    same_stay = item.tier is one.tier and item.tier_entered_at <= event.at
    if not same_stay:
        return replace(item, stats=stats)
    stats = replace(
        stats,
        tier_uses=max(0, stats.tier_uses - 1),
        tier_success=round_stored(max(0.0, stats.tier_success - value)),
    )
    if item.point_id != one.point_id or item.status is not Status.ACTIVE:
        return replace(item, stats=stats)
    return replace(item, stats=stats, expires_at=_expiry_before(item.expires_at, taking, now))


def _expiry_before(expires_at: datetime | None, taking: Taking, now: datetime) -> datetime | None:
    """The lifetime that a verdict gave goes; like a failure, that leaves `MIN_TTL` from now."""
    if expires_at is None:
        return None
    ms = taking.applied.lifetime_moved_ms
    shift = outcomes.TTL_SHIFT[taking.event.outcome] if ms is None else ms * outcomes.MILLISECOND
    back = expires_at - shift
    return back if back >= expires_at else min(expires_at, max(back, now + outcomes.MIN_TTL))
