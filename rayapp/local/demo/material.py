"""What a demo run stores and asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rayapp.client import Memory


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question, the ids of which any one answers it, and what it says in English."""

    text: str
    evidence: frozenset[str]
    translation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything of one run. Every memory has a stable id, so a second run stores duplicates.

    Attributes:
        next_question: one that the demo leaves to the reader.
        translations: English of a memory in another language, by id; shown, never stored.
    """

    title: str
    user_id: str
    memories: Sequence[Memory]
    questions: Sequence[DemoQuestion]
    next_question: str
    translations: Mapping[str, str] = field(default_factory=dict)
