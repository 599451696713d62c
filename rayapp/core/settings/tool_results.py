"""Settings of remembered tool results."""

from __future__ import annotations

from pydantic import Field

from rayapp.core.settings.base import Concern


class ToolResultSettings(Concern):
    min_chars: int = Field(
        100, ge=1, le=10_000, description="Shorter answers of tools are not kept, characters."
    )
    max_chars: int = Field(
        10_000, ge=200, le=50_000, description="Longer answers of tools are cut, characters."
    )
    per_conversation: int = Field(
        500, ge=1, description="Active tool results of one conversation (decision 0030)."
    )
    batch_limit_items: int = Field(20, ge=1, le=100, description="Most results in one request.")
