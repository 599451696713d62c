"""The answers that helpers ask models for. Strict: what does not fit is no answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

# A list longer than that is a model that runs on, not an answer.
MAX_LIST = 50
MAX_ANSWER_CHARS = 4_000

Share = Annotated[float, Field(ge=0, le=1)]
Line = Annotated[str, Field(min_length=1, max_length=MAX_ANSWER_CHARS)]
ProfileField = Literal[
    "name",
    "goals",
    "skills",
    "values",
    "interests",
    "preferences",
    "learning_goals",
    "short_term_goals",
    "long_term_goals",
    "technical_skills",
    "creative_skills",
    "interpersonal_skills",
    "projects",
    "challenges",
    "work_context",
    "colleagues",
    "family",
    "communication_style",
]


class ModelAnswer(BaseModel):
    """Fields that nobody asked for are dropped: models like to explain themselves."""

    model_config = ConfigDict(extra="ignore", frozen=True, str_strip_whitespace=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_numbers(cls, value: object, info: ValidationInfo) -> object:
        # `true` would be read as a confidence of 1.
        wanted = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and wanted is not bool:
            raise ValueError("must not be true or false")
        return value


class OutcomeJudgement(ModelAnswer):
    """How an answer went, seen from what the user said next."""

    outcome: Literal["worked", "failed", "partial", "unknown"]
    confidence: Share
    indicators: list[Line] = Field([], max_length=MAX_LIST)
    reason: str = Field("", max_length=MAX_ANSWER_CHARS)


class ProfileFinding(ModelAnswer):
    """One thing that the user says of themselves; `quote` is in their own words."""

    field: ProfileField
    value: Line
    confidence: Literal["high", "medium", "low"]
    quote: str = Field("", max_length=MAX_ANSWER_CHARS)


class ProfileFindings(ModelAnswer):
    """Empty: the user said nothing of themselves."""

    items: list[ProfileFinding] = Field(max_length=MAX_LIST)


class HistorySummary(ModelAnswer):
    """A conversation in a few lines."""

    bullets: list[Line] = Field(max_length=MAX_LIST)


class MergedMemory(ModelAnswer):
    """`same`: the texts say one thing; then `text` says it, and nothing else."""

    same: bool
    text: str = Field("", max_length=MAX_ANSWER_CHARS)
    confidence: Share


# The name in a prompt's front matter -> what its answer must be.
ANSWERS: dict[str, type[ModelAnswer] | type[str]] = {
    "text": str,
    "outcome_judgement": OutcomeJudgement,
    "profile_findings": ProfileFindings,
    "history_summary": HistorySummary,
    "merged_memory": MergedMemory,
}
