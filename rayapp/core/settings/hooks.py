"""Settings of the hooks that a chat program calls around each turn."""

from __future__ import annotations

from pydantic import Field

from rayapp.core.settings.base import Concern


class HooksSettings(Concern):
    session_ttl_days: float = Field(
        30.0, gt=0, le=3_650, description="Lifetime of a conversation after its last turn, days."
    )
    attribution: bool = Field(
        True, description="Ask the assistant to mark which memories helped, in the context block."
    )
