"""What a chat program asks and learns of the scores of its turns. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from rayapp.learning.records import Recorder, Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class OwedScore:
    """The answer that waits for its score, and the receipt that it was given with."""

    message_id: str
    receipt_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """A thumb on an answer: 1, 0 or -1. No `memory_ids`: what the answer was given with."""

    message_id: str
    score: int
    conversation_id: str | None = None
    memory_ids: tuple[str, ...] = ()
    recorder: Recorder = field(default_factory=Recorder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAnswer:
    """`updated` memories were moved by it; `duplicate`: the same thumb was known already."""

    updated: int
    skipped: tuple[Skipped, ...]
    duplicate: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreState:
    """Of one answer. An unknown message has no conversation, and owes nothing."""

    message_id: str
    conversation_id: str | None = None
    memory_id: str | None = None
    required: bool = False
    scored_at: datetime | None = None
    score: int | None = None
