"""Rules of a user's shelf of templates. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rayapp.assistant.personality.records import DEFAULT_TEMPLATE, MAX_TEMPLATES, Shelf, Template
from rayapp.core.errors import Conflict


def in_use(shelf: Shelf, presets: Mapping[str, Template]) -> Template:
    """The template that the next request gets; the default when the chosen one is gone."""
    chosen = shelf.active or DEFAULT_TEMPLATE
    return shelf.templates.get(chosen) or presets.get(chosen) or presets[DEFAULT_TEMPLATE]


def same_preset(content: str, presets: Mapping[str, Template]) -> Template | None:
    """The preset that says the same, so that saving one unchanged does not copy it."""
    wanted = content.strip()
    return next((one for one in presets.values() if one.content.strip() == wanted), None)


def refuse_full() -> Conflict:
    return Conflict(
        f"You keep {MAX_TEMPLATES} templates already; delete one first.", code="personality_full"
    )
