"""A search asks for a recipe without a feature by its name alone."""

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness
from tests.unit.search.pies import nine_pies


async def test_an_arm_is_left_out_and_the_answer_says_so() -> None:
    service = await Harness.open()
    for text in ("a sentence about whales", "משפט על לווייתנים"):
        await service.store(text)
    await service.drain()
    for query in ("whales", "לווייתנים"):
        for feature, weight in (("dense", 0.0), ("sparse", 1.0)):
            answer = await service.search(query, recipe=f"default-without-{feature}")
            assert answer.recipe == f"default-without-{feature}"
            assert {hit.summary.weights["dense"] for hit in answer.hits} == {weight}


async def test_a_reranker_that_has_no_weight_is_not_asked() -> None:
    service = await nine_pies()
    asked = await service.search("apple pie", limit=2)
    assert asked.hits[0].summary.ce_rank == 1
    without = await service.search("apple pie", limit=2, recipe="default-without-rerank")
    assert {hit.summary.ce_rank for hit in without.hits} == {None}
    assert "rerank" not in without.timings_ms


async def test_expansions_of_no_weight_find_nothing() -> None:
    service = await Harness.open()
    car = await service.store("הרכב החדש חונה בירושלים", tier=Tier.HISTORY)
    await service.drain()
    answer = await service.search("מכונית", recipe="lexical")
    assert [hit.item.memory_id for hit in answer.hits if hit.summary.text_rank] == [car]
    answer = await service.search("מכונית", recipe="lexical-without-expansions")
    assert not [hit for hit in answer.hits if hit.summary.text_rank]


async def test_an_unknown_feature_names_the_known_ones() -> None:
    service = await Harness.open()
    with pytest.raises(InvalidInput, match="it can be without dense, sparse"):
        await service.search("x", recipe="default-without-magic")
