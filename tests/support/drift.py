"""Makes drift of each kind in an index, for tests and benchmarks; and what both stores hold."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rayapp.core.vectors import IndexSchema, SparseVector
from rayapp.index.consistency.rules import Drift
from rayapp.index.ports import ItemScan, VectorIndex
from rayapp.index.records import WHOLE, IndexPoint, PayloadUpdate
from rayapp.index.rules.points import point_of
from rayapp.memory.item import MemoryItem, Status, point_id_of
from tests.support.index_points import vector

PAGE = 1_000
FOREIGN_USER = "somebody-else"


async def inject(
    index: VectorIndex, kind: Drift, items: Sequence[MemoryItem], schema: IndexSchema
) -> list[str]:
    """Break the points of `items` so that each is drift of `kind`; the ids of the broken points.

    For NOT_ACTIVE, an active item gets a foreign point, an archived one its old point back.
    """
    if kind is Drift.MISSING:
        await index.delete([item.point_id for item in items])
        return [item.point_id for item in items]
    if kind is Drift.PAYLOAD:
        await _set(index, items, {"tags": ["wrong", "שגוי"], "score": 0.123})
        return [item.point_id for item in items]
    if kind is Drift.NOT_ACTIVE:
        active = [item for item in items if item.status is Status.ACTIVE]
        await _set(index, active, {"user_id": FOREIGN_USER})
        items = [item for item in items if item.status is not Status.ACTIVE]
        await _put(index, [a_point(item, schema) for item in items])
        return [item.point_id for item in (*active, *items)]
    points = [_broken(kind, item, schema) for item in items]
    await _put(index, points)
    return [point.point_id for point in points]


def a_point(item: MemoryItem, schema: IndexSchema) -> IndexPoint:
    """A point that says what `item` says, with vectors of nothing."""
    number = int(item.point_id[:8], 16)
    vectors = (vector(number, schema.dims), SparseVector([number], [1.0]))
    return point_of(item, [vectors], schema)


async def everything(
    scan: ItemScan, index: VectorIndex
) -> tuple[dict[str, MemoryItem], dict[str, tuple[dict[str, Any], bytes]]]:
    """All rows, and all points with their vectors, by point id."""
    rows: dict[str, MemoryItem] = {}
    points: dict[str, tuple[dict[str, Any], bytes]] = {}
    after: str | None = None
    while True:
        items, after = await scan.page(after=after, until=None, limit=PAGE)
        rows |= {item.point_id: item for item in items}
        if after is None:
            break
    while True:
        found, after = await index.scroll(after=after, limit=PAGE, read=WHOLE)
        for point in found:
            dense = b"" if point.dense is None else point.dense.tobytes()
            points[point.point_id] = (point.payload, dense)
        if after is None:
            return rows, points


def _broken(kind: Drift, item: MemoryItem, schema: IndexSchema) -> IndexPoint:
    if kind is Drift.VECTOR:
        return a_point(replace(item, content_hash="of another text"), schema)
    name = f"{kind.value}-of-{item.memory_id}"[-128:]
    elsewhere = point_id_of(item.user_id, name)
    if kind is Drift.ORPHAN:
        return a_point(replace(item, memory_id=name, point_id=elsewhere), schema)
    return a_point(replace(item, point_id=elsewhere), schema)


async def _set(index: VectorIndex, items: Sequence[MemoryItem], payload: dict[str, Any]) -> None:
    await index.set_payload(
        [
            PayloadUpdate(point_id=item.point_id, payload=payload, rev=item.index.rev)
            for item in items
        ]
    )


async def _put(index: VectorIndex, points: Sequence[IndexPoint]) -> None:
    for start in range(0, len(points), PAGE):
        await index.upsert(points[start : start + PAGE])
