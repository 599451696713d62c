"""What `copy` of a vector index must do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rayapp.core.errors import InvalidInput, NotFound
from rayapp.core.vectors import IndexSchema, SparseVector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import WHOLE, IndexPoint, PointCopy, Projection
from rayapp.memory.item import point_id_of
from tests.support.index_points import DIMS, SCHEMA, index_point
from tests.support.vector_index_cases import ABSENT, MakeIndex, found

# More points than an engine writes in one piece.
MANY = 70


def hashed(name: str, words: str = "w", **options: Any) -> IndexPoint:
    return index_point(name, vector_hash=words, **options)


def copy_of(point: IndexPoint, **changes: Any) -> PointCopy:
    rev = changes.pop("rev", point.rev)
    payload = point.payload | changes
    return PointCopy(point_id=point.point_id, payload=payload, rev=rev)


async def beside(index: VectorIndex, schema: IndexSchema = SCHEMA) -> tuple[str, str]:
    """The collection behind the alias, and a new one."""
    await index.open(SCHEMA)
    source = (await index.health()).collection
    assert source is not None
    name = source.rpartition("_")[0] + "_1"
    await index.create_collection(name, schema)
    return source, name


class VectorIndexCopyContract:
    """Needs a `make_index` fixture."""

    async def test_copies_have_the_old_vectors_and_the_new_payload(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        source, name = await beside(index)
        old = hashed("m1", tags=["old"], doc_id="d")
        bare = replace(hashed("m2"), sparse=SparseVector([], []))
        await index.upsert([old, bare])
        copies = [copy_of(old, tags=["עברית"], doc_id=None, rev=7), copy_of(bare)]
        assert await index.at(name).copy(copies, source) == []
        stored, empty = sorted(
            await index.at(name).retrieve([old.point_id, bare.point_id], WHOLE),
            key=lambda point: str(point.payload["memory_id"]),
        )
        assert (stored.payload["tags"], stored.payload["rev"]) == (["עברית"], 7)
        assert "doc_id" not in stored.payload
        assert stored.dense is not None
        assert stored.sparse == old.sparse
        np.testing.assert_allclose(stored.dense, old.dense, atol=1e-6)
        assert empty.sparse == SparseVector([], [])
        await index.switch_alias(name)
        assert (await found(index))[0] == {old.point_id, bare.point_id}
        assert (await found(index))[1] == {old.point_id}

    async def test_what_cannot_be_copied_is_named_and_not_written(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        source, name = await beside(index)
        fits, other = hashed("fits"), hashed("other", "older words")
        unhashed = index_point("unhashed")
        await index.upsert([fits, other, unhashed])
        missing = PointCopy(point_id=ABSENT, payload=fits.payload, rev=1)
        wanted = {"vector_hash": "w"}
        copies = [copy_of(other, **wanted), missing, copy_of(fits), copy_of(unhashed, **wanted)]
        left = await index.at(name).copy(copies, source)
        assert sorted(left) == sorted([other.point_id, ABSENT, unhashed.point_id])
        page, _ = await index.at(name).scroll(after=None, limit=9)
        assert [point.point_id for point in page] == [fits.point_id]

    async def test_a_copy_never_replaces_a_newer_point(self, make_index: MakeIndex) -> None:
        index = await make_index()
        source, name = await beside(index)
        points = [hashed(n, rev=3) for n in ("newer", "equal", "older")]
        await index.upsert(points)
        theirs = [replace(p, rev=rev) for p, rev in zip(points, (4, 3, 2), strict=True)]
        await index.at(name).upsert(
            [replace(p, payload=p.payload | {"lang": "he"}) for p in theirs]
        )
        copies = [copy_of(p) for p in points]
        assert await index.at(name).copy(copies, source) == []
        stored = await index.at(name).retrieve([p.point_id for p in points])
        langs = {p.payload["memory_id"]: (p.payload["lang"], p.payload["rev"]) for p in stored}
        assert langs == {"newer": ("he", 4), "equal": ("en", 3), "older": ("en", 3)}

    async def test_many_points_are_copied_in_one_call(self, make_index: MakeIndex) -> None:
        index = await make_index()
        source, name = await beside(index)
        points = [hashed(f"m{n}", "w" if n % 3 else "other") for n in range(MANY)]
        await index.upsert(points)
        copies = [copy_of(p, vector_hash="w") for p in points]
        left = await index.at(name).copy([*copies, *copies[:5]], source)
        assert sorted(left) == sorted(p.point_id for n, p in enumerate(points) if not n % 3)
        assert await index.at(name).count() == MANY - len(left)

    async def test_a_copy_that_is_refused_writes_nothing(self, make_index: MakeIndex) -> None:
        index = await make_index()
        source, name = await beside(index)
        points = [hashed(f"m{n}") for n in range(MANY)]
        await index.upsert(points)
        for bad in (
            copy_of(points[-1], user_id=""),
            copy_of(points[-1], vector_hash=None),
            copy_of(points[-1], rev=-1),
            replace(copy_of(points[-1]), point_id="x"),
        ):
            with pytest.raises(InvalidInput):
                await index.at(name).copy([*map(copy_of, points[:-1]), bad], source)
        assert await index.at(name).count() == 0

    async def test_vectors_of_another_model_are_never_copied(self, make_index: MakeIndex) -> None:
        index = await make_index()
        wider = IndexSchema(model="Other/model", dims=DIMS * 2, analyser="a2")
        source, name = await beside(index, wider)
        point = hashed("m1")
        await index.upsert([point])
        assert await index.at(name).copy([copy_of(point)], source) == [point.point_id]
        assert await index.at(name).count() == 0

    async def test_collections_that_are_not_there_are_not_found(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        source, name = await beside(index)
        point = hashed("m1")
        await index.upsert([point])
        with pytest.raises(NotFound):
            await index.at(name).copy([copy_of(point)], "nothing_here")
        with pytest.raises(NotFound):
            await index.at("nothing_here").copy([copy_of(point)], source)
        assert await index.at(name).copy([], source) == []

    async def test_only_the_wanted_payload_keys_are_read(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        points = [hashed(f"m{n}", rev=n) for n in range(3)]
        await index.upsert(points)
        keys = ["rev", "vector_hash", "doc_id"]
        page, _ = await index.scroll(after=None, limit=5, read=Projection(keys))
        some = await index.retrieve([p.point_id for p in points], Projection(keys, vectors=True))
        wanted = {p.point_id: {"rev": p.rev, "vector_hash": "w"} for p in points}
        assert {p.point_id: p.payload for p in page} == wanted
        assert {p.point_id: p.payload for p in some} == wanted
        assert all(p.dense is not None for p in some)
        assert {p.dense is None for p in page} == {True}

    async def test_a_long_scroll_within_bounds_gives_each_point_once(
        self, make_index: MakeIndex
    ) -> None:
        """More points than an engine reads in one piece."""
        index = await make_index()
        await index.open(SCHEMA)
        ids = sorted(point_id_of("ann", f"m{n}") for n in range(600))
        await index.upsert([index_point(f"m{n}") for n in range(600)])
        for after, until, limit in (
            (None, None, 600),
            (ids[9], ids[570], 1_000),
            (ids[0], None, 300),
        ):
            read = Projection(["rev"])
            page, following = await index.scroll(after=after, until=until, limit=limit, read=read)
            start = 0 if after is None else ids.index(after) + 1
            end = len(ids) if until is None else ids.index(until) + 1
            wanted = ids[start:end]
            assert [p.point_id for p in page] == wanted[:limit]
            assert following == (wanted[limit - 1] if len(wanted) > limit else None)
