"""Recipes that a command names, looked at before its work."""

from collections.abc import Iterable, Mapping

from rayapp.core.errors import ConfigError
from rayapp.search.rules.recipes import Recipe


def known_recipes(recipes: Mapping[str, Recipe], names: Iterable[str]) -> list[Recipe]:
    """The recipes of these names, each once. ConfigError names the unknown ones."""
    asked = list(dict.fromkeys(names))
    unknown = sorted(name for name in asked if name not in recipes)
    if unknown:
        raise ConfigError(
            f"No recipe {', '.join(map(repr, unknown))}; use one of {', '.join(sorted(recipes))}."
        )
    return [recipes[name] for name in asked]
