"""What is read out of a conversation by a model, after the rules looked at it. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rayapp.memory.tiers import Tier

# One line per thing that a model is asked about an exchange.
Task = Literal["outcome", "profile", "fact", "summary"]
TASKS: tuple[Task, ...] = ("outcome", "profile", "fact", "summary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question and its answer. `trust`: of the memory that keeps them."""

    user: str
    assistant: str
    trust: float

    @property
    def text(self) -> str:
        return f"{self.user}\n{self.assistant}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A line of a model: `text` when it is kept, else the first rule that refuses it."""

    text: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One memory to make of an exchange. Tier, tags and numbers come from rules alone."""

    memory_id: str
    text: str
    tier: Tier
    tags: tuple[str, ...]
    importance: float
    confidence: float
    trust: float
    task: Task
    prompt_version: str


def learned_to_json(one: Learned) -> dict[str, Any]:
    """Plain JSON, as a row keeps it between deciding and storing."""
    return {
        "memory_id": one.memory_id,
        "text": one.text,
        "tier": one.tier.value,
        "tags": list(one.tags),
        "importance": one.importance,
        "confidence": one.confidence,
        "trust": one.trust,
        "task": one.task,
        "prompt_version": one.prompt_version,
    }


def learned_from_json(raw: Mapping[str, Any]) -> Learned:
    return Learned(
        memory_id=raw["memory_id"],
        text=raw["text"],
        tier=Tier(raw["tier"]),
        tags=tuple(raw["tags"]),
        importance=raw["importance"],
        confidence=raw["confidence"],
        trust=raw["trust"],
        task=raw["task"],
        prompt_version=raw["prompt_version"],
    )
