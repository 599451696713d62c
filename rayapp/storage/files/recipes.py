"""Reads the folders of recipes and of calibrations (YAML): the file name is the name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rayapp.core.errors import ConfigError
from rayapp.search.rules.calibration import Calibration, file_name, parse_calibration
from rayapp.search.rules.recipes import Recipe, parse_recipe


def load_recipes(folder: Path) -> dict[str, Recipe]:
    """All `*.yaml` in `folder` by name. ConfigError names the file that cannot be used."""
    recipes = {}
    for path in sorted(folder.glob("*.yaml")):
        recipes[path.stem] = parse_recipe(path.stem, _tree(path, "Recipe"))
    if not recipes:
        raise ConfigError(f"No recipe in {folder.name}; add configs/recipes/default.yaml.")
    return recipes


def load_calibration(folder: Path, model: str) -> Calibration | None:
    """That of an embedder; None when nobody made one. ConfigError: the file cannot be used."""
    path = folder / file_name(model)
    if not path.is_file():
        return None
    return parse_calibration(path.stem, _tree(path, "Calibration"))


def _tree(path: Path, what: str) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ConfigError(
            f"{what} {path.name} cannot be read ({error.strerror}): check the rights of the file."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what} {path.name} is not valid UTF-8 YAML: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{what} {path.name} must hold a mapping.")
    return tree
