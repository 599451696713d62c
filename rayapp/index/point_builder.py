"""Items become points, and points are written; what is bad fails alone and stops no other."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.core.errors import (
    BadVector,
    DeadlineExceeded,
    DependencyDown,
    InvalidInput,
    Overloaded,
    RayappError,
    SchemaMismatch,
)
from rayapp.core.vectors import IndexSchema, Vector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import IndexPoint
from rayapp.index.rules.points import point_of
from rayapp.index.rules.prefix import embedded_text
from rayapp.inference.ports import Embedder
from rayapp.memory.item import MemoryItem
from rayapp.text.analyser import Analyser

log = logging.getLogger("rayapp.points")
# What says nothing about the item itself (decision 0005).
OUTAGES = (DependencyDown, Overloaded, DeadlineExceeded, SchemaMismatch)

Made = Sequence[tuple[MemoryItem, IndexPoint]]


@dataclass(frozen=True, slots=True)
class PointFailure:
    item: MemoryItem
    error: RayappError

    @property
    def outage(self) -> bool:
        return isinstance(self.error, OUTAGES)


class PointMaker:
    """Embeds and analyses under one schema."""

    def __init__(
        self, embedder: Embedder, analyser: Analyser, *, schema: IndexSchema, timeout_s: float
    ) -> None:
        self._embedder = embedder
        self._analyser = analyser
        self._schema = schema
        self._timeout_s = timeout_s

    async def made(
        self, items: Sequence[MemoryItem]
    ) -> tuple[list[tuple[MemoryItem, IndexPoint]], list[PointFailure]]:
        """The points of `items`; an outage is the failure of every item it kept away."""
        if not items:
            return [], []
        vectors, failures = await self._embed(items)
        points: list[tuple[MemoryItem, IndexPoint]] = []
        for item in items:
            vector = vectors.get(item.point_id)
            if vector is None:
                continue
            try:
                points.append((item, self._point(item, vector)))
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                # One malformed item must never stop the items of others: it fails alone.
                failures.append(PointFailure(item, _unusable(item, error)))
        return points, failures

    def _point(self, item: MemoryItem, dense: Vector) -> IndexPoint:
        return point_of(item, dense, self._analyser.document(item.text), self._schema)

    async def _embed(
        self, items: Sequence[MemoryItem]
    ) -> tuple[dict[str, Vector], list[PointFailure]]:
        try:
            vectors = await self._embedder.embed(
                [embedded_text(item) for item in items], "passage", timeout_s=self._timeout_s
            )
        except (BadVector, InvalidInput) as error:
            if len(items) == 1:
                return {}, [PointFailure(items[0], error)]
            # One text spoils the batch: halve until it stands alone.
            half = len(items) // 2
            left, left_failures = await self._embed(items[:half])
            right, right_failures = await self._embed(items[half:])
            return {**left, **right}, left_failures + right_failures
        except RayappError as error:
            return {}, [PointFailure(item, error) for item in items]
        return {i.point_id: v for i, v in zip(items, vectors, strict=True)}, []


async def written(
    index: VectorIndex, points: Made, collection: str | None = None
) -> tuple[list[MemoryItem], list[PointFailure]]:
    """Upsert; a batch that the index refuses is halved until the bad point stands alone."""
    if not points:
        return [], []
    try:
        await index.upsert([point for _, point in points], collection=collection)
    except (BadVector, InvalidInput) as error:
        if len(points) == 1:
            return [], [PointFailure(points[0][0], error)]
        half = len(points) // 2
        left, left_failures = await written(index, points[:half], collection)
        right, right_failures = await written(index, points[half:], collection)
        return left + right, left_failures + right_failures
    except RayappError as error:
        return [], [PointFailure(item, error) for item, _ in points]
    return [item for item, _ in points], []


def _unusable(item: MemoryItem, error: Exception) -> InvalidInput:
    """The item as it is stored cannot become a point."""
    log.error("item %s cannot be indexed", item.memory_id, exc_info=error)
    return InvalidInput(f"The item cannot become a point ({type(error).__name__}): edit it.")
