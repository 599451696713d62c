"""What a search turns texts and hits with: analyser, expansions, recipes."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.search.rules.recipes import Recipe
from rayapp.text.analyser import Analyser
from rayapp.text.expansions import Expansions


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What turns text into terms, expansions and rankings; the same in every process."""

    analyser: Analyser
    expansions: Expansions
    recipes: dict[str, Recipe]
