"""What a vector index must do with the second vector of a point, that of the encoder."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rayapp.core.errors import BadVector, InvalidInput
from rayapp.core.vectors import SparseVector, Vector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import WHOLE, EncoderUpdate, IndexPoint, PointCopy, SubQuery
from rayapp.index.rules.points import passage_point
from rayapp.memory.tiers import Tier
from tests.support.index_points import SCHEMA, index_point, payload_update, vector
from tests.support.vector_index_cases import ABSENT, ANN, EVERYTHING, MakeIndex

READ_DIMS = 6
ENCODED = replace(SCHEMA, encoder="Test/encoder-1", encoder_dims=READ_DIMS)
# The engines keep these vectors in 16 bits.
ROUGH = 2e-3


def read(seed: int) -> Vector:
    """A vector of the encoder."""
    return vector(seed, READ_DIMS)


def update(point: IndexPoint, *seeds: int, rev: int | None = None) -> EncoderUpdate:
    return EncoderUpdate(
        point_id=point.point_id,
        vectors=tuple(read(seed) for seed in seeds),
        rev=point.rev if rev is None else rev,
    )


def encoder_query(seed: int, *, limit: int = 50, **asked: Any) -> SubQuery:
    return SubQuery(name="encoder", limit=limit, encoder=read(seed), **asked)


def long_point(name: str, passages: int, **options: Any) -> IndexPoint:
    others = tuple((vector(n), SparseVector([n], [1.0])) for n in range(1, passages))
    return replace(index_point(name, **options), passages=others)


async def nearest(index: VectorIndex, seed: int, **asked: Any) -> list[str]:
    (hits,) = await index.query(ANN, EVERYTHING, [encoder_query(seed, **asked)])
    return [hit.point_id for hit in hits]


async def unencoded(index: VectorIndex, limit: int = 100) -> list[str]:
    page, _ = await index.scroll(after=None, limit=limit, unencoded=True)
    return [point.point_id for point in page]


class VectorIndexEncoderContract:
    """Needs the fixtures `index` and `make_index`."""

    async def test_it_comes_after_the_point_and_is_searched(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(ENCODED)
        points = [index_point(f"m{n}", tier=Tier.HISTORY.value) for n in range(4)]
        await index.upsert(points)
        assert await nearest(index, 1) == []
        assert sorted(await unencoded(index)) == sorted(p.point_id for p in points)
        assert await index.unencoded() == len(points)
        await index.set_encoder([update(one, n) for n, one in enumerate(points[:3])])
        assert await unencoded(index) == [points[3].point_id]
        order = sorted(range(3), key=lambda n: -float(read(n) @ read(1)))
        assert await nearest(index, 1) == [points[n].point_id for n in order]
        assert await nearest(index, 1, limit=1) == [points[1].point_id]
        assert await nearest(index, 1, tiers=(Tier.BOOKS,)) == []
        (stored,) = await index.retrieve([points[2].point_id], WHOLE)
        assert stored.dense is not None
        assert stored.encoder is not None
        np.testing.assert_allclose(stored.encoder, read(2), atol=ROUGH)
        np.testing.assert_allclose(stored.dense, points[2].dense, atol=1e-6)
        (bare,) = await index.retrieve([points[3].point_id], WHOLE)
        assert bare.encoder is None

    async def test_a_point_may_bring_it_along(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(ENCODED)
        await index.upsert([replace(index_point("m"), encoder=(read(3),))])
        assert await unencoded(index) == []
        assert await nearest(index, 3) == [index_point("m").point_id]

    async def test_a_newer_text_takes_it_away_and_a_new_payload_does_not(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        await index.open(ENCODED)
        point = index_point("m")
        await index.upsert([point])
        await index.set_encoder([update(point, 1)])
        await index.set_payload([payload_update(point.point_id, rev=2, tags=["x"])])
        assert await nearest(index, 1) == [point.point_id]
        await index.upsert([replace(point, rev=3)])
        assert await nearest(index, 1) == []
        assert await unencoded(index) == [point.point_id]

    async def test_that_of_an_older_text_is_refused(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(ENCODED)
        older, newer, other = (index_point(name, rev=5) for name in ("a", "b", "c"))
        await index.upsert([older, newer, other])
        gone = EncoderUpdate(point_id=ABSENT, vectors=(read(1),), rev=9)
        await index.set_encoder([update(older, 1, rev=4), gone, update(newer, 2, rev=6)])
        assert sorted(await unencoded(index)) == sorted([older.point_id, other.point_id])
        assert await index.retrieve([ABSENT]) == []

    async def test_a_long_text_has_one_of_each_passage(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(ENCODED)
        point, short = long_point("long", 3), index_point("short")
        await index.upsert([point, short])
        assert sorted(await unencoded(index)) == sorted([point.point_id, short.point_id])
        await index.set_encoder([update(point, 1, 2, 3), update(short, 4)])
        (hits,) = await index.query(ANN, EVERYTHING, [encoder_query(3, limit=1)])
        assert [(hit.point_id, hit.passage) for hit in hits] == [(point.point_id, 2)]
        assert await unencoded(index) == []
        (third,) = await index.retrieve([passage_point(point.point_id, 2)], WHOLE)
        assert third.encoder is not None
        np.testing.assert_allclose(third.encoder, read(3), atol=ROUGH)

    async def test_of_another_number_of_passages_nothing_is_written(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        await index.open(ENCODED)
        point = long_point("long", 3)
        await index.upsert([point])
        await index.set_encoder([update(point, 1, 2)])
        assert await unencoded(index) == [point.point_id]
        assert await nearest(index, 1) == []

    async def test_what_lacks_it_comes_in_pages(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(ENCODED)
        points = [long_point(f"m{n}", 2) for n in range(7)]
        await index.upsert(points)
        await index.set_encoder([update(points[0], 1, 2)])
        left = sorted(point.point_id for point in points[1:])
        found: list[str] = []
        after: str | None = None
        while True:
            page, after = await index.scroll(after=after, limit=4, unencoded=True)
            found += [point.point_id for point in page]
            if after is None:
                break
        assert found == left

    async def test_deleting_takes_it_along(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(ENCODED)
        point = index_point("m")
        await index.upsert([point])
        await index.set_encoder([update(point, 1)])
        await index.delete([point.point_id])
        await index.upsert([point])
        assert await unencoded(index) == [point.point_id]

    @pytest.mark.parametrize("encoder", ["Test/encoder-1", "Test/encoder-2", ""], ids=str)
    async def test_a_copy_has_that_of_the_same_encoder(
        self, make_index: MakeIndex, encoder: str
    ) -> None:
        index = await make_index()
        await index.open(ENCODED)
        source = (await index.health()).collection
        assert source is not None
        name = source.rpartition("_")[0] + "_1"
        dims = READ_DIMS if encoder else 0
        await index.create_collection(name, replace(SCHEMA, encoder=encoder, encoder_dims=dims))
        long, bare = (replace(long_point(m, 2), rev=2) for m in ("long", "bare"))
        hashed = [replace(p, payload=p.payload | {"vector_hash": "w"}) for p in (long, bare)]
        await index.upsert(hashed)
        await index.set_encoder([update(long, 1, 2)])
        copies = [PointCopy(point_id=p.point_id, payload=p.payload, rev=p.rev) for p in hashed]
        assert await index.at(name).copy(copies, source) == []
        assert await index.at(name).count() == 2
        left = await unencoded(index.at(name))
        if encoder == ENCODED.encoder:
            assert left == [bare.point_id]
        else:
            assert sorted(left) == (sorted([long.point_id, bare.point_id]) if encoder else [])

    async def test_a_service_without_the_encoder_leaves_it_alone(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        await index.open(ENCODED)
        point = index_point("m")
        await index.upsert([point])
        await index.set_encoder([update(point, 1)])
        await index.open(SCHEMA)
        assert await nearest(index, 1) == [point.point_id]
        await index.open(ENCODED)
        assert await unencoded(index) == []

    async def test_without_a_place_nothing_is_found_or_taken(self, index: VectorIndex) -> None:
        point = index_point("m")
        await index.upsert([point])
        assert await nearest(index, 1) == []
        assert await unencoded(index) == []
        with pytest.raises(InvalidInput, match="rayapp job reindex"):
            await index.set_encoder([update(point, 1)])
        await index.set_encoder([])

    async def test_bad_vectors_are_refused_whole(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(ENCODED)
        good, bad = index_point("good"), index_point("bad")
        await index.upsert([good, bad])
        wrong = EncoderUpdate(point_id=bad.point_id, vectors=(vector(1),), rev=1)
        with pytest.raises(BadVector):
            await index.set_encoder([update(good, 1), wrong])
        with pytest.raises(BadVector):
            await index.query(
                ANN, EVERYTHING, [SubQuery(name="encoder", limit=5, encoder=vector(1))]
            )
        assert len(await unencoded(index)) == 2
