"""Recipes that a command names: found, or refused with those that there are."""

import pytest

from jobs.recipe_names import known_recipes
from rayapp.core.errors import ConfigError
from rayapp.search.rules.recipes import Recipe

RECIPES = {name: Recipe(name=name) for name in ("default", "rrf")}


def test_recipes_are_found_by_name_each_once() -> None:
    found = known_recipes(RECIPES, ["rrf", "default", "rrf"])
    assert [recipe.name for recipe in found] == ["rrf", "default"]


def test_unknown_recipes_are_named_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="'mine', 'yours'; use one of default, rrf"):
        known_recipes(RECIPES, ["yours", "default", "mine"])
