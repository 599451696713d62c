"""Values of personalities: a template, a user's shelf of them, and what a check found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

DEFAULT_TEMPLATE = "default"
# Templates that one user may keep: a short list to choose from, and a bound on the row (1 MB).
MAX_TEMPLATES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A personality as YAML text. A preset has no times, and nobody changes it."""

    template_id: str
    name: str
    content: str
    description: str = ""
    preset: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The templates a user wrote, by id, and the id of the one in use, a preset perhaps."""

    templates: Mapping[str, Template] = field(default_factory=dict)
    active: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A template that can be used: its parsed fields, and what could be better."""

    fields: Mapping[str, Any]
    name: str
    warnings: tuple[str, ...] = ()
