"""Reads the folder of recipes (YAML): the file name is the recipe's name."""

from __future__ import annotations

from pathlib import Path

import yaml

from rayapp.domain.retrieval.recipes import Recipe, parse_recipe
from rayapp.errors import ConfigError


def load_recipes(folder: Path) -> dict[str, Recipe]:
    """All `*.yaml` in `folder` by name. ConfigError names the file that cannot be used."""
    recipes = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"Recipe {path.name} is not valid UTF-8 YAML: {error}") from None
        if not isinstance(tree, dict):
            raise ConfigError(f"Recipe {path.name} must hold a mapping.")
        recipes[path.stem] = parse_recipe(path.stem, tree)
    if not recipes:
        raise ConfigError(f"No recipe in {folder.name}; add configs/recipes/default.yaml.")
    return recipes
