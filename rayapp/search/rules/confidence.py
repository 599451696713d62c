"""How sure an answer is, from features with an absolute scale; ranking scores are relative."""

from __future__ import annotations

import math

from rayapp.search.requests import ConfidenceLabel
from rayapp.search.rules.answering import Features
from rayapp.search.rules.recipes import ConfidenceModel

LEVELS: tuple[ConfidenceLabel, ...] = ("low", "medium", "high")


def relevance(features: Features, model: ConfidenceModel) -> float:
    """Probability that the hit answers the question, 0..1."""
    z = (
        model.bias
        + model.cosine * features.cosine
        + model.coverage * features.coverage
        + model.passage * features.passage
        + model.words * features.words
        + model.number_missing * features.number_missing
    )
    return 1.0 / (1.0 + math.exp(-z))


def label(value: float, model: ConfidenceModel) -> ConfidenceLabel:
    if value >= model.high:
        return "high"
    return "medium" if value >= model.medium else "low"


def reaches(value: ConfidenceLabel, least: ConfidenceLabel) -> bool:
    return LEVELS.index(value) >= LEVELS.index(least)
