"""What every `QuarantineStore` must do.

Subclass the contract and give a `quarantine` fixture, an empty store, and an `elapse` fixture,
which lets that many seconds pass for it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from rayapp.core.vectors import SparseVector
from rayapp.index.ports import QuarantineStore
from rayapp.index.records import StoredPoint
from rayapp.memory.item import point_id_of

Elapse = Callable[[float], Awaitable[None]]


def a_point(point_id: str = "p-1", rev: int = 3, **payload: Any) -> StoredPoint:
    facts = {"user_id": "dana", "rev": rev, "tags": ["עברית"], **payload}
    return StoredPoint(point_id=point_id, payload=facts)


def a_whole_point(**payload: Any) -> StoredPoint:
    return StoredPoint(
        point_id="p-1",
        payload={**a_point().payload, **payload},
        dense=np.array([0.1, -2.5, 3e-8], np.float32),
        sparse=SparseVector([3, 4_294_967_295], [0.25, 1.5]),
    )


class QuarantineContract:
    async def test_a_whole_point_comes_back(self, quarantine: QuarantineStore) -> None:
        point = a_whole_point(created_at=1.5, **{"a.b": {"$c": None}})
        await quarantine.keep([point], "no row in the truth")
        ((found, reason, at),) = await quarantine.kept(5)
        assert (found.point_id, found.payload) == (point.point_id, point.payload)
        assert found.dense is not None
        assert point.dense is not None
        assert found.dense.dtype == np.float32
        assert found.dense.tolist() == point.dense.tolist()
        assert found.sparse == point.sparse
        assert reason == "no row in the truth"
        assert at.utcoffset() is not None

    async def test_a_point_without_vectors_comes_back(self, quarantine: QuarantineStore) -> None:
        without = StoredPoint(point_id="p-0", payload={})
        await quarantine.keep([without, a_point()], "orphan")
        found = {point.point_id: point for point, _, _ in await quarantine.kept(5)}
        assert found == {"p-0": without, "p-1": a_point()}

    async def test_the_newest_come_first(self, quarantine: QuarantineStore, elapse: Elapse) -> None:
        for n in range(3):
            await quarantine.keep([a_point(f"p-{n}")], "orphan")
            await elapse(0.005)
        found = await quarantine.kept(2)
        assert [point.point_id for point, _, _ in found] == ["p-2", "p-1"]
        assert await quarantine.kept(0) == []

    async def test_repeating_keeps_one_row_with_its_vectors(
        self, quarantine: QuarantineStore, elapse: Elapse
    ) -> None:
        await quarantine.keep([a_whole_point(old=True)], "orphan")
        ((_, _, first_at),) = await quarantine.kept(5)
        await elapse(0.005)
        await quarantine.keep([a_point(), a_point()], "again")
        ((found, reason, at),) = await quarantine.kept(5)
        assert (found.payload, reason) == (a_point().payload, "again")
        assert found.dense is not None
        assert found.sparse is not None
        assert at > first_at

    async def test_each_revision_is_kept(self, quarantine: QuarantineStore) -> None:
        await quarantine.keep([a_point(rev=1), a_point(rev=2)], "orphan")
        found = {point.payload["rev"] for point, _, _ in await quarantine.kept(5)}
        assert found == {1, 2}
        await quarantine.keep([], "nothing")

    async def test_a_deleted_memory_is_forgotten(self, quarantine: QuarantineStore) -> None:
        home = point_id_of("dana", "פתק")
        mine = [a_point(home, rev, memory_id="פתק") for rev in (1, 2)]
        double = a_point("another-id", memory_id="פתק")
        nameless = StoredPoint(point_id="p-4", payload={"user_id": "dana"})
        others = [a_point("p-3", memory_id="other"), nameless]
        await quarantine.keep([*mine, double, *others], "orphan")
        await quarantine.purge([])
        await quarantine.purge([home, "never-kept"])
        assert {point.point_id for point, _, _ in await quarantine.kept(9)} == {"p-3", "p-4"}
        await quarantine.purge(["p-4"])
        assert {point.point_id for point, _, _ in await quarantine.kept(9)} == {"p-3"}
