"""A text that holds the identifier of the question comes before those that do not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.container import bootstrap
from rayapp.search.rules.fusion import Candidate, DenseRetriever, fuse, held_shares
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


@given(
    scores=st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=8),
    own=SCORES,
    pending=st.booleans(),
    question=st.sampled_from(QUESTIONS),
    recipe=st.sampled_from([RECIPE, RRF]),
    lang=st.sampled_from(["he", "en", "mixed", "other"]),
)
def test_nothing_else_lifts_a_text_past_the_one_that_holds_it(
    scores: list[tuple[float, float]],
    own: float,
    pending: bool,
    question: str,
    recipe: Recipe,
    lang: str,
) -> None:
    others = [
        an_invoice(f"INV-{n:06d}", dense=dense, sparse=sparse)
        for n, (dense, sparse) in enumerate(scores)
    ]
    said = {"pending": own} if pending else {"dense": own, "sparse": own}
    found = [*others, an_invoice("INV-777777", **said)]
    fused = fuse(found, lang, recipe, DenseRetriever(), question)
    assert fused[-1].score >= max(one.score for one in fused[:-1])
    assert [one.held for one in fused] == [0.0] * len(others) + [1.0]
    for one in fused:
        assert one.dense_weight + one.text_weight + one.identifier_weight == pytest.approx(1.0)


def test_words_across_scripts_do_not_lose_it_to_nearer_neighbours() -> None:
    found = [*invoices(60), an_invoice("INV-777777", dense=0.3, sparse=57.2)]
    for recipe, first in ((RECIPE, "INV-777777"), (WITHOUT, "INV-000000")):
        ranked = rank(
            found, query_lang="he", recipe=recipe, retriever=DenseRetriever(), question=QUESTIONS[2]
        )
        assert ranked[0].item.memory_id == first
    ranked = rank(
        found, query_lang="he", recipe=RECIPE, retriever=DenseRetriever(), question=QUESTIONS[2]
    )
    weights = ranked[0].summary.weights
    shares = [weights[part] for part in ("dense", "text", "identifier")]
    assert shares == pytest.approx([0.45, 0.05, 0.5])


@pytest.mark.parametrize(
    "question",
    ["", "when was the invoice paid?", "paid in 2023?", "was INV-999999 paid?", "is INV-0 paid"],
)
def test_a_question_without_one_that_some_hold_is_ranked_as_before(question: str) -> None:
    found = invoices(9)
    assert fuse(found, "he", RECIPE, DenseRetriever(), question) == fuse(
        found, "he", WITHOUT, DenseRetriever(), question
    )


def test_an_identifier_moves_nothing_without_the_feature() -> None:
    plain = fuse(invoices(9), "he", RECIPE, DenseRetriever())
    for recipe, same in ((RECIPE, False), (WITHOUT, True)):
        fused = fuse(invoices(9), "he", recipe, DenseRetriever(), "was INV-000007 paid?")
        assert (fused == plain) is same


def test_one_that_most_hold_says_nothing() -> None:
    same = [an_invoice("INV-777777", dense=0.5, sparse=1.0) for _ in range(3)]
    assert held_shares(QUESTIONS[1], [*same, *invoices(2)]) is None
    assert held_shares(QUESTIONS[1], [*same, *invoices(3)]) == [1.0] * 3 + [0.0] * 3


def test_of_several_identifiers_the_text_with_most_of_them_is_the_measure() -> None:
    asked = "compare INV-000001 with INV-000002"
    assert held_shares(asked, invoices(6)) == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    both = replace(an_item(memory_id="both"), text="INV-000001 replaces INV-000002")
    found = [*invoices(6), Candidate(item=both)]
    assert held_shares(asked, found) == [0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 1.0]


def test_the_order_of_those_that_hold_it_is_that_of_their_scores() -> None:
    found = [an_invoice("INV-777777", dense=n / 10, sparse=1.0) for n in range(4)] + invoices(9)
    fused = fuse(found, "he", RECIPE, DenseRetriever(), QUESTIONS[2])
    scores = [one.score for one in fused[:4]]
    assert scores == sorted(scores)
