"""Near-duplicates of facts and patterns become one memory."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import Vector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import WHOLE, ScoredPoint, SubQuery
from rayapp.learning.ports import LifecycleStore
from rayapp.learning.rules.dedup import DEDUP_TIERS, merge_moves, pair, told_apart
from rayapp.learning.rules.promotion import transition_id
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.ports import Event, MemoryStore
from rayapp.memory.scope import ItemFilter, WriteScope

MERGED = "merged"  # kind of the event that a merge leaves
REASON = "near-duplicate"


@dataclass(eq=False)
class DedupService:
    """Compares an indexed item with its nearest neighbours.

    The index only proposes: what is compared and merged is read from the truth, so a point that
    outlived its item, or that speaks of an older text, merges nothing.
    `similarity`: least cosine of two texts that say the same; 0 = off (not measured).
    """

    lifecycle: LifecycleStore
    items: MemoryStore
    index: VectorIndex
    _: KW_ONLY
    similarity: float
    runtime: Runtime

    @property
    def enabled(self) -> bool:
        """False: `merge` never does anything, so nobody has to wait for the index."""
        return self.similarity > 0.0

    async def merge(self, item: MemoryItem) -> bool:
        """Merge `item` with the memories that say the same; True when it did.

        Raises DependencyDown.
        """
        if not self.enabled or item.tier not in DEDUP_TIERS:
            return False
        current, merged = item, False
        for _ in range(self.runtime.settings.dedup.neighbours):
            try:
                winner = await self._merge_one(current)
            except (Conflict, NotFound):
                # An edit or an outcome came between: the next turn reads the two again.
                continue
            if winner is None:
                break
            current, merged = winner, True
        return merged

    async def _merge_one(self, item: MemoryItem) -> MemoryItem | None:
        """Merge `item` with its nearest twin; the memory that stays, None when there is none."""
        vector = await self._vector(item)
        if vector is None:
            return None
        near = await self._neighbours(item, vector)
        fresh = await self._fresh(item, near)
        mine = fresh.pop(item.point_id, None)
        if mine is None:
            return None
        for point in near:
            other = fresh.get(point.point_id)
            if other is None:
                continue
            if told_apart(mine, other, point.score, self.similarity) is None:
                return await self._join(mine, other, point.score)
        return None

    async def _vector(self, item: MemoryItem) -> Vector | None:
        points = await self.index.retrieve([item.point_id], WHOLE)
        return points[0].dense if points else None

    async def _neighbours(self, item: MemoryItem, vector: Vector) -> list[ScoredPoint]:
        """The nearest points of the same user, tier and subject; nearest first, ties by id."""
        where = ItemFilter(
            tiers=(item.tier,),
            subject_ids=(item.subject_id,) if item.subject_id is not None else None,
        )
        # One more than wanted: the nearest of all is the item itself.
        limit = self.runtime.settings.dedup.neighbours + 1
        sub_query = SubQuery(name="dedup", limit=limit, dense=vector, tiers=(item.tier,))
        (found,) = await self.index.query(WriteScope(item.user_id).own, where, [sub_query])
        near = [
            point
            for point in found
            if point.point_id != item.point_id and point.score >= self.similarity
        ]
        return sorted(near, key=lambda point: (-point.score, point.point_id))

    async def _fresh(self, item: MemoryItem, near: Sequence[ScoredPoint]) -> dict[str, MemoryItem]:
        """The item and its neighbours as the truth holds them, if the index holds them alike."""
        if not near:
            return {}
        wanted = [item.point_id, *(point.point_id for point in near)]
        found = await self.items.by_points(WriteScope(item.user_id).own, wanted)
        return {one.point_id: one for one in found if _vector_is_current(one)}

    async def _join(self, a: MemoryItem, b: MemoryItem, cosine: float) -> MemoryItem:
        winner, loser = pair(a, b)
        now = self.runtime.clock.now()
        moves = merge_moves(winner, loser, now=now, reason=REASON)
        event = Event(
            event_id=transition_id(loser, MERGED),
            user_id=winner.user_id,
            kind=MERGED,
            at=now,
            memory_id=loser.memory_id,
            data={
                "into": winner.memory_id,
                "tier": winner.tier.value,
                "cosine": round(cosine, 4),
                "reason": REASON,
                "owner": "dedup",
            },
        )
        moved = await self.lifecycle.transition(moves, [event])
        self.runtime.metrics.count("transitions", kind=MERGED)
        return next(one for one in moved if one.point_id == winner.point_id)


def _vector_is_current(item: MemoryItem) -> bool:
    """Active, and the vectors in the index are those of its present text."""
    state = item.index
    written = state.op is IndexOp.PAYLOAD or state.sync_state is SyncState.SYNCED
    return item.status is Status.ACTIVE and written
