"""Small rules around ranking: recipes, evidence gathering, collapse, confidence, maturity."""

from dataclasses import replace

import pytest

from rayapp.core.errors import ConfigError
from rayapp.index.records import ScoredPoint
from rayapp.memory.item import IndexOp, IndexState, MemoryItem, Quality, Stats, SyncState
from rayapp.memory.tiers import Tier
from rayapp.search.rules.candidates import Evidence, Worded, gather_evidence, to_candidates
from rayapp.search.rules.confidence import Features, label, reaches, relevance
from rayapp.search.rules.diversification import collapse
from rayapp.search.rules.ranking import Weights, learned_score, total_boost, weights_of
from rayapp.search.rules.recipes import ConfidenceModel, Recipe, parse_recipe
from tests.support.builders import an_item


@pytest.mark.parametrize(
    ("uses", "score", "weights"),
    [
        (0, 0.5, Weights(0.70, 0.30)),
        (1, 0.9, Weights(0.70, 0.30)),
        (2, 0.49, Weights(0.70, 0.30)),
        (2, 0.5, Weights(0.35, 0.65)),
        (3, 0.7, Weights(0.25, 0.75)),
        (4, 0.9, Weights(0.25, 0.75)),
        (5, 0.8, Weights(0.20, 0.80)),
        (9, 0.79, Weights(0.25, 0.75)),
    ],
)
def test_maturity_table(uses: int, score: float, weights: Weights) -> None:
    assert weights_of(an_item(stats=Stats(uses=uses, score=score))) == weights


def test_memory_bank_weights_follow_quality() -> None:
    high = an_item(tier=Tier.MEMORY_BANK, quality=Quality(importance=1.0, confidence=0.8))
    low = an_item(tier=Tier.MEMORY_BANK, quality=Quality(importance=1.0, confidence=0.79))
    assert weights_of(high) == Weights(0.45, 0.55)
    assert weights_of(low) == Weights(0.60, 0.40)
    assert weights_of(an_item(tier=Tier.DATAGOV_SCHEMA)) == Weights(1.0, 0.0)


def test_memory_bank_blends_wilson_from_three_uses() -> None:
    quality = Quality(importance=1.0, confidence=0.5)
    two = an_item(tier=Tier.MEMORY_BANK, quality=quality, stats=Stats(uses=2, wilson_score=1.0))
    three = replace(two, stats=Stats(uses=3, wilson_score=1.0))
    assert learned_score(two) == pytest.approx(0.5)
    assert learned_score(three) == pytest.approx(0.8 * 0.5 + 0.2)


def test_the_total_boost_is_capped() -> None:
    assert total_boost(1.5, 1.2, 1.1) == pytest.approx(1.32)
    assert total_boost(1.5, 2.0, 1.5, 1.15) == 1.5
    assert total_boost(1.5, 0.5) == 0.5


def test_evidence_merges_lists_of_tiers_and_ranks_over_all_of_them() -> None:
    found = gather_evidence(
        [[ScoredPoint("a", 0.9), ScoredPoint("b", 0.2)], [ScoredPoint("c", 0.5)]],
        [[ScoredPoint("b", 7.0)]],
    )
    assert found["a"] == Evidence(dense=0.9, dense_rank=1)
    assert found["c"].dense_rank == 2
    assert found["b"] == Evidence(dense=0.2, dense_rank=3, sparse=7.0, sparse_rank=1)


def test_a_negative_cosine_counts_as_no_similarity() -> None:
    assert gather_evidence([[ScoredPoint("a", -0.4)]], [])["a"].dense == 0.0


def stale(vector_hash: str | None) -> MemoryItem:
    state = IndexState(
        op=IndexOp.VECTOR, sync_state=SyncState.PENDING, vector_hash=vector_hash, rev=2
    )
    return an_item(memory_id="edited", index=state)


def test_old_vectors_say_nothing_about_an_edited_text() -> None:
    item = stale("of the old text")
    said = {item.point_id: Evidence(dense=0.9, dense_rank=1, sparse=5.0, sparse_rank=1)}
    now = {item.point_id: "of the new text"}
    assert len(to_candidates([item], said, {}, now)) == 0
    kept = to_candidates([item], said, {item.point_id: Worded(0.5)}, now)
    assert (kept[0].dense, kept[0].sparse, kept[0].pending) == (None, None, 0.5)


def test_an_unchanged_text_that_is_indexed_again_keeps_its_evidence() -> None:
    item = stale("same")
    said = {item.point_id: Evidence(dense=0.9, dense_rank=1)}
    assert to_candidates([item], said, {}, {item.point_id: "same"})[0].dense == 0.9


def yes(_a: str, _b: str) -> bool:
    return True


def test_equal_texts_are_shown_once_and_the_better_one_carries_the_ids() -> None:
    same = an_item(memory_id="same", text="the cat sat")
    items = [
        an_item(memory_id="best", text="the cat sat"),
        an_item(memory_id="x", text="dog"),
        same,
    ]
    kept = collapse(items, similarity=0.97, wanted=5, may_collapse=yes)
    assert [(one.index, one.collapsed_ids) for one in kept] == [(0, ("same",)), (1, ())]


def test_different_numbers_stay_apart() -> None:
    words = " ".join(f"word{n}" for n in range(80))
    items = [
        an_item(memory_id="a", text=f"{words} costs 10"),
        an_item(memory_id="b", text=f"{words} costs 11"),
    ]
    assert len(collapse(items, similarity=0.97, wanted=5, may_collapse=lambda a, b: False)) == 2
    assert len(collapse(items, similarity=0.97, wanted=5, may_collapse=yes)) == 1


def test_collapse_stops_at_what_is_wanted() -> None:
    items = [an_item(memory_id=str(n), text=f"text number {n}") for n in range(9)]
    assert len(collapse(items, similarity=0.97, wanted=3, may_collapse=yes)) == 3


def test_confidence_grows_with_coverage_and_cosine() -> None:
    model = ConfidenceModel()
    values = [relevance(Features(c, v), model) for c, v in ((0, 0), (0.3, 0.3), (0.7, 1.0))]
    assert values == sorted(values)
    assert label(values[0], model) == "low"
    assert label(values[-1], model) == "high"
    assert reaches("high", "medium")
    assert not reaches("low", "medium")


def test_a_recipe_with_an_unknown_field_names_it() -> None:
    with pytest.raises(ConfigError, match=r"Recipe mine: dens"):
        parse_recipe("mine", {"dens": 1})
    assert parse_recipe("mine", {}) == Recipe(name="mine")
