"""The base of all settings models, apart from them so that each concern may have its own file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Concern(BaseModel):
    """Frozen, and an unknown name is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
