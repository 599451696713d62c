"""A recipe: a named set of ranking parameters. The YAML files under `configs/recipes` hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rayapp.errors import ConfigError


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DenseWeights(_Part):
    """Share of the dense arm in the fusion, by script agreement of query and item (decision 17)."""

    hebrew: float = Field(0.15, ge=0, le=1, description="Hebrew query, Hebrew item.")
    english: float = Field(0.45, ge=0, le=1, description="English query, English item.")
    mixed: float = Field(0.25, ge=0, le=1, description="One of them holds both scripts.")
    cross: float = Field(0.9, ge=0, le=1, description="Different scripts: words cannot agree.")
    unknown: float = Field(
        0.15, ge=0, le=1, description="The model was not made for one of the scripts."
    )


class RerankBlend(_Part):
    """Decision 18: probabilities only, never raw logits."""

    original: float = Field(0.4, ge=0, le=1, description="Weight of the score before.")
    cross_encoder: float = Field(0.6, ge=0, le=1, description="Weight of the probability.")
    top: int = Field(30, ge=1, le=200, description="Candidates reranked, by rank before.")


class ConfidenceModel(_Part):
    """Logistic model over features with an absolute scale; written by the evaluation job."""

    bias: float = -2.0
    cosine: float = 2.0
    coverage: float = 4.0
    high: float = Field(0.7, ge=0, le=1, description="Relevance from which an answer is `high`.")
    medium: float = Field(0.4, ge=0, le=1, description="Relevance from which it is `medium`.")


class Recipe(_Part):
    name: str = Field(min_length=1)
    fusion: Literal["weighted", "rrf"] = "weighted"
    rrf_k: int = Field(60, ge=1, description="Constant of reciprocal rank fusion (its paper: 60).")
    dense: DenseWeights = DenseWeights()
    expansion_weight: float = Field(0.4, ge=0, le=1, description="Weight of expansion terms.")
    maturity: bool = Field(True, description="Outcome evidence takes part (decision 20).")
    outcome_band: float = Field(
        0.2, ge=0, le=1, description="Most that evidence moves a score, of the query's best."
    )
    total_boost_cap: float = Field(1.5, ge=1, le=4, description="Decision 19.")
    quality_distance: float = Field(0.8, ge=0, le=1, description="memory_bank distance factor.")
    quality_floor: float = Field(0.2, ge=0, le=1, description="Least distance factor.")
    recency_band: float = Field(
        0.7, ge=0, le=1, description="Share of the best score within which newer goes first."
    )
    collapse_similarity: float = Field(0.97, ge=0, le=1, description="Near-duplicate overlap.")
    rerank: RerankBlend = RerankBlend()
    confidence: ConfidenceModel = ConfidenceModel()


def parse_recipe(name: str, tree: Mapping[str, Any]) -> Recipe:
    """A recipe from parsed YAML; ConfigError names the file and the field."""
    try:
        return Recipe.model_validate({"name": name, **tree})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"Recipe {name}: {field}: {first['msg']}.") from None
