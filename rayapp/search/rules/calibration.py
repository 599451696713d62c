"""What makes a relevance a probability: the confidence of each recipe for one embedder. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rayapp.core.errors import ConfigError
from rayapp.search.rules.recipes import ConfidenceModel, Recipe

DEFAULT = "default"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Calibration(BaseModel):
    """One file: recipes by name, and how the fit was judged (for readers, not for the service)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipes: dict[str, ConfidenceModel] = Field(min_length=1)
    measured: dict[str, dict[str, float]] = {}


@dataclass(frozen=True, slots=True)
class Calibrated:
    """`notice` says what is missing and what to run; None = every recipe has its calibration."""

    recipes: dict[str, Recipe]
    notice: str | None = None


def parse_calibration(name: str, tree: Mapping[str, Any]) -> Calibration:
    """ConfigError names the file and the field."""
    try:
        return Calibration.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"Calibration {name}: {field}: {first['msg']}.") from None


def file_name(model: str) -> str:
    """Name of the file for an embedder; a model may be named by a path or an address."""
    return f"{_ODD.sub('_', model).strip('_')}.yaml"


def calibrated(
    recipes: Mapping[str, Recipe], calibration: Calibration | None, model: str
) -> Calibrated:
    """`recipes` with the confidence of their calibration.

    A recipe that sets its own keeps it. One that was not calibrated takes that of `default`, and
    without any file the built-in one: its levels are a guess, and it says so.
    """
    if calibration is None:
        return Calibrated(
            dict(recipes),
            f"No calibration for embedder {model}: confidence is a guess. {_advice()}",
        )
    made, missing = {}, []
    for name, recipe in recipes.items():
        found = calibration.recipes.get(name, calibration.recipes.get(DEFAULT))
        if "confidence" in recipe.model_fields_set:
            found = recipe.confidence
        elif name not in calibration.recipes:
            missing.append(name)
        made[name] = recipe.model_copy(update={"confidence": found}) if found else recipe
    if not missing:
        return Calibrated(made)
    return Calibrated(
        made,
        f"No calibration of {', '.join(sorted(missing))} for embedder {model}: confidence is a "
        f"guess. {_advice(missing)}",
    )


def _advice(recipes: Sequence[str] = ()) -> str:
    """One command for every kind of embedder: the job reads the settings that the service read."""
    named = "".join(f" --recipe {name}" for name in sorted(recipes))
    return (
        f"With this service's settings run `python -m jobs.calibrate --data DIR{named}`, where DIR "
        "holds the evaluation sets, and restart it."
    )
