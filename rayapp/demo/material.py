"""What a demo run stores and asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.client import Memory


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question and the ids of which any one answers it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything of one run. Every memory has a stable id, so a second run stores duplicates."""

    title: str
    user_id: str
    memories: Sequence[Memory]
    questions: Sequence[DemoQuestion]
    notes: Sequence[str] = ()
