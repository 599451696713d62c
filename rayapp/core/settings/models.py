"""Settings of the language model behind the helpers: where it is, what it may cost."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from rayapp.core.settings.base import Concern


def _endpoint(value: str) -> str:
    """Empty, or an http address. The value is not repeated: it may hold a password."""
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = None
    if value and (parts is None or parts.scheme not in ("http", "https") or not parts.netloc):
        raise ValueError("start it with http:// or https://, for example http://host:8080/v1")
    return value


class HelperFlags(Concern):
    outcome_detection: bool = Field(True, description="Judge an answer by what the user says next.")
    fact_extraction: bool = Field(True, description="Learn one fact from an exchange.")
    contextual_prefix: bool = Field(
        False, description="Say what a text is about before it is embedded: a call per memory."
    )
    profile_detection: bool = Field(True, description="Learn what users say of themselves.")
    history_summary: bool = Field(True, description="Sum up long conversations.")
    merge_duplicates: bool = Field(True, description="Word what merged memories say together.")
    tool_result_summary: bool = Field(True, description="Sum up long answers of tools.")


class ModelsSettings(Concern):
    base_url: Annotated[str, AfterValidator(_endpoint)] = Field(
        "", description="OpenAI-compatible endpoint, up to `/v1`; empty: helpers are off."
    )
    model: str = Field("", description="Name of the model there.")
    # Plain text, because settings travel to other processes as JSON; never shown, never logged.
    api_key: str = Field("", repr=False, description="Bearer token.")
    timeout_s: float = Field(10.0, gt=0, le=120, description="Limit of one answer.")
    prefix_timeout_s: float = Field(
        5.0, gt=0, le=60, description="The same for the contextual prefix."
    )
    concurrency: int = Field(5, ge=1, le=256, description="Calls in flight per process.")
    price_prompt: float = Field(0.0, ge=0, description="Price of a million tokens asked.")
    price_completion: float = Field(0.0, ge=0, description="Price of a million tokens answered.")
    calls_per_day: int = Field(2_000, ge=0, description="Per user and UTC day; 0 = no limit.")
    tokens_per_day: int = Field(2_000_000, ge=0, description="Per user and UTC day; 0 = no limit.")
    cost_per_day: float = Field(0.0, ge=0, description="Per user and UTC day; 0 = no limit.")
    raw_log_share: float = Field(
        0.0, ge=0, le=1, description="Share of answers logged, redacted and cut; 0 = none."
    )
    helpers: HelperFlags = Field(HelperFlags(), description="Which helpers may use the model.")

    @model_validator(mode="after")
    def _named(self) -> ModelsSettings:
        if self.base_url and not self.model:
            raise ValueError("models.base_url is set: set models.model too")
        return self

    @property
    def on(self) -> bool:
        """True when there is an endpoint."""
        return bool(self.base_url)
