"""The vector index contract on collections beside the alias, which a reindex fills."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.vectors import IndexSchema
from rayapp.index.ports import VectorIndex
from rayapp.index.records import WHOLE, IndexPoint
from rayapp.index.rules.points import collection_name, collections_of
from tests.support.index_points import DIMS, NOW, SCHEMA, dense_query, index_point, vector
from tests.support.vector_index_cases import ANN, EVERYTHING, MakeIndex

WIDER = IndexSchema(model="Other/model", dims=DIMS * 2, analyser="a2")
MISSING = "memories_nothing-here_8_1"


async def beside(index: VectorIndex, schema: IndexSchema = SCHEMA) -> str:
    """A new empty collection beside the one behind the alias."""
    alias = str((await index.health()).collection).partition("_")[0]
    name = collection_name(alias, schema, NOW)
    await index.create_collection(name, schema)
    return name


async def ids_of(index: VectorIndex, name: str | None) -> set[str]:
    page, _ = await index.at(name).scroll(after=None, limit=100)
    return {point.point_id for point in page}


class VectorIndexCollectionContract:
    """Needs the fixtures of `VectorIndexContract`."""

    async def test_a_named_collection_is_read_and_deleted_from_alone(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        name = await beside(index)
        here, there = index_point("both", lang="he"), index_point("both", lang="en", seed=7)
        await index.upsert([here])
        await index.at(name).upsert([there])
        (stored,) = await index.at(name).retrieve([here.point_id], WHOLE)
        assert stored.payload["lang"] == "en"
        assert stored.dense is not None
        assert stored.dense == pytest.approx(there.dense, abs=1e-6)
        (hits,) = await index.at(name).query(ANN, EVERYTHING, [dense_query(7)])
        assert [hit.score for hit in hits] == [pytest.approx(1.0, abs=1e-5)]
        await index.at(name).delete([here.point_id], {here.point_id: 0})
        assert await ids_of(index, name) == {here.point_id}
        await index.at(name).delete([here.point_id], {here.point_id: 1})
        assert await ids_of(index, name) == set()
        assert await ids_of(index, None) == {here.point_id}

    async def test_a_query_is_checked_against_the_collection_it_asks(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        name = await beside(index, WIDER)
        wide = replace(index_point("wide"), dense=vector(3, DIMS * 2))
        await index.at(name).upsert([wide])
        sub_query = replace(dense_query(), dense=vector(3, DIMS * 2))
        (hits,) = await index.at(name).query(ANN, EVERYTHING, [sub_query])
        assert [hit.point_id for hit in hits] == [wide.point_id]

    async def test_a_collection_says_what_it_was_built_for(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        old = str((await index.health()).collection)
        name = await beside(index, WIDER)
        assert await index.schema_of(old) == SCHEMA
        assert await index.schema_of(name) == WIDER
        await index.drop_collection(name)
        with pytest.raises(NotFound):
            await index.schema_of(name)

    async def test_a_missing_named_collection_is_not_found(self, index: VectorIndex) -> None:
        point = index_point("m1")
        for call in (
            index.at(MISSING).delete([point.point_id]),
            index.at(MISSING).retrieve([point.point_id]),
            index.at(MISSING).query(ANN, EVERYTHING, [dense_query()]),
            index.schema_of(MISSING),
        ):
            with pytest.raises(NotFound):
                await call

    @pytest.mark.parametrize("limit", [1, 2, 3, 100])
    async def test_scroll_ends_with_its_last_id(self, index: VectorIndex, limit: int) -> None:
        points = [index_point(f"m{i}") for i in range(7)]
        await index.upsert(points)
        ids = sorted(point.point_id for point in points)
        for after, until in ((None, ids[3]), (ids[1], ids[4]), (ids[2], None), (ids[6], ids[6])):
            wanted = [i for i in ids if (after or "") < i <= (until or "g")]
            assert await _walk(index, after, until, limit) == wanted

    async def test_scroll_ends_before_an_id_that_is_not_there(self, index: VectorIndex) -> None:
        points: Sequence[IndexPoint] = [index_point(f"m{i}") for i in range(6)]
        ids = sorted(point.point_id for point in points)
        await index.upsert(points)
        await index.delete([ids[3]])
        assert await _walk(index, ids[0], ids[3], 2) == ids[1:3]
        page, end = await index.scroll(after=None, until=ids[2], limit=3)
        assert ([point.point_id for point in page], end) == (ids[:3], None)

    async def test_scroll_refuses_an_end_that_is_no_id(self, index: VectorIndex) -> None:
        with pytest.raises(InvalidInput):
            await index.scroll(after=None, until="x", limit=5)

    async def test_repeating_collection_calls_is_harmless(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        old = str((await index.health()).collection)
        name = collection_name(old.partition("_")[0], SCHEMA, NOW)
        await asyncio.gather(*(index.create_collection(name, SCHEMA) for _ in range(4)))
        point = index_point("m1")
        await index.at(name).upsert([point])
        await index.create_collection(name, SCHEMA)
        assert await ids_of(index, name) == {point.point_id}
        for _ in range(2):
            await index.switch_alias(name)
            assert (await index.health()).collection == name
        assert await ids_of(index, None) == {point.point_id}
        for _ in range(2):
            await index.drop_collection(old)
            with pytest.raises(Conflict):
                await index.drop_collection(name)
        alias = old.partition("_")[0]
        assert collections_of(alias, await index.collections()) == [name]

    async def test_an_alias_that_somebody_moved_is_left_where_it_is(
        self, make_index: MakeIndex
    ) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        old = str((await index.health()).collection)
        alias = old.partition("_")[0]
        one, two = (
            collection_name(alias, SCHEMA, NOW),
            collection_name(alias, SCHEMA, NOW + timedelta(seconds=1)),
        )
        for name in (one, two):
            await index.create_collection(name, SCHEMA)
        for _ in range(2):  # a switch whose answer was lost is repeated
            await index.switch_alias(one, expected=old)
        with pytest.raises(Conflict, match="moved meanwhile"):
            await index.switch_alias(two, expected=old)
        assert (await index.health()).collection == one
        await index.switch_alias(two, expected=one)
        assert (await index.health()).collection == two
        with pytest.raises(NotFound):
            await index.switch_alias(MISSING, expected=one)


async def _walk(index: VectorIndex, after: str | None, until: str | None, limit: int) -> list[str]:
    seen: list[str] = []
    for _ in range(10):
        page, after = await index.scroll(after=after, until=until, limit=limit)
        assert len(page) <= limit
        seen += [point.point_id for point in page]
        if after is None:
            return seen
    raise AssertionError("the scroll never ended")
