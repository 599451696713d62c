"""A text that holds the identifier of the question comes before those that do not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.container import bootstrap
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever, fuse, held_shares
from rayapp.search.rules.ranking import rank
from rayapp.search.rules.recipes import Recipe, find_recipe
from tests.support.builders import an_item

RECIPES = bootstrap.load_texts().recipes
RECIPE = RECIPES["default"]
WITHOUT = find_recipe(RECIPES, "default-without-identifiers")
RRF = RECIPE.model_copy(update={"fusion": "rrf"})
SCORES = st.floats(0.0, 1.0)
QUESTIONS = ["INV-777777", "was INV-777777 paid?", "מתי שולמה INV-777777?", "מה קרה ל-INV-777777"]


def an_invoice(name: str, **said: Any) -> Candidate:
    item = an_item(memory_id=name, text=f"Invoice {name} was paid late", lang="en")
    return replace(Candidate(item=item), **said)


def invoices(count: int) -> list[Candidate]:
    return [an_invoice(f"INV-{n:06d}", dense=0.9 - n / 100, sparse=1.0) for n in range(count)]


def scores(count: int, recipe: Recipe, question: str) -> list[float]:
    found = Candidates.of(invoices(count))
    return fuse(found, "he", recipe, DenseRetriever(), question).score.tolist()


def shares(question: str, *found: Candidate) -> list[float] | None:
    held = held_shares(question, Candidates.of(found))
    return None if held is None else held.tolist()


@given(
    others=st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=8),
    own=SCORES,
    pending=st.booleans(),
    question=st.sampled_from(QUESTIONS),
    recipe=st.sampled_from([RECIPE, RRF]),
    lang=st.sampled_from(["he", "en", "mixed", "other"]),
)
def test_nothing_else_lifts_a_text_past_the_one_that_holds_it(
    others: list[tuple[float, float]],
    own: float,
    pending: bool,
    question: str,
    recipe: Recipe,
    lang: str,
) -> None:
    found = [
        an_invoice(f"INV-{n:06d}", dense=dense, sparse=sparse)
        for n, (dense, sparse) in enumerate(others)
    ]
    said = {"pending": own} if pending else {"dense": own, "sparse": own}
    found.append(an_invoice("INV-777777", **said))
    fused = fuse(Candidates.of(found), lang, recipe, DenseRetriever(), question)
    assert fused.score[-1] >= fused.score[:-1].max()
    assert fused.held.tolist() == [0.0] * len(others) + [1.0]
    weights = fused.dense_weight + fused.text_weight + fused.identifier_weight
    assert weights == pytest.approx(1.0)


def test_words_across_scripts_do_not_lose_it_to_nearer_neighbours() -> None:
    found = Candidates.of([*invoices(60), an_invoice("INV-777777", dense=0.3, sparse=57.2)])
    for recipe, first in ((RECIPE, "INV-777777"), (WITHOUT, "INV-000000")):
        ranked = rank(
            found, query_lang="he", recipe=recipe, retriever=DenseRetriever(), question=QUESTIONS[2]
        )
        assert ranked[0].item.memory_id == first
    ranked = rank(
        found, query_lang="he", recipe=RECIPE, retriever=DenseRetriever(), question=QUESTIONS[2]
    )
    weights = ranked[0].summary.weights
    parts = [weights[part] for part in ("dense", "text", "identifier")]
    assert parts == pytest.approx([0.45, 0.05, 0.5])


@pytest.mark.parametrize(
    "question",
    ["", "when was the invoice paid?", "paid in 2023?", "was INV-999999 paid?", "is INV-0 paid"],
)
def test_a_question_without_one_that_some_hold_is_ranked_as_before(question: str) -> None:
    assert scores(9, RECIPE, question) == scores(9, WITHOUT, question)


def test_an_identifier_moves_nothing_without_the_feature() -> None:
    plain = scores(9, RECIPE, "")
    for recipe, same in ((RECIPE, False), (WITHOUT, True)):
        assert (scores(9, recipe, "was INV-000007 paid?") == plain) is same


def test_one_that_most_hold_says_nothing() -> None:
    same = [an_invoice("INV-777777", dense=0.5, sparse=1.0) for _ in range(3)]
    assert shares(QUESTIONS[1], *same, *invoices(2)) is None
    assert shares(QUESTIONS[1], *same, *invoices(3)) == [1.0] * 3 + [0.0] * 3


def test_of_several_identifiers_the_text_with_most_of_them_is_the_measure() -> None:
    asked = "compare INV-000001 with INV-000002"
    assert shares(asked, *invoices(6)) == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    both = replace(an_item(memory_id="both"), text="INV-000001 replaces INV-000002")
    found = [*invoices(6), Candidate(item=both)]
    assert shares(asked, *found) == [0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 1.0]


def test_the_order_of_those_that_hold_it_is_that_of_their_scores() -> None:
    found = [an_invoice("INV-777777", dense=n / 10, sparse=1.0) for n in range(4)] + invoices(9)
    fused = fuse(Candidates.of(found), "he", RECIPE, DenseRetriever(), QUESTIONS[2])
    held = fused.score[:4].tolist()
    assert held == sorted(held)
