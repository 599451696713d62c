"""The writing half of the vector index contract."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rayapp.core.errors import InvalidInput
from rayapp.core.vectors import SparseVector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import WHOLE
from rayapp.memory.item import Status, point_id_of
from rayapp.memory.scope import ItemFilter
from tests.support.index_points import NOW, index_point, payload_update, vector
from tests.support.vector_index_cases import ABSENT, ANN, BAD_POINTS, EVERYTHING, NOW_S, found

# Takes `rev` out of the payload of points, as no write of the index does.
WithoutRev = Callable[[Sequence[str]], Awaitable[None]]


class VectorIndexWriteContract:
    """Needs an `index` fixture: open, empty, with `SCHEMA`; and a `without_rev` of it."""

    # --- writing -------------------------------------------------------------------------

    async def test_upserted_points_are_read_back(self, index: VectorIndex) -> None:
        point = index_point("m1", tags=["עברית"], expires_at=None)
        await index.upsert([point])
        (stored,) = await index.retrieve([point.point_id, ABSENT], WHOLE)
        assert stored.point_id == point.point_id
        assert stored.payload["tags"] == ["עברית"]
        assert stored.payload["user_id"] == "ann"
        assert stored.payload["rev"] == 1
        assert "expires_at" not in stored.payload
        assert stored.dense is not None
        assert stored.sparse is not None
        np.testing.assert_allclose(stored.dense, point.dense, atol=1e-6)
        assert dict(zip(stored.sparse.indices, stored.sparse.values, strict=True)) == {
            i: pytest.approx(v)
            for i, v in zip(point.sparse.indices, point.sparse.values, strict=True)
        }

    async def test_vectors_are_left_out_unless_asked_for(self, index: VectorIndex) -> None:
        point = index_point("m1")
        await index.upsert([point])
        (stored,) = await index.retrieve([point.point_id])
        assert stored.dense is None
        assert stored.sparse is None

    async def test_lower_rev_is_left_alone(self, index: VectorIndex) -> None:
        await index.upsert([index_point("m1", rev=5, lang="he")])
        await index.upsert([index_point("m1", rev=4, lang="en"), index_point("m2", rev=4)])
        stored = await index.retrieve([point_id_of("ann", "m1"), point_id_of("ann", "m2")])
        assert {p.payload["memory_id"]: p.payload["rev"] for p in stored} == {"m1": 5, "m2": 4}
        assert {p.payload["lang"] for p in stored if p.payload["rev"] == 5} == {"he"}

    @pytest.mark.parametrize("rev", [5, 6, 1_800_000_000_000])
    async def test_equal_or_higher_rev_replaces_the_point(
        self, index: VectorIndex, rev: int
    ) -> None:
        await index.upsert([index_point("m1", rev=5, tags=["old"], doc_id="d")])
        await index.upsert([index_point("m1", rev=rev, tags=["new"], seed=7)])
        (stored,) = await index.retrieve([point_id_of("ann", "m1")], WHOLE)
        assert stored.payload["tags"] == ["new"]
        assert "doc_id" not in stored.payload
        assert stored.dense is not None
        np.testing.assert_allclose(stored.dense, vector(7), atol=1e-6)

    async def test_one_batch_with_the_same_id_twice_keeps_the_higher_rev(
        self, index: VectorIndex
    ) -> None:
        await index.upsert([index_point("m1", rev=3, lang="he"), index_point("m1", rev=2)])
        (stored,) = await index.retrieve([point_id_of("ann", "m1")])
        assert (stored.payload["rev"], stored.payload["lang"]) == (3, "he")
        assert await index.count() == 1

    async def test_one_batch_may_hold_many_revs(self, index: VectorIndex) -> None:
        await index.upsert([index_point(f"m{i}", rev=i) for i in range(6)])
        assert await index.count() == 6

    @pytest.mark.parametrize("case", BAD_POINTS, ids=str)
    async def test_bad_batch_writes_nothing(self, index: VectorIndex, case: str) -> None:
        bad, error = BAD_POINTS[case]
        with pytest.raises(error):
            await index.upsert([index_point("good"), bad])
        assert await index.count() == 0

    async def test_empty_batches_are_fine(self, index: VectorIndex) -> None:
        await index.upsert([])
        await index.set_payload([])
        await index.delete([])
        assert await index.count() == 0
        assert await index.query(ANN, EVERYTHING, []) == []

    async def test_point_without_terms_is_found_by_its_vector_only(
        self, index: VectorIndex
    ) -> None:
        point = replace(index_point("m1"), sparse=SparseVector([], []))
        await index.upsert([point])
        assert await found(index) == [{point.point_id}, set()]
        (stored,) = await index.retrieve([point.point_id], WHOLE)
        assert stored.sparse == SparseVector([], [])

    # --- payload and delete --------------------------------------------------------------

    async def test_set_payload_changes_the_named_keys(self, index: VectorIndex) -> None:
        point = index_point("m1", tags=["a"], doc_id="d", expires_at=NOW_S - 1)
        await index.upsert([point])
        changes: dict[str, Any] = {
            "status": "archived",
            "tags": [],
            "expires_at": None,
            "score": 0.75,
        }
        await index.set_payload([payload_update(point.point_id, rev=2, **changes)])
        (stored,) = await index.retrieve([point.point_id])
        assert stored.payload["doc_id"] == "d"
        assert stored.payload["score"] == 0.75
        assert stored.payload["rev"] == 2
        archived = ItemFilter(statuses=(Status.ARCHIVED,), now=NOW)
        assert await found(index, archived) == [{point.point_id}, {point.point_id}]
        assert await found(index, ItemFilter()) == [set(), set()]
        assert await found(index, ItemFilter(statuses=None, tags_any=("a",))) == [set(), set()]

    async def test_set_payload_with_a_lower_rev_is_ignored(self, index: VectorIndex) -> None:
        point = index_point("m1", rev=5, lang="he")
        await index.upsert([point])
        await index.set_payload([payload_update(point.point_id, rev=4, lang="x")])
        (stored,) = await index.retrieve([point.point_id])
        assert (stored.payload["lang"], stored.payload["rev"]) == ("he", 5)

    async def test_set_payload_of_a_missing_point_is_ignored(self, index: VectorIndex) -> None:
        point = index_point("m1")
        await index.upsert([point])
        await index.set_payload(
            [
                payload_update(ABSENT, rev=9, lang="he"),
                payload_update(point.point_id, rev=2, lang="he"),
            ]
        )
        assert await index.count() == 1
        (stored,) = await index.retrieve([point.point_id, ABSENT])
        assert stored.payload["lang"] == "he"

    async def test_upsert_after_a_payload_update_respects_its_rev(self, index: VectorIndex) -> None:
        point = index_point("m1", rev=1)
        await index.upsert([point])
        await index.set_payload([payload_update(point.point_id, rev=3, lang="he")])
        await index.upsert([replace(point, rev=2)])
        (stored,) = await index.retrieve([point.point_id])
        assert stored.payload["lang"] == "he"

    async def test_set_payload_refuses_an_empty_owner(self, index: VectorIndex) -> None:
        with pytest.raises(InvalidInput):
            await index.set_payload([payload_update(ABSENT, user_id="")])

    async def test_delete_is_idempotent_and_the_id_can_come_back(self, index: VectorIndex) -> None:
        point = index_point("m1", rev=9)
        await index.upsert([point, index_point("m2")])
        await index.delete([point.point_id, ABSENT])
        await index.delete([point.point_id])
        assert await found(index) == [{point_id_of("ann", "m2")}] * 2
        await index.upsert([replace(point, rev=1)])
        assert await index.count() == 2
        assert point.point_id in (await found(index))[0]

    async def test_a_late_delete_leaves_a_newer_point(self, index: VectorIndex) -> None:
        old, new = index_point("late-a", rev=3), index_point("late-b", rev=5)
        await index.upsert([old, new])
        revs = {old.point_id: 3, new.point_id: 4, ABSENT: 9}
        await index.delete(list(revs), revs)
        left = await index.retrieve([old.point_id, new.point_id])
        assert [point.point_id for point in left] == [new.point_id]
        await index.delete([new.point_id], {new.point_id: 5})
        assert await index.retrieve([new.point_id]) == []

    async def test_a_point_without_a_rev_is_older_than_any(
        self, index: VectorIndex, without_rev: WithoutRev
    ) -> None:
        named = ("kept", "gone", "upserted", "updated")
        kept, gone, upserted, updated = (index_point(f"no-rev-{n}", rev=1) for n in named)
        ids = [point.point_id for point in (kept, gone, upserted, updated)]
        await index.upsert([kept, gone, upserted, updated])
        await without_rev(ids)
        assert all("rev" not in point.payload for point in await index.retrieve(ids))
        await index.delete([gone.point_id], {gone.point_id: 0})
        await index.upsert([replace(upserted, rev=2, payload={**upserted.payload, "lang": "x"})])
        await index.set_payload([payload_update(updated.point_id, rev=3, lang="x")])
        left = {p.point_id: p.payload for p in await index.retrieve(ids)}
        assert left.keys() == {kept.point_id, upserted.point_id, updated.point_id}
        assert (left[upserted.point_id]["rev"], left[upserted.point_id]["lang"]) == (2, "x")
        assert (left[updated.point_id]["rev"], left[updated.point_id]["lang"]) == (3, "x")

    @pytest.mark.parametrize("bad", ["x", "17", ""])
    async def test_ids_must_be_uuids(self, index: VectorIndex, bad: str) -> None:
        with pytest.raises(InvalidInput):
            await index.delete([bad])
        with pytest.raises(InvalidInput):
            await index.retrieve([bad])
        with pytest.raises(InvalidInput):
            await index.scroll(after=bad, limit=5)
        with pytest.raises(InvalidInput):
            await index.set_payload([payload_update(bad)])
