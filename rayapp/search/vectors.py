"""Memories by their vectors alone: the nearest of a vector or of a memory, and how near two are.

No words, ranks or outcomes take part: this is what the embedder says, for programs that look for
look-alikes and for pictures of a memory. A question is asked of the search.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema, Vector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import WHOLE, SubQuery
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.filtering import kept
from rayapp.memory.scope import ItemFilter, ReadScope

# The index answers points that the truth may have put away meanwhile: so many more are asked for.
SPARE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A memory, the cosine of its vector, and which of its passages is meant, from 0."""

    item: MemoryItem
    cosine: float
    passage: int


@dataclass(eq=False)
class VectorsService:
    """Raises StoreDown, IndexDown."""

    items: MemoryStore
    index: VectorIndex
    _: KW_ONLY
    schema: IndexSchema
    runtime: Runtime

    async def search(
        self, scope: ReadScope, numbers: Sequence[float], where: ItemFilter, limit: int
    ) -> list[Near]:
        """The nearest memories of a vector, which may have any length but zero; best first.

        Raises InvalidInput: it has not as many numbers as the vectors of this service.
        """
        vector = np.asarray(numbers, np.float32)
        length = float(np.linalg.norm(vector))
        if vector.shape != (self.schema.dims,):
            raise InvalidInput(
                f"vector: has {len(numbers)} numbers; the vectors of {self.schema.model} have "
                f"{self.schema.dims} (POST /v1/embeddings makes them).",
                details={"field": "vector", "dims": self.schema.dims},
            )
        if not np.isfinite(length) or length == 0.0:
            raise InvalidInput(
                "vector: must have a length; send finite numbers, not all of them 0.",
                details={"field": "vector"},
            )
        return await self._near(scope, vector / length, where, limit)

    async def nearest(
        self, scope: ReadScope, memory_id: str, where: ItemFilter, limit: int
    ) -> list[Near]:
        """The nearest memories of one of them, without itself; of its first passage.

        Raises NotFound; Conflict: it is not in the index yet.
        """
        item = await self._item(scope, memory_id)
        found = await self._near(scope, await self._vector(item), where, limit + 1)
        return [one for one in found if one.item.point_id != item.point_id][:limit]

    async def compare(self, scope: ReadScope, memory_ids: tuple[str, str]) -> float:
        """The cosine of two memories. Raises as `nearest`."""
        one, other = [
            await self._vector(await self._item(scope, memory_id)) for memory_id in memory_ids
        ]
        return float(one @ other)

    async def _near(
        self, scope: ReadScope, vector: Vector, where: ItemFilter, limit: int
    ) -> list[Near]:
        where = replace(where, now=self.runtime.clock.now())
        asked = SubQuery(name="near", limit=limit + SPARE, dense=vector, tiers=where.tiers)
        (points,) = await self.index.query(scope, where, [asked])
        found = await self.items.by_points(scope, [point.point_id for point in points])
        seen = {item.point_id: item for item in kept(found, where)}
        near = [
            Near(item=seen[point.point_id], cosine=point.score, passage=point.passage)
            for point in points
            if point.point_id in seen
        ]
        return sorted(near, key=lambda one: (-one.cosine, one.item.point_id))[:limit]

    async def _item(self, scope: ReadScope, memory_id: str) -> MemoryItem:
        item = await self.items.get(scope, memory_id)
        if item is None:
            raise NotFound(
                "There is no such memory; it may have been deleted.",
                details={"memory_id": memory_id},
            )
        return item

    async def _vector(self, item: MemoryItem) -> Vector:
        points = await self.index.retrieve([item.point_id], WHOLE)
        vector = points[0].dense if points else None
        if vector is None:
            raise Conflict(
                "The memory has no vector: it waits for the index, or is archived; try again.",
                code="not_indexed",
            )
        return vector
