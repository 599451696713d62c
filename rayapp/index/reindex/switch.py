"""Puts the filled collection behind the alias without losing a write and without a pause for users.

The indexers are held for the moment of the switch. Their last batches are waited for before it,
and again after it: one that claimed just before the hold may still have written to the old
collection, and what it wrote is brought over before the hold ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.vectors import IndexSchema
from rayapp.index.point_builder import PointFailure
from rayapp.index.ports import Requeue, VectorIndex
from rayapp.index.reindex.copy import Copied, Copier, Follower
from rayapp.index.reindex.parts import ReindexFacts, ReindexParts, belongs
from rayapp.index.reindex.verify import count_problem
from rayapp.index.serving import is_served, served_now
from rayapp.index.write_barrier import IndexHold, uncut
from rayapp.memory.item import IndexOp

# Passes before the hold: each brings over what came in during the last one, so few are needed.
# A service that indexes faster than a pass copies is caught up with while its indexers are held.
MAX_PASSES = 20
# Items that could not be embedded and do not keep the alias from moving: as many, or this share.
FAILED_ALLOWED = 10
FAILED_SHARE = 0.01


@dataclass(slots=True)
class Gaps:
    """Items of the truth that the new collection cannot have."""

    failures: dict[str, PointFailure] = field(default_factory=dict)
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one look under the hold.

    Attributes:
        reason: why the alias was left alone for a fault; None: there is none.
        again: another look may find otherwise.
        served: a service with the old model came up, so the alias waits for its restart.
    """

    reason: str | None = None
    again: bool = False
    served: bool = False


async def catch_up(follower: Follower, small: int) -> None:
    """Passes until one had little to do."""
    for _ in range(MAX_PASSES):
        if await follower.one_pass() < small:
            return


async def fill_gaps(parts: ReindexParts, facts: ReindexFacts, copier: Copier) -> Gaps:
    """One walk through the truth for items that the collection lacks; they are brought over."""
    total, seen, after, gaps = await parts.scan.total(), 0, None, Gaps()
    limit = parts.runtime.settings.reindex.batch_size
    while True:
        items, after = await parts.scan.page(after=after, until=None, limit=limit)
        seen += sum(map(belongs, items))
        wanted = [item for item in items if belongs(item)]
        done: Copied = await copier.bring(wanted)
        gaps.failures |= {failure.item.point_id: failure for failure in done.failures}
        if after is None:
            break
    gaps.unreadable = max(0, total - seen)
    return gaps


def too_many(gaps: Gaps, total: int) -> str | None:
    """Why the failures keep the alias where it is."""
    failed = len(gaps.failures)
    if failed <= max(FAILED_ALLOWED, int(total * FAILED_SHARE)):
        return None
    return f"{failed} of {total} items could not be embedded: see the samples of the report."


async def serving_elsewhere(parts: ReindexParts, facts: ReindexFacts) -> bool:
    """True when a service still runs with the schema behind the alias, and it is another one."""
    other = await _other_schema(parts, facts)
    return other is not None and await is_served(parts.leases, other, parts.sleep)


async def compared_and_switched(
    parts: ReindexParts, facts: ReindexFacts, follower: Follower, gaps: Gaps, *, move: bool
) -> Outcome:
    """Count, and move the alias if the counts agree and `move` is set. While the indexers are held
    nothing changes but the queue, so the counts are exact."""
    async with parts.hold() as hold:
        await hold.until_idle()
        await follower.one_pass()
        problem = await count_problem(parts, facts, len(gaps.failures), gaps.unreadable)
        if problem is not None:
            return Outcome(problem, again=True)
        if not move:
            return Outcome()
        target = (await parts.index.health()).collection
        if target not in (facts.previous, facts.collection):
            return Outcome(_moved_to(target))
        other = await _other_schema(parts, facts)
        await hold.renew()
        # A service that was started since `serving_elsewhere` looked.
        if other is not None and await served_now(parts.leases, other):
            return Outcome(served=True)
        failures = list(gaps.failures.values())
        return await uncut(_switched(parts, facts, follower, hold, target, failures))


async def _switched(
    parts: ReindexParts,
    facts: ReindexFacts,
    follower: Follower,
    hold: IndexHold,
    target: str | None,
    failures: Sequence[PointFailure],
) -> Outcome:
    if not await moved(parts.index, facts.collection, target):
        return Outcome(_moved_to((await parts.index.health()).collection))
    await hold.until_idle()
    await follower.one_pass()
    await ask_again(parts, failures)
    return Outcome()


async def moved(index: VectorIndex, name: str, expected: str | None) -> bool:
    """False when somebody else moved the alias, just before or just after."""
    try:
        await index.switch_alias(name, expected)
    except Conflict:
        return False
    return (await index.health()).collection == name


async def settle(parts: ReindexParts, follower: Follower, failures: Sequence[PointFailure]) -> None:
    """After the switch: the last look, and the failures of a driver that died at the switch."""
    idle = 0
    for _ in range(MAX_PASSES):
        idle = idle + 1 if await follower.one_pass() == 0 else 0
        if idle == 2:
            break
    await ask_again(parts, failures)


async def ask_again(parts: ReindexParts, failures: Sequence[PointFailure]) -> None:
    """The indexer's own try at what could not be embedded, so that such an item is pending or
    failed for everybody to see, never quietly missing."""
    wanted = [
        Requeue(point_id=failure.item.point_id, rev=failure.item.index.rev, op=IndexOp.VECTOR)
        for failure in failures
    ]
    if wanted:
        await parts.scan.requeue(wanted)


async def _other_schema(parts: ReindexParts, facts: ReindexFacts) -> IndexSchema | None:
    """Of the collection that was behind the alias, when it is not the new one's."""
    if facts.previous is None:
        return None
    try:
        stored = await parts.index.schema_of(facts.previous)
    except NotFound:
        return None
    return None if stored == facts.schema else stored


def _moved_to(target: str | None) -> str:
    return f"The alias was moved to {target or 'nothing'} meanwhile: start a new reindex."
