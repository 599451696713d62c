"""rank(): fusion, evidence inside a band, capped boosts, sort modes, rerank blend."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.memory.item import Quality, Stats
from rayapp.memory.tiers import Tier
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.ranking import Ranked, in_order, rank, with_rerank
from rayapp.search.rules.recipes import Recipe
from tests.support.builders import an_item

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RECIPE = Recipe(name="test")


def candidate(name: str, **changes: object) -> Candidate:
    item_changes = {
        k: changes.pop(k)
        for k in list(changes)
        if k in ("tier", "stats", "quality", "created_at", "lang", "text")
    }
    item = an_item(memory_id=name, **{"lang": "en", **item_changes})
    return Candidate(item=item, **changes)  # type: ignore[arg-type] - fields by name


def order(ranked: list[Ranked]) -> list[str]:
    return [one.item.memory_id for one in ranked]


def run(
    *candidates: Candidate,
    lang: str = "en",
    recipe: Recipe = RECIPE,
    dense: bool = True,
    langs: frozenset[str] = frozenset(),
) -> list[Ranked]:
    return rank(
        Candidates.of(candidates),
        query_lang=lang,
        recipe=recipe,
        retriever=DenseRetriever(used=dense, langs=langs),
    )


def test_an_item_found_by_both_retrievers_beats_one_found_by_either() -> None:
    both = candidate("both", dense=0.8, dense_rank=1, sparse=10.0, sparse_rank=1)
    words = candidate("words", sparse=9.0, sparse_rank=2)
    near = candidate("near", dense=0.7, dense_rank=2)
    assert order(run(both, words, near))[0] == "both"


def test_hebrew_trusts_words_more_than_a_weak_dense_query() -> None:
    near = candidate("near", lang="he", dense=0.9, dense_rank=1, sparse=2.0, sparse_rank=2)
    words = candidate("words", lang="he", dense=0.3, dense_rank=2, sparse=10.0, sparse_rank=1)
    assert order(run(near, words, lang="he")) == ["words", "near"]


def test_across_scripts_the_dense_query_decides() -> None:
    near = candidate("near", lang="en", dense=0.9, dense_rank=1)
    words = candidate("words", lang="en", dense=0.1, dense_rank=2, sparse=10.0, sparse_rank=1)
    assert order(run(near, words, lang="he")) == ["near", "words"]


def test_a_model_that_does_not_know_a_script_cannot_decide_across_scripts() -> None:
    near = candidate("near", lang="he", dense=0.9, dense_rank=1)
    words = candidate("words", lang="en", dense=0.1, dense_rank=2, sparse=10.0, sparse_rank=1)
    assert order(run(near, words, lang="en", langs=frozenset({"en"}))) == ["words", "near"]
    assert order(run(near, words, lang="en", langs=frozenset({"en", "he"}))) == ["near", "words"]


def test_without_a_query_vector_words_alone_count() -> None:
    near = candidate("near", dense=0.9, dense_rank=1)
    words = candidate("words", sparse=1.0, sparse_rank=1)
    ranked = run(near, words, dense=False)
    assert order(ranked) == ["words", "near"]
    assert ranked[0].summary.weights["dense"] == 0.0


def test_an_item_nobody_judged_keeps_its_relevance() -> None:
    one = run(candidate("new", dense=0.5, dense_rank=1, sparse=4.0, sparse_rank=1))[0]
    assert one.summary.final_score == pytest.approx(one.summary.fused)


def test_books_are_not_moved_by_outcomes() -> None:
    judged = Stats(uses=9, score=1.0)
    one = run(
        candidate("page", tier=Tier.BOOKS, stats=judged, dense=0.5, dense_rank=1, sparse=3.0)
    )[0]
    assert one.summary.final_score == pytest.approx(one.summary.fused)


def test_memory_bank_quality_helps_but_never_beyond_the_cap() -> None:
    best = Quality(importance=1.0, confidence=1.0)
    weak = candidate("weak", tier=Tier.MEMORY_BANK, quality=best, sparse=1.0, sparse_rank=2)
    strong = candidate("strong", sparse=10.0, sparse_rank=1)
    ranked = run(weak, strong, dense=False)
    assert order(ranked) == ["strong", "weak"]
    assert ranked[1].summary.total_boost == RECIPE.quality_cap < RECIPE.total_boost_cap


@given(
    quality=st.floats(0, 1),
    dense=st.floats(0, 1),
    sparse=st.floats(0, 50),
    uses=st.integers(0, 50),
    score=st.floats(0, 1),
)
def test_no_mix_of_quality_and_outcomes_leaves_band_and_cap(
    quality: float, dense: float, sparse: float, uses: int, score: float
) -> None:
    one = candidate(
        "one",
        tier=Tier.MEMORY_BANK,
        quality=Quality(importance=quality, confidence=1.0),
        stats=Stats(uses=uses, score=score, wilson_score=score),
        dense=dense,
        dense_rank=1,
        sparse=sparse,
        sparse_rank=1,
    )
    other = candidate("other", dense=1.0, dense_rank=1, sparse=50.0, sparse_rank=1)
    for ranked in run(one, other):
        fused = ranked.summary.fused
        highest = fused * (1 + RECIPE.outcome_band) * RECIPE.total_boost_cap
        assert 0.0 <= ranked.summary.final_score <= highest + 1e-9


def test_equal_scores_rank_the_same_in_every_run() -> None:
    twins = [candidate(name, sparse=3.0, sparse_rank=1) for name in ("b", "a", "c")]
    assert order(run(*twins)) == order(run(*reversed(twins)))


def test_rerank_blends_probabilities_of_the_top_and_keeps_the_rest() -> None:
    ranked = run(
        candidate("first", sparse=10.0, sparse_rank=1),
        candidate("second", sparse=9.0, sparse_rank=2),
        candidate("third", sparse=1.0, sparse_rank=3),
    )
    blended = with_rerank(ranked, [0.0, 1.0], RECIPE)
    assert order(blended) == ["second", "first", "third"]
    before = {one.item.memory_id: one.summary.final_score for one in ranked}
    blend = RECIPE.rerank
    expected = blend.original * before["second"] + blend.cross_encoder
    assert blended[0].summary.final_score == pytest.approx(expected)
    assert blended[0].summary.ce_rank == 1
    assert blended[2].summary.ce_score is None


def test_sort_modes() -> None:
    old = candidate("old", created_at=NOW - timedelta(days=9), sparse=10.0, sparse_rank=1)
    new = candidate("new", created_at=NOW, sparse=9.0, sparse_rank=2)
    faint = candidate("faint", created_at=NOW + timedelta(days=1), sparse=0.5, sparse_rank=3)
    liked = candidate(
        "liked",
        created_at=NOW - timedelta(days=5),
        stats=Stats(uses=4, success_count=4.0),
        sparse=0.4,
    )
    ranked = run(old, new, faint, liked, dense=False)
    assert order(in_order(ranked, "relevance", RECIPE, asked=True)) == order(ranked)
    assert order(in_order(ranked, "recency", RECIPE, asked=True))[:2] == ["new", "old"]
    assert order(in_order(ranked, "recency", RECIPE, asked=False))[:2] == ["new", "old"]
    assert order(in_order(ranked, "score", RECIPE, asked=True))[0] == "liked"


def test_no_candidates_is_an_empty_ranking() -> None:
    assert run() == []
