"""What every `VectorIndex` must do. Subclass `VectorIndexContract` and give the fixtures.

index       an open, empty index with `SCHEMA`
make_index  async: an index of its own alias, not opened
without_rev async: takes `rev` out of points of `index`
"""

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayapp.core.errors import (
    BadVector,
    Conflict,
    IndexDown,
    InvalidInput,
    NotFound,
    SchemaMismatch,
)
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.vectors import IndexSchema, SparseVector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import WHOLE, IndexPoint, SubQuery
from rayapp.index.rules.points import collection_name
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from tests.support.examples import examples
from tests.support.index_points import (
    DIMS,
    NOW,
    SCHEMA,
    dense_query,
    index_point,
    sparse_query,
    vector,
)
from tests.support.stores.index import InMemoryIndex
from tests.support.vector_index_cases import (
    ANN,
    EMPTY_LISTS,
    EVERYTHING,
    FILTER_CANARIES,
    MakeIndex,
    crowd,
    found,
    item_filters,
    sub_query_of_any,
)
from tests.support.vector_index_collection_contract import VectorIndexCollectionContract
from tests.support.vector_index_copy_contract import VectorIndexCopyContract
from tests.support.vector_index_encoder_contract import VectorIndexEncoderContract
from tests.support.vector_index_passage_contract import VectorIndexPassageContract
from tests.support.vector_index_write_contract import VectorIndexWriteContract


class VectorIndexContract(
    VectorIndexWriteContract,
    VectorIndexCopyContract,
    VectorIndexCollectionContract,
    VectorIndexPassageContract,
    VectorIndexEncoderContract,
):
    """Inherited by one test class per implementation."""

    # --- querying ------------------------------------------------------------------------

    async def test_dense_query_is_ordered_by_cosine(self, index: VectorIndex) -> None:
        points = [index_point(f"m{i}", seed=i) for i in range(20)]
        scaled = [replace(p, dense=p.dense * (i + 1)) for i, p in enumerate(points)]
        await index.upsert(scaled)
        (hits,) = await index.query(ANN, EVERYTHING, [dense_query(99, limit=7)])
        expected = sorted(points, key=lambda p: -float(p.dense @ vector(99)))[:7]
        assert [h.point_id for h in hits] == [p.point_id for p in expected]
        for hit, point in zip(hits, expected, strict=True):
            assert hit.score == pytest.approx(float(point.dense @ vector(99)), abs=1e-5)

    async def test_sparse_query_is_dot_product_times_idf(self, make_index: MakeIndex) -> None:
        """On a new index: engines count deleted points in the IDF until they vacuum."""
        index = await make_index()
        await index.open(SCHEMA)
        rare, often = 7, 8
        await index.upsert(
            [
                index_point("a", sparse=SparseVector([rare], [2.0])),
                index_point("b", sparse=SparseVector([often], [2.0])),
                index_point("c", sparse=SparseVector([often], [1.0])),
                index_point("d", "bob", sparse=SparseVector([often], [1.0])),
            ]
        )
        (hits,) = await index.query(ANN, EVERYTHING, [sparse_query(rare, often)])
        idf = {df: float(np.log((4 - df + 0.5) / (df + 0.5) + 1)) for df in (1, 3)}
        wanted = {"a": 2 * idf[1], "b": 2 * idf[3], "c": idf[3]}
        assert [h.point_id for h in hits] == [point_id_of("ann", m) for m in wanted]
        assert [h.score for h in hits] == pytest.approx(list(wanted.values()), rel=1e-4)

    async def test_sub_queries_answer_in_order_with_their_own_tiers_and_limits(
        self, index: VectorIndex
    ) -> None:
        points = [index_point(f"{t.value}{i}", tier=t.value) for t in Tier for i in range(3)]
        await index.upsert(points)
        sub_queries = [
            dense_query(tiers=(Tier.BOOKS,)),
            sparse_query(tiers=(Tier.HISTORY, Tier.WORKING)),
            dense_query(limit=2),
            sparse_query(tiers=()),
        ]
        books, both, two, none = await found(index, EVERYTHING, ANN, sub_queries)
        assert books == {point_id_of("ann", f"books{i}") for i in range(3)}
        assert both == {
            point_id_of("ann", f"{t}{i}") for t in ("history", "working") for i in range(3)
        }
        assert len(two) == 2
        assert none == set()

    async def test_tiers_of_arm_and_filter_are_both_required(self, index: VectorIndex) -> None:
        await index.upsert([index_point("b", tier="books"), index_point("h", tier="history")])
        where = ItemFilter(tiers=(Tier.BOOKS, Tier.WORKING))
        sub_queries = [
            dense_query(tiers=(Tier.BOOKS, Tier.HISTORY)),
            dense_query(tiers=(Tier.HISTORY,)),
        ]
        assert await found(index, where, ANN, sub_queries) == [{point_id_of("ann", "b")}, set()]

    @pytest.mark.parametrize("case", FILTER_CANARIES, ids=str)
    async def test_every_filter_changes_the_result(self, index: VectorIndex, case: str) -> None:
        inside, outside, where = FILTER_CANARIES[case]
        points = [index_point("in", **inside), index_point("out", **outside)]
        await index.upsert(points)
        assert await found(index) == [{p.point_id for p in points}] * 2
        assert await found(index, where) == [{points[0].point_id}] * 2
        assert await index.count(ANN, where) == 1

    @pytest.mark.parametrize("field", EMPTY_LISTS)
    async def test_empty_list_matches_nothing(self, index: VectorIndex, field: str) -> None:
        await index.upsert([index_point("m1", tags=["a"], doc_id="d")])
        conditions: dict[str, Any] = {field: ()}
        where = replace(EVERYTHING, **conditions)
        assert await found(index, where) == [set(), set()]
        assert await index.count(ANN, where) == 0
        assert await index.count(None, where) == 0

    async def test_conditions_are_joined_by_and(self, index: VectorIndex) -> None:
        await index.upsert(
            [
                index_point("both", lang="he", tags=["x"]),
                index_point("lang", lang="he"),
                index_point("tag", tags=["x"]),
            ]
        )
        where = ItemFilter(langs=("he",), tags_any=("x",))
        assert await found(index, where) == [{point_id_of("ann", "both")}] * 2

    @pytest.mark.parametrize(
        "sub_query",
        [
            SubQuery(name="none", limit=1),
            SubQuery(name="both", limit=1, dense=vector(1), sparse=SparseVector([1], [1.0])),
            dense_query(limit=0),
            SubQuery(name="repeat", limit=1, sparse=SparseVector([1, 1], [1.0, 1.0])),
        ],
        ids=lambda sub_query: f"{sub_query.name}-{sub_query.limit}",
    )
    async def test_unusable_sub_queries_are_refused(
        self, index: VectorIndex, sub_query: SubQuery
    ) -> None:
        with pytest.raises(InvalidInput):
            await index.query(ANN, EVERYTHING, [sub_query])

    async def test_query_vector_of_another_size_is_refused(self, index: VectorIndex) -> None:
        with pytest.raises(BadVector):
            await index.query(ANN, EVERYTHING, [SubQuery(name="d", limit=1, dense=vector(1, 4))])

    async def test_query_without_terms_finds_nothing(self, index: VectorIndex) -> None:
        await index.upsert([index_point("m1")])
        sub_query = SubQuery(name="bm25", limit=5, sparse=SparseVector([], []))
        assert await index.query(ANN, EVERYTHING, [sub_query]) == [[]]

    # --- who may read ----------------------------------------------------------------------

    async def test_two_users_may_hold_the_same_memory_id(self, index: VectorIndex) -> None:
        mine, theirs = index_point("same", "ann"), index_point("same", "bob", lang="he")
        await index.upsert([mine, theirs])
        assert await found(index) == [{mine.point_id}] * 2
        assert await found(index, scope=ReadScope("bob")) == [{theirs.point_id}] * 2
        await index.delete([mine.point_id])
        assert await found(index, scope=ReadScope("bob")) == [{theirs.point_id}] * 2

    async def test_shared_items_are_the_systems_in_shared_tiers(self, index: VectorIndex) -> None:
        shared = index_point("s", SYSTEM_USER, tier="datagov_schema")
        private = index_point("p", SYSTEM_USER, tier="history")
        foreign = index_point("f", "bob", tier="datagov_schema")
        mine = index_point("m", tier="history")
        await index.upsert([shared, private, foreign, mine])
        assert (await found(index))[0] == {shared.point_id, mine.point_id}
        alone = ReadScope("ann", include_shared=False)
        assert (await found(index, scope=alone))[0] == {mine.point_id}
        datagov = replace(EVERYTHING, tiers=(Tier.DATAGOV_SCHEMA,))
        assert (await found(index, datagov))[0] == {shared.point_id}
        mixed = replace(EVERYTHING, tiers=(Tier.DATAGOV_SCHEMA, Tier.HISTORY))
        assert (await found(index, mixed))[0] == {shared.point_id, mine.point_id}
        history = replace(EVERYTHING, tiers=(Tier.HISTORY,))
        assert (await found(index, history))[0] == {mine.point_id}

    async def test_count_is_per_scope_or_over_all(self, index: VectorIndex) -> None:
        await index.upsert(
            [index_point("a"), index_point("b", status="archived"), index_point("c", "bob")]
        )
        assert await index.count() == 3
        assert await index.count(ANN) == 2
        assert await index.count(ANN, ItemFilter()) == 1
        assert await index.count(None, ItemFilter()) == 2

    @settings(
        max_examples=examples(40),
        deadline=None,
        database=None,
        # The points are the same for every example, and each subclass is its own executor.
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    @given(data=st.data())
    async def test_no_query_returns_a_foreign_point(
        self, index: VectorIndex, data: st.DataObject
    ) -> None:
        """Also the same ids as the fake, whose filters are written independently."""
        points, model = await self._crowd(index)
        scope = ReadScope(
            data.draw(st.sampled_from(["ann", "bob", "acme/ann", SYSTEM_USER])),
            data.draw(st.booleans()),
        )
        where = data.draw(item_filters())
        sub_queries = data.draw(st.lists(sub_query_of_any(), min_size=1, max_size=4))
        answer = await found(index, where, scope, sub_queries)
        for ids in answer:
            for point_id in ids:
                owner, tier = (points[point_id].payload[k] for k in ("user_id", "tier"))
                shared = owner == SYSTEM_USER and tier.startswith("datagov")
                assert owner == scope.user_id or (scope.include_shared and shared)
        assert answer == await found(model, where, scope, sub_queries)
        assert await index.count(scope, where) == await model.count(scope, where)

    async def _crowd(self, index: VectorIndex) -> tuple[dict[str, IndexPoint], VectorIndex]:
        points = crowd()
        if await index.count() != len(points):
            await index.upsert(points)
        model = InMemoryIndex()
        await model.open(SCHEMA)
        await model.upsert(points)
        return {p.point_id: p for p in points}, model

    # --- scroll, collections, alias ------------------------------------------------------

    @pytest.mark.parametrize("limit", [1, 3, 7, 100])
    async def test_scroll_walks_all_points_in_id_order(
        self, index: VectorIndex, limit: int
    ) -> None:
        points = [index_point(f"m{i}", f"user{i % 3}") for i in range(7)]
        await index.upsert(points)
        seen: list[str] = []
        after: str | None = None
        for _ in range(8):
            page, after = await index.scroll(after=after, limit=limit)
            assert len(page) <= limit
            seen += [p.point_id for p in page]
            if after is None:
                break
        assert after is None
        assert seen == sorted(p.point_id for p in points)

    async def test_scroll_goes_on_after_its_cursor_was_deleted(self, index: VectorIndex) -> None:
        points = [index_point(f"m{i}") for i in range(6)]
        ids = sorted(p.point_id for p in points)
        await index.upsert(points)
        _, after = await index.scroll(after=None, limit=3)
        assert after == ids[2]
        await index.delete([after])
        rest, end = await index.scroll(after=after, limit=10, read=WHOLE)
        assert [p.point_id for p in rest] == ids[3:]
        assert all(p.dense is not None and p.sparse is not None for p in rest)
        assert end is None

    async def test_new_collection_is_filled_and_switched_to(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        old = (await index.health()).collection
        wider = IndexSchema(model="Other/model", dims=DIMS * 2, analyser="a2")
        name = collection_name(old.partition("_")[0] if old else "", wider, NOW)
        await index.create_collection(name, wider)
        await index.create_collection(name, wider)
        with pytest.raises(Conflict):
            await index.create_collection(name, SCHEMA)
        assert set(await index.collections()) == {old, name}
        await index.upsert([index_point("old")])
        new = replace(index_point("new"), dense=vector(3, DIMS * 2))
        await index.at(name).upsert([new])
        with pytest.raises(BadVector):
            await index.at(name).upsert([index_point("x")])
        assert await index.at(name).count() == 1
        page, _ = await index.at(name).scroll(after=None, limit=5)
        assert [p.point_id for p in page] == [new.point_id]
        assert await found(index) == [{point_id_of("ann", "old")}] * 2
        with pytest.raises(Conflict):
            await index.drop_collection(str(old))
        await index.switch_alias(name)
        await index.open(wider)
        with pytest.raises(SchemaMismatch):
            await index.open(SCHEMA)
        sub_query = SubQuery(name="dense", limit=5, dense=vector(3, DIMS * 2))
        assert await found(index, EVERYTHING, ANN, [sub_query]) == [{new.point_id}]
        health = await index.health()
        assert (health.collection, health.needs_rebuild) == (name, False)
        await index.drop_collection(str(old))
        await index.drop_collection(str(old))
        assert await index.collections() == [name]

    async def test_an_empty_collection_may_ask_to_be_filled(self, make_index: MakeIndex) -> None:
        index = await make_index()
        await index.open(SCHEMA)
        old = (await index.health()).collection
        name = collection_name(old.partition("_")[0] if old else "", SCHEMA, NOW)
        await index.create_collection(name, SCHEMA, needs_rebuild=True)
        await index.switch_alias(name)
        assert (await index.health()).needs_rebuild
        await index.rebuilt()
        assert not (await index.health()).needs_rebuild

    async def test_missing_collection_is_not_found(self, index: VectorIndex) -> None:
        for call in (
            index.switch_alias("nothing_here"),
            index.at("nothing_here").upsert([index_point("m")]),
            index.at("nothing_here").count(),
            index.at("nothing_here").scroll(after=None, limit=1),
        ):
            with pytest.raises(NotFound):
                await call

    @pytest.mark.parametrize("name", ["../up", "", "Big Name", "a/b", "x" * 300])
    async def test_collection_names_are_checked(self, index: VectorIndex, name: str) -> None:
        with pytest.raises(InvalidInput):
            await index.create_collection(name, SCHEMA)
        with pytest.raises(InvalidInput):
            await index.drop_collection(name)

    # --- opening and health ----------------------------------------------------------------

    async def test_new_index_asks_for_a_rebuild_once(self, make_index: MakeIndex) -> None:
        index = await make_index()
        before = await index.health()
        assert (before.ready, before.needs_rebuild, before.collection) == (False, True, None)
        with pytest.raises(IndexDown):
            await index.query(ANN, EVERYTHING, [dense_query()])
        await index.open(SCHEMA)
        await index.open(SCHEMA)
        await index.upsert([index_point("m1")])
        health = await index.health()
        assert (health.ready, health.needs_rebuild, health.points) == (True, True, 1)
        assert health.collection is not None
        assert f"_{SCHEMA.slug}_{DIMS}_" in health.collection
        await index.rebuilt()
        assert not (await index.health()).needs_rebuild
        await index.open(SCHEMA)
        assert not (await index.health()).needs_rebuild

    @pytest.mark.parametrize(
        "change", [{"model": "Test/model-2"}, {"dims": 16}, {"analyser": "a2"}], ids=str
    )
    async def test_other_schema_names_the_command(
        self, index: VectorIndex, change: dict[str, Any]
    ) -> None:
        with pytest.raises(SchemaMismatch, match="rayapp job reindex") as caught:
            await index.open(replace(SCHEMA, **change))
        assert next(iter(change)) in str(caught.value)

    async def test_many_calls_at_once_all_answer(self, index: VectorIndex) -> None:
        await index.upsert([index_point(f"m{i}") for i in range(10)])
        calls = [index.query(ANN, EVERYTHING, [dense_query(i), sparse_query()]) for i in range(20)]
        writes = [index.upsert([index_point(f"n{i}")]) for i in range(10)]
        answers, _ = await asyncio.gather(asyncio.gather(*calls), asyncio.gather(*writes))
        assert all(len(hits) >= 10 for answer in answers for hits in answer)
        assert await index.count() == 20
