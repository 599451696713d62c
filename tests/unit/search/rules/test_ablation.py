"""Recipes without a feature: found by name, and without a trace of it in the order."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.container import bootstrap
from rayapp.core.errors import InvalidInput
from rayapp.graphs.records import GraphPriors
from rayapp.memory.item import Quality, Stats
from rayapp.memory.tiers import Tier
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.ranking import graph_boosts, in_order, rank, with_rerank
from rayapp.search.rules.recipes import FEATURES, Recipe, ablated_name, find_recipe
from rayapp.search.rules.updates import latest_first
from tests.support.builders import an_item
from tests.unit.search.rules.test_boosts import a_book, a_node, a_solution, an_action

RECIPES = bootstrap.load_texts().recipes
LANGS = ("he", "en", "mixed")
RETRIEVER = DenseRetriever(langs=frozenset({"en"}))


def candidates(scores: list[tuple[float, float]], lang: str) -> list[Candidate]:
    """(dense, sparse) of each."""
    return [
        Candidate(
            item=an_item(memory_id=f"m{number}", lang=lang),
            dense=dense,
            dense_rank=number + 1,
            sparse=sparse,
            sparse_rank=number + 1,
        )
        for number, (dense, sparse) in enumerate(scores)
    ]


def order(recipe: Recipe, found: list[Candidate], lang: str = "en") -> list[str]:
    ranked = rank(Candidates.of(found), query_lang=lang, recipe=recipe, retriever=RETRIEVER)
    return [one.item.memory_id for one in ranked]


SCORES = st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), min_size=2, max_size=8).map(
    lambda rows: [(dense / 100, sparse / 10) for dense, sparse in rows]
)


@pytest.mark.parametrize("name", sorted(RECIPES))
@settings(deadline=None)  # every example ranks twice, and the first one reads the tables
@given(scores=SCORES, query=st.sampled_from(LANGS), item=st.sampled_from(LANGS))
def test_one_arm_alone_decides_the_order(
    name: str, scores: list[tuple[float, float]], query: str, item: str
) -> None:
    found = candidates(scores, item)
    for feature, left in (("dense", "sparse"), ("sparse", "dense")):
        recipe = find_recipe(RECIPES, ablated_name(name, [feature]))
        ranked = rank(Candidates.of(found), query_lang=query, recipe=recipe, retriever=RETRIEVER)
        values = {one.item.memory_id: getattr(one, left) for one in found}
        shown = [values[one.item.memory_id] for one in ranked]
        assert shown == sorted(shown, reverse=True)


def test_outcomes_move_nothing_without_them() -> None:
    found = candidates([(0.5, 1.0), (0.49, 0.99)], "en")
    failed = Stats(uses=9, score=0.0)
    found[0] = replace(found[0], item=replace(found[0].item, stats=failed))
    assert order(RECIPES["default"], found) == ["m1", "m0"]
    assert order(find_recipe(RECIPES, "default-without-outcomes"), found) == ["m0", "m1"]


def test_a_reranker_moves_nothing_without_it() -> None:
    recipe = find_recipe(RECIPES, "default-without-rerank")
    ranked = rank(
        Candidates.of(candidates([(0.9, 9.0), (0.8, 8.0)], "en")),
        query_lang="en",
        recipe=recipe,
        retriever=RETRIEVER,
    )
    assert with_rerank(ranked, [0.0, 1.0], RECIPES["default"])[0].item.memory_id == "m1"
    assert with_rerank(ranked, [0.0, 1.0], recipe)[0].item.memory_id == "m0"


def test_quality_moves_nothing_without_it() -> None:
    quality = Quality(importance=1.0, confidence=0.9)
    fact = an_item(memory_id="m", tier=Tier.MEMORY_BANK, quality=quality)
    found = [Candidate(item=fact, dense=0.5, sparse=1.0), *candidates([(0.9, 2.0)], "en")]
    for name, same in (("default", False), ("default-without-quality", True)):
        recipe = find_recipe(RECIPES, name)
        ranked = rank(Candidates.of(found), query_lang="en", recipe=recipe, retriever=RETRIEVER)
        summary = next(one.summary for one in ranked if one.item is fact)
        assert (summary.quality_boost == summary.distance_boost == 1.0) is same


def test_the_graphs_say_nothing_without_them() -> None:
    bank = an_item(memory_id="m", tier=Tier.MEMORY_BANK)
    priors = GraphPriors(
        nodes=(a_node("haifa", "m"),),
        actions=(an_action(Tier.MEMORY_BANK, failed=5),),
        solutions=(a_solution(bank),),
    )
    book = an_item(memory_id="b", tier=Tier.BOOKS, dedup_scope="d")
    read = replace(priors, documents=(a_book("d", worked=5),))
    for name, same in (("default", False), ("default-without-graphs", True)):
        boosts = graph_boosts(read, find_recipe(RECIPES, name))
        said = boosts.of(bank, 0.5)
        values = [said.entity, said.action, said.solution, boosts.of(book, 0.5).document]
        assert all((value == 1.0) is same for value in values), values


def test_a_dated_question_keeps_the_order_without_recency() -> None:
    found = candidates([(0.5, 1.0), (0.49, 0.99)], "en")
    newer = replace(found[1].item, created_at=found[0].item.created_at + timedelta(days=1))
    found[1] = replace(found[1], item=newer)
    for name, first in (("default", "m1"), ("default-without-recency", "m0")):
        recipe = find_recipe(RECIPES, name)
        ranked = rank(Candidates.of(found), query_lang="en", recipe=recipe, retriever=RETRIEVER)
        assert in_order(ranked, "recency", recipe, asked=False)[0].item.memory_id == first


@pytest.mark.parametrize("feature", list(FEATURES))
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_feature_can_be_left_out_of_every_recipe(name: str, feature: str) -> None:
    asked = ablated_name(name, [feature])
    found = find_recipe(RECIPES, asked)
    assert found.name == asked
    Recipe.model_validate(found.model_dump())  # every value is inside the bounds of a recipe
    assert FEATURES[feature](found) == found


def test_several_features_are_left_out_together() -> None:
    both = find_recipe(RECIPES, ablated_name("default", ["expansions", "routing"]))
    assert (both.expansion_weight, both.routing) == (0.0, False)
    assert RECIPES["default"].expansion_weight > 0.0


def test_a_configured_recipe_goes_before_a_derived_one() -> None:
    own = Recipe(name="default-without-dense", rrf_k=7)
    assert find_recipe({**RECIPES, own.name: own}, own.name) is own


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope", "No recipe 'nope'; use one of default, lexical, rrf"),
        ("nope-without-dense", "No recipe 'nope'; use one of default"),
        ("default-without-magic", "No feature 'magic' .* it can be without dense, sparse"),
        ("default-without-", "No feature ''"),
    ],
)
def test_an_unknown_name_says_what_is_known(name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as raised:
        find_recipe(RECIPES, name)
    assert raised.value.code == "unknown_recipe"


def test_a_question_for_the_latest_keeps_the_order_without_latest() -> None:
    found = candidates([(0.5, 1.0), (0.1, 0.2)], "en")
    newer = found[0].item.created_at + timedelta(days=1)
    found[1] = replace(found[1], item=replace(found[1].item, created_at=newer))
    texts = bootstrap.load_texts()
    for name, first in (("default", "m1"), ("default-without-latest", "m0")):
        recipe = find_recipe(RECIPES, name)
        ranked = rank(Candidates.of(found), query_lang="en", recipe=recipe, retriever=RETRIEVER)
        shown = latest_first(ranked, f"latest {found[0].item.text}", texts.latest, recipe)
        assert shown[0].item.memory_id == first
