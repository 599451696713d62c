"""Outcome evidence: who it may move, how far, and in which direction."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.learning.rules.outcomes import with_outcome
from rayapp.memory.item import MemoryItem, Outcome, Quality, Stats
from rayapp.memory.tiers import Tier
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.ranking import (
    BANK_WILSON_SHARE,
    BANK_WILSON_USES,
    Ranked,
    evidence_factor,
    harm,
    rank,
    weights_of,
    with_rerank,
)
from rayapp.search.rules.recipes import Recipe
from tests.support.builders import an_item

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RECIPE = Recipe(name="test")
LEARNING = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS)
NOT_LEARNING = (Tier.BOOKS, Tier.DATAGOV_SCHEMA, Tier.DATAGOV_EXPANSION)
# The scores that a memory can be born with: neutral, and those of a takeaway.
BIRTHS = (0.5, 0.7, 0.55, 0.2)
outcomes = st.lists(st.sampled_from(list(Outcome)), max_size=12)


def judged(tier: Tier, born: float, history: list[Outcome]) -> MemoryItem:
    stats = Stats(score=born)
    for outcome in history:
        stats = with_outcome(stats, outcome, NOW)
    return an_item(tier=tier, stats=stats, lang="en")


def after(*history: Outcome, tier: Tier = Tier.HISTORY) -> MemoryItem:
    return judged(tier, 0.5, list(history))


def ranked(*candidates: Candidate, recipe: Recipe = RECIPE) -> list[Ranked]:
    return rank(
        Candidates.of(candidates),
        query_lang="en",
        recipe=recipe,
        retriever=DenseRetriever(used=False),
    )


def found(item: MemoryItem, words: float, name: str | None = None) -> Candidate:
    item = replace(item, memory_id=name or item.memory_id)
    return Candidate(item=item, sparse=words, sparse_rank=1)


def names(answer: list[Ranked]) -> list[str]:
    return [one.item.memory_id for one in answer]


@given(st.sampled_from(LEARNING), st.sampled_from(BIRTHS), outcomes)
def test_a_success_never_lowers_and_a_failure_never_raises(
    tier: Tier, born: float, history: list[Outcome]
) -> None:
    before = evidence_factor(judged(tier, born, history), RECIPE)
    worked = evidence_factor(judged(tier, born, [*history, Outcome.WORKED]), RECIPE)
    failed = evidence_factor(judged(tier, born, [*history, Outcome.FAILED]), RECIPE)
    assert failed <= before + 1e-9
    assert before <= worked + 1e-9


@given(st.sampled_from(LEARNING), st.sampled_from(BIRTHS), outcomes)
def test_evidence_lifts_by_the_band_at_most_and_leaves_the_floor(
    tier: Tier, born: float, history: list[Outcome]
) -> None:
    factor = evidence_factor(judged(tier, born, history), RECIPE)
    least = (1 - RECIPE.outcome_band) * RECIPE.harm_floor
    assert least - 1e-9 <= factor <= 1 + RECIPE.outcome_band + 1e-9


@given(st.lists(st.tuples(st.floats(0.1, 50), outcomes), min_size=2, max_size=8))
def test_outcomes_of_others_neither_move_nor_reorder_what_nobody_judged(
    rows: list[tuple[float, list[Outcome]]],
) -> None:
    fresh = [found(an_item(lang="en"), words, f"f{n}") for n, (words, _) in enumerate(rows)]
    others = [
        found(judged(Tier.HISTORY, 0.5, history), words, f"j{n}")
        for n, (words, history) in enumerate(rows)
    ]
    unjudged = [found(an_item(lang="en"), words, f"j{n}") for n, (words, _) in enumerate(rows)]
    before, now = ranked(*fresh, *unjudged), ranked(*fresh, *others)

    def of(answer: list[Ranked]) -> dict[str, float]:
        return {
            one.item.memory_id: one.summary.final_score
            for one in answer
            if one.item.memory_id.startswith("f")
        }

    assert of(now) == of(before)
    assert list(of(now)) == list(of(before))


@pytest.mark.parametrize("tier", LEARNING)
def test_good_advice_goes_before_bad_advice_that_is_worded_like_the_question(tier: Tier) -> None:
    good = after(*[Outcome.WORKED] * 3, tier=tier)
    bad = after(*[Outcome.FAILED] * 3, tier=tier)
    candidates = [found(bad, 10.0, "bad"), found(good, 2.0, "good")]
    assert names(ranked(*candidates)) == ["good", "bad"]
    assert names(ranked(*candidates, recipe=Recipe(name="off", maturity=False))) == ["bad", "good"]


def test_what_helped_elsewhere_does_not_pass_what_answers_better() -> None:
    proven = after(*[Outcome.WORKED] * 8)
    candidates = [found(an_item(lang="en"), 10.0, "answer"), found(proven, 8.0, "proven")]
    assert names(ranked(*candidates)) == ["answer", "proven"]
    close = [found(an_item(lang="en"), 10.0, "answer"), found(proven, 9.5, "proven")]
    assert names(ranked(*close)) == ["proven", "answer"]


def test_one_failure_is_a_doubt_and_three_are_a_verdict() -> None:
    factors = [evidence_factor(after(*[Outcome.FAILED] * n), RECIPE) for n in range(5)]
    assert factors[0] == 1.0
    assert factors[1] > 0.75
    assert factors[3] < 0.1
    assert factors == sorted(factors, reverse=True)


def test_a_harmful_item_that_works_again_is_forgiven() -> None:
    bad = [Outcome.FAILED] * 4
    assert harm(after(*bad), RECIPE) == 1.0
    assert harm(after(*bad, Outcome.WORKED, Outcome.WORKED), RECIPE) == 0.0


@given(st.sampled_from(NOT_LEARNING), st.sampled_from(BIRTHS), outcomes)
def test_books_and_datagov_items_are_never_judged(
    tier: Tier, born: float, history: list[Outcome]
) -> None:
    assert evidence_factor(judged(tier, born, history), RECIPE) == 1.0


@given(st.sampled_from(BIRTHS), outcomes, st.floats(0, 1), st.floats(0, 1))
def test_outcomes_never_move_a_bank_fact_beyond_the_blend(
    born: float, history: list[Outcome], importance: float, confidence: float
) -> None:
    fact = replace(
        judged(Tier.MEMORY_BANK, born, history),
        quality=Quality(importance=importance, confidence=confidence),
    )
    factor = evidence_factor(fact, RECIPE)
    most = BANK_WILSON_SHARE * weights_of(fact).learned
    assert abs(factor - 1.0) <= min(most, RECIPE.outcome_band) + 1e-9
    assert most <= BANK_WILSON_SHARE
    if len(history) < BANK_WILSON_USES:
        assert factor == 1.0


@given(st.lists(st.sampled_from(list(Outcome)), min_size=BANK_WILSON_USES, max_size=12))
def test_a_bank_fact_with_enough_outcomes_follows_them(history: list[Outcome]) -> None:
    before = evidence_factor(judged(Tier.MEMORY_BANK, 0.5, history), RECIPE)
    worked = evidence_factor(judged(Tier.MEMORY_BANK, 0.5, [*history, Outcome.WORKED]), RECIPE)
    failed = evidence_factor(judged(Tier.MEMORY_BANK, 0.5, [*history, Outcome.FAILED]), RECIPE)
    assert failed <= before <= worked


@pytest.mark.parametrize("failures", [3, 20])
def test_a_bank_fact_that_failed_stays_before_what_matches_less(failures: int) -> None:
    fact = after(*[Outcome.FAILED] * failures, tier=Tier.MEMORY_BANK)
    weaker = an_item(tier=Tier.MEMORY_BANK, lang="en")
    candidates = [found(fact, 10.0, "fact"), found(weaker, 8.0, "weaker")]
    assert names(ranked(*candidates)) == ["fact", "weaker"]
    likes_both = with_rerank(ranked(*candidates), [0.6, 0.6], RECIPE)
    assert names(likes_both) == ["fact", "weaker"]


def test_the_reranker_does_not_lift_bad_advice_again() -> None:
    good, bad = after(*[Outcome.WORKED] * 3), after(*[Outcome.FAILED] * 3)
    before = ranked(found(bad, 10.0, "bad"), found(good, 3.0, "good"))
    likes_the_words = [0.95 if name == "bad" else 0.3 for name in names(before)]
    assert names(with_rerank(before, likes_the_words, RECIPE)) == ["good", "bad"]
