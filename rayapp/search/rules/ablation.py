"""Recipes with features switched off: `default-without-dense` is `default` without that arm.

The name is all that crosses HTTP, so a measurement asks for what it needs and no server is set up
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rayapp.core.errors import InvalidInput
from rayapp.search.rules.recipes import DenseWeights, Recipe, TurnShares

SEPARATOR = "-without-"


def _only(recipe: Recipe, dense: float) -> Recipe:
    """One arm alone. Weighted fusion orders by it as any other fusion of one list would."""
    weights = DenseWeights(**dict.fromkeys(DenseWeights.model_fields, dense))
    alone = {"fusion": "weighted", "dense": weights, "identifier_weight": 0.0}
    return recipe.model_copy(update=alone)


def _no_rerank(recipe: Recipe) -> Recipe:
    blend = recipe.rerank.model_copy(update={"original": 1.0, "cross_encoder": 0.0})
    return recipe.model_copy(update={"rerank": blend})


def _with(**values: object) -> Callable[[Recipe], Recipe]:
    return lambda recipe: recipe.model_copy(update=values)


# What a recipe is without each feature. A value here must leave no trace of the feature in the
# order of the hits; tests hold every row to that.
FEATURES: Mapping[str, Callable[[Recipe], Recipe]] = {
    "dense": lambda recipe: _only(recipe, 0.0),
    "sparse": lambda recipe: _only(recipe, 1.0),
    "turns": _with(turns=TurnShares(**dict.fromkeys(TurnShares.model_fields, 0.0))),
    "expansions": _with(expansion_weight=0.0),
    "identifiers": _with(identifier_weight=0.0),
    "rerank": _no_rerank,
    "outcomes": _with(maturity=False),
    "graphs": _with(
        entity_weight=0.0,
        document_gain=0.0,
        action_base=1.0,
        action_span=0.0,
        solution_distance=1.0,
        routing=False,
    ),
    "routing": _with(routing=False),
    "quality": _with(quality_distance=0.0, quality_cap=1.0),
    "recency": _with(recency_band=1.0),
    "collapse": _with(collapse_similarity=1.0),
}


def ablated_name(recipe: str, features: Iterable[str]) -> str:
    """The name under which `find_recipe` knows `recipe` without `features`."""
    return "".join([recipe, *(f"{SEPARATOR}{feature}" for feature in features)])


def find_recipe(recipes: Mapping[str, Recipe], name: str) -> Recipe:
    """The recipe of this name; a configured one goes before a derived one.

    Raises:
        InvalidInput: no such recipe, or a feature that cannot be switched off.
    """
    found = recipes.get(name)
    if found is not None:
        return found
    base, *features = name.split(SEPARATOR)
    found = recipes.get(base)
    if found is None:
        known = ", ".join(sorted(recipes))
        raise InvalidInput(f"No recipe {base!r}; use one of {known}.", code="unknown_recipe")
    for feature in features:
        if feature not in FEATURES:
            known = ", ".join(FEATURES)
            raise InvalidInput(
                f"No feature {feature!r} in recipe {name!r}; it can be without {known}.",
                code="unknown_recipe",
            )
        found = FEATURES[feature](found)
    return found.model_copy(update={"name": name})
