"""The feature reranker's judgement: a linear model over `FEATURES`, read from a small table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rayapp.core.errors import ConfigError
from rayapp.search.rules.rerank_features import FEATURES, Floats

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankModel:
    """Attributes:
    name: goes into health and reports.
    static_model: the word vectors that it was trained with; others have another scale.
    weights: one per feature, in the order of `FEATURES`.
    """

    name: str
    static_model: str
    weights: tuple[float, ...]
    bias: float

    def logits(self, features: Floats) -> list[float]:
        """One per row; the gateway makes probabilities of them."""
        scores = features.astype(np.float64) @ np.asarray(self.weights) + self.bias
        return [float(score) for score in scores]


def parse_rerank_model(tree: Mapping[str, Any]) -> RerankModel:
    """ConfigError when it was made for other features, or a number is missing."""
    try:
        weights = {str(name): float(weight) for name, weight in tree["weights"].items()}
        model = RerankModel(
            name=str(tree["name"]),
            static_model=str(tree["static_model"]),
            weights=tuple(weights.get(name, 0.0) for name in FEATURES),
            bias=float(tree["bias"]),
        )
        fits = tree["format"] == FORMAT and weights.keys() == set(FEATURES)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"The reranker's weights cannot be read ({error!r}): {_AGAIN}") from error
    if not fits or not all(map(math.isfinite, (*model.weights, model.bias))):
        raise ConfigError(f"The reranker's weights do not fit this version: {_AGAIN}")
    return model


def as_tree(model: RerankModel) -> dict[str, Any]:
    """What `parse_rerank_model` reads."""
    return {
        "format": FORMAT,
        "name": model.name,
        "static_model": model.static_model,
        "bias": model.bias,
        "weights": dict(zip(FEATURES, model.weights, strict=True)),
    }


_AGAIN = "make them again with `python -m jobs.build.reranker`."
