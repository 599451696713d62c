"""Compares truth and index over a range of point ids, looks twice, and repairs what stays.

The first look merges a page of rows with a page of points, so neither side is ever held whole.
What differs there is a suspect: the stores were read at two moments. The second look reads the
rows, then the points, then the rows again. A row that did not change in between held while its
point was read, so a difference that is left is drift.

A row that cannot be read looks like none. It is known by its id, and its point is left alone: in a
rolling upgrade an old process must not delete the points of what only the new version can read.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayapp.core.errors import IndexDown
from rayapp.core.vectors import IndexSchema
from rayapp.index.consistency import rules
from rayapp.index.consistency.keyspace_cursor import KeyspaceCursor
from rayapp.index.ports import ItemScan, QuarantineStore, Requeue, VectorIndex
from rayapp.index.records import WHOLE, StoredPoint
from rayapp.memory.item import MemoryItem, Status

# Ids of one second look and of one repair: bounds the size of a query and of a write.
AT_ONCE = 500
# When to come back to an index that is being filled, seconds.
REBUILD_RETRY_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What to do about drift. `quarantine`: points are kept aside before they are deleted."""

    repair: bool = False
    quarantine: bool = False


LOOK_ONLY = Repairs()


@dataclass(frozen=True, slots=True)
class Recheck:
    """What a second look found, how many points went to quarantine, and of how many points the
    row is there but cannot be read."""

    issues: list[rules.Issue]
    quarantined: int = 0
    unreadable: int = 0


class Comparison:
    """The one place that reads both stores side by side."""

    def __init__(self, scan: ItemScan, index: VectorIndex, quarantine: QuarantineStore) -> None:
        self._scan = scan
        self._index = index
        self._quarantine = quarantine
        self._known: IndexSchema | None = None

    async def counts(self) -> tuple[int, int]:
        """(active items, points)."""
        truth, points = await asyncio.gather(self._scan.total(), self._index.count())
        return truth, points

    async def unencoded(self) -> int:
        """Items that lack the encoder's vector. It is no drift: the indexer gives it to whatever
        lacks it, so a sweep only says how many there are."""
        return await self._index.unencoded()

    async def page(self, walk: KeyspaceCursor, batch: int) -> KeyspaceCursor:
        """The first look at the next ids of `walk`: it moves on, with the suspects of the page."""
        schema = self._known or await self.schema()
        (after, until), limit = walk.position, walk.page_size(batch)
        (items, items_to), (points, points_to) = await asyncio.gather(
            self._scan.page(after=after, until=until, limit=limit),
            self._index.scroll(after=after, until=until, limit=limit),
        )
        # The side that reached less far says how far both were seen; the rest is read again.
        bound = min((to for to in (items_to, points_to) if to is not None), default=None)
        rows = {i.point_id: i for i in items if bound is None or i.point_id <= bound}
        found = {p.point_id: p for p in points if bound is None or p.point_id <= bound}
        ids = sorted(rows.keys() | found.keys())
        suspects = [i for i in ids if _is_suspect(rows.get(i), found.get(i), schema)]
        return walk.moved(bound, len(ids), suspects)

    async def look_again(self, point_ids: Sequence[str], repairs: Repairs) -> Recheck:
        """The second look, with fresh reads, and the repair of what it finds."""
        issues: list[rules.Issue] = []
        quarantined = unreadable = 0
        for start in range(0, len(point_ids), AT_ONCE):
            look = await self._look_again(point_ids[start : start + AT_ONCE], repairs)
            issues += look.issues
            quarantined += look.quarantined
            unreadable += look.unreadable
        return Recheck(issues, quarantined, unreadable)

    async def kept(self, limit: int) -> list[dict[str, str]]:
        """What is in quarantine, newest first, without what it says."""
        return [
            {
                "point_id": point.point_id,
                "user_id": str(point.payload.get("user_id", "")),
                "memory_id": str(point.payload.get("memory_id", "")),
                "reason": reason,
                "at": at.isoformat(),
            }
            for point, reason, at in await self._quarantine.kept(limit)
        ]

    async def schema(self) -> IndexSchema:
        """What the index was built for, asked anew: a reindex may have changed it.

        Raises IndexDown: there is none yet, or it is being filled from the truth.
        """
        health = await self._index.health()
        if health.collection is None or health.needs_rebuild:
            raise IndexDown(
                "The index is being filled from the truth: compare them when it is complete.",
                retry_after_s=REBUILD_RETRY_S,
            )
        self._known = await self._index.schema_of(health.collection)
        return self._known

    async def _look_again(self, ids: Sequence[str], repairs: Repairs) -> Recheck:
        schema = await self.schema()
        before = {item.point_id: item for item in await self._scan.by_points(ids)}
        points = {point.point_id: point for point in await self._index.retrieve(ids)}
        after = {item.point_id: item for item in await self._scan.by_points(ids)}
        issues = [
            issue
            for i in ids
            if rules.is_unchanged(before.get(i), after.get(i))
            and (issue := rules.lasting_drift_of(after.get(i), points.get(i), schema)) is not None
        ]
        without = [issue.point_id for issue in issues if issue.point_id not in after]
        unreadable = await self._scan.existing(without)
        issues = [issue for issue in issues if issue.point_id not in unreadable]
        if not repairs.repair or not issues:
            return Recheck(issues, unreadable=len(unreadable))
        quarantined = await self._delete(issues, points, repairs)
        if quarantined:
            await self._forget_deleted([i.point_id for i in issues if i.point_id in after])
        await self._requeue(issues, after)
        repaired = [replace(issue, repaired=True) for issue in issues]
        return Recheck(repaired, quarantined, len(unreadable))

    async def _delete(
        self, issues: Sequence[rules.Issue], points: dict[str, StoredPoint], repairs: Repairs
    ) -> int:
        """Delete by the rules, but for points that were written since; how many were kept."""
        by_kind: dict[rules.Drift, list[str]] = {}
        for issue in issues:
            if rules.rule_of(issue.kind).delete:
                by_kind.setdefault(issue.kind, []).append(issue.point_id)
        quarantined = 0
        for kind, ids in by_kind.items():
            if repairs.quarantine:
                whole = await self._index.retrieve(ids, WHOLE)
                await self._quarantine.keep(whole, kind.value)
                quarantined += len(whole)
            await self._index.delete(ids, {i: rules.rev_of(points[i]) for i in ids})
        return quarantined

    async def _forget_deleted(self, had_rows: Sequence[str]) -> None:
        """What was kept of memories that were deleted meanwhile: the indexer's own purge may have
        come before."""
        rows = {item.point_id: item for item in await self._scan.by_points(had_rows)}
        there = await self._scan.existing(had_rows)
        deleted = {i for i, item in rows.items() if item.status is Status.DELETED}
        if gone := [i for i in had_rows if i not in there or i in deleted]:
            await self._quarantine.purge(gone)

    async def _requeue(self, issues: Sequence[rules.Issue], rows: dict[str, MemoryItem]) -> None:
        """Ask the indexer for what the rules say; a row that changed since asks by itself."""
        wanted = [
            Requeue(point_id=item.point_id, rev=item.index.rev, op=op)
            for issue in issues
            if (op := rules.rule_of(issue.kind).write) is not None
            and (item := rows.get(issue.point_id)) is not None
            and item.status is Status.ACTIVE
        ]
        if wanted:
            await self._scan.requeue(wanted)


def _is_suspect(item: MemoryItem | None, point: StoredPoint | None, schema: IndexSchema) -> bool:
    return rules.is_ahead(item, point) or rules.drift_of(item, point, schema) is not None
