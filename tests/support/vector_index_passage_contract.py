"""What a vector index must do with items of several passages."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from unittest.mock import AsyncMock

import pytest

from rayapp.core.errors import IndexDown
from rayapp.core.vectors import SparseVector
from rayapp.index.passages import PassageIndex
from rayapp.index.ports import VectorIndex
from rayapp.index.records import IndexPoint, PayloadUpdate, PointCopy, Projection, ScoredPoint
from rayapp.index.rules.points import passage_point
from rayapp.memory.scope import ItemFilter
from tests.support.index_points import dense_query, index_point, sparse_query, vector
from tests.support.vector_index_cases import ANN, EVERYTHING, MakeIndex
from tests.support.vector_index_copy_contract import beside

FIRST_TERM = 7_000


def long_point(name: str, passages: int, *, seed: int = 1_000, **options: object) -> IndexPoint:
    """Passage `n` is nearest to seed + n and alone holds the term `FIRST_TERM + n`."""
    made = index_point(name, seed=seed, sparse=words(0), **options)  # type: ignore[arg-type]
    others = tuple((vector(seed + n), words(n)) for n in range(1, passages))
    return replace(made, passages=others)


def words(number: int) -> SparseVector:
    return SparseVector([1, FIRST_TERM + number], [1.0, 2.0])


async def rows(index: VectorIndex, point: IndexPoint, collection: str | None = None) -> list[int]:
    """Which passages of an item the engine holds a point of."""
    ids = [passage_point(point.point_id, number) for number in range(64)]
    stored = await index.at(collection).retrieve(ids, Projection(("rev",)))
    there = {one.point_id for one in stored}
    return [number for number, point_id in zip(count(), ids, strict=False) if point_id in there]


class VectorIndexPassageContract:
    """Needs the fixtures of `VectorIndexContract`."""

    async def test_an_item_is_found_once_by_its_best_passage(self, index: VectorIndex) -> None:
        long, short = long_point("long", 5), index_point("short", seed=1)
        await index.upsert([long, short])
        sub_queries = [dense_query(1_003), sparse_query(FIRST_TERM + 4), sparse_query(1)]
        near, matching, common = await index.query(ANN, EVERYTHING, sub_queries)
        assert (near[0].point_id, near[0].passage) == (long.point_id, 3)
        assert near[0].score == pytest.approx(1.0, abs=1e-5)
        assert [hit.point_id for hit in near].count(long.point_id) == 1
        assert [(hit.point_id, hit.passage) for hit in matching] == [(long.point_id, 4)]
        assert sorted(hit.point_id for hit in common) == sorted([long.point_id, short.point_id])

    async def test_many_passages_leave_room_for_other_items(self, index: VectorIndex) -> None:
        crowd = [long_point(f"long{n}", 40, seed=1_000 + 100 * n) for n in range(3)]
        await index.upsert([*crowd, *(index_point(f"s{n}") for n in range(4))])
        for sub_query in (dense_query(1_001, limit=6), sparse_query(1, limit=6)):
            (hits,) = await index.query(ANN, EVERYTHING, [sub_query])
            assert len({hit.point_id for hit in hits}) == len(hits) == 6

    async def test_a_shorter_text_takes_its_passages_out(self, index: VectorIndex) -> None:
        await index.upsert([long_point("a", 5)])
        await index.upsert([long_point("a", 2, rev=2)])
        assert await rows(index, long_point("a", 1)) == [0, 1]
        await index.upsert([index_point("a", rev=3)])
        assert await rows(index, long_point("a", 1)) == [0]
        (hits,) = await index.query(ANN, EVERYTHING, [sparse_query(FIRST_TERM + 1)])
        assert hits == []

    async def test_an_older_text_changes_no_passage(self, index: VectorIndex) -> None:
        await index.upsert([long_point("a", 4, rev=5)])
        await index.upsert([long_point("a", 2, rev=4)])
        assert await rows(index, long_point("a", 1)) == [0, 1, 2, 3]
        await index.delete([long_point("a", 1).point_id], {long_point("a", 1).point_id: 4})
        assert await rows(index, long_point("a", 1)) == [0, 1, 2, 3]

    async def test_an_older_text_that_is_longer_adds_no_passage(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        source, name = await beside(index)
        text = long_point("a", 2, rev=5, vector_hash="w")
        await index.upsert([text])
        await index.upsert([long_point("a", 5, rev=4)])
        assert await rows(index, long_point("a", 1)) == [0, 1]
        await index.at(name).upsert([long_point("a", 1, rev=6)])
        copied = PointCopy(point_id=text.point_id, payload=text.payload, rev=5)
        assert await index.at(name).copy([copied], source) == []
        assert await rows(index, long_point("a", 1), name) == [0]

    async def test_a_shorter_text_that_broke_off_is_whole_when_it_comes_again(
        self, index: PassageIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        point = long_point("a", 5)
        await index.upsert([point])
        engine = index._engine
        for name in ("upsert", "delete"):
            with monkeypatch.context() as patch:
                patch.setattr(engine, name, AsyncMock(side_effect=IndexDown("away")))
                with pytest.raises(IndexDown):
                    await index.upsert([long_point("a", 2, rev=2)])
        await index.upsert([long_point("a", 2, rev=2)])
        assert await rows(index, point) == [0, 1]
        await index.delete([point.point_id])
        assert await rows(index, point) == []

    async def test_what_a_newer_text_overtook_adds_no_passage(
        self, index: PassageIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the look at what is held and the write."""
        point, engine = long_point("a", 1, rev=5), index._engine
        write = engine.upsert

        async def overtaken(points: Sequence[IndexPoint]) -> None:
            monkeypatch.undo()
            await index.upsert([point])
            await write(points)

        monkeypatch.setattr(engine, "upsert", overtaken)
        await index.upsert([long_point("a", 4, rev=4)])
        assert await rows(index, point) == [0]

    async def test_filters_and_payloads_hold_for_every_passage(self, index: VectorIndex) -> None:
        point = long_point("a", 3)
        await index.upsert([point])
        await index.set_payload(
            [PayloadUpdate(point_id=point.point_id, payload={"tags": ["red"]}, rev=2)]
        )
        sub_queries = [sparse_query(FIRST_TERM + n) for n in range(3)]
        red = await index.query(ANN, ItemFilter(statuses=None, tags_any=("red",)), sub_queries)
        assert red == [
            [ScoredPoint(point.point_id, hits[0].score, n)] for n, hits in enumerate(red)
        ]
        assert await index.query(ANN, ItemFilter(tags_any=("blue",)), sub_queries) == [[], [], []]

    async def test_counts_and_walks_see_items(self, index: VectorIndex) -> None:
        points = [long_point(f"m{n}", 1 + n % 4) for n in range(11)]
        await index.upsert(points)
        assert await index.count() == await index.count(ANN) == 11
        seen: list[str] = []
        after = None
        while True:
            page, after = await index.scroll(after=after, limit=3)
            seen += [point.point_id for point in page]
            if after is None:
                break
        assert seen == sorted(point.point_id for point in points)

    async def test_a_delete_leaves_nothing_of_an_item(self, index: VectorIndex) -> None:
        gone, kept = long_point("gone", 6), long_point("kept", 3)
        await index.upsert([gone, kept])
        await index.delete([gone.point_id])
        assert await rows(index, gone) == []
        assert await rows(index, kept) == [0, 1, 2]

    async def test_a_copy_takes_every_passage(self, make_index: MakeIndex) -> None:
        index = await make_index()
        source, name = await beside(index)
        point = long_point("a", 4, vector_hash="w")
        await index.upsert([point])
        copied = PointCopy(point_id=point.point_id, payload=point.payload, rev=1)
        assert await index.at(name).copy([copied], source) == []
        assert await rows(index, point, name) == [0, 1, 2, 3]
        shorter = long_point("a", 2, vector_hash="v", rev=2)
        await index.upsert([shorter])
        again = PointCopy(point_id=point.point_id, payload=shorter.payload, rev=2)
        assert await index.at(name).copy([again], source) == []
        assert await rows(index, point, name) == [0, 1]
        other = replace(copied, payload=point.payload | {"vector_hash": "other"})
        assert await index.at(name).copy([other], source) == [point.point_id]
