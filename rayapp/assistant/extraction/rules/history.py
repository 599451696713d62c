"""When a conversation is long enough for a summary, and what a summary may be. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rayapp.assistant.extraction.records import Checked, Learned, Turn
from rayapp.assistant.extraction.rules.facts import line_of
from rayapp.assistant.extraction.rules.placing import (
    LEARNED_TAG,
    SUMMARY_TAG,
    Making,
    derived_trust,
)
from rayapp.learning.rules.dedup import content_words
from rayapp.memory.tiers import Tier
from rayapp.text.hostile import hostile
from rayapp.text.signature import signature

# Turns that one summary stands for (the history design: 8 messages).
TURNS = 8
BULLETS = 5  # of one summary (the history design)
# A longer text is a transcript. Five bullets of some twenty words (the history design).
MAX_SUMMARY_CHARS = 1_200
MIN_SUMMARY_CHARS = 20
# Least share of its words that the turns must hold: a summary words things anew, hence less than
# for a fact. Our choice.
GROUNDED_SUMMARY = 0.4
# Like a fact that was overheard, a little less important: it repeats what the turns say.
SUMMARY_IMPORTANCE = 0.5
SUMMARY_CONFIDENCE = 0.6


def summary_due(exchanges: int, every: int = TURNS) -> bool:
    """After each full set of turns, once."""
    return exchanges > 0 and exchanges % every == 0


def summary_of(bullets: Sequence[str], turns: Sequence[Turn]) -> Checked:
    """What is kept of the bullets of a model; None when nothing is left of them."""
    said = "\n".join(turn.text for turn in turns)
    kept: list[str] = []
    reason = "empty"
    for bullet in bullets[:BULLETS]:
        line, why = line_of(" ".join(bullet.split()))
        refused = why or (hostile(line) or _unsaid(line, said) if line else "empty")
        if line and not refused:
            kept.append(f"- {line}")
        reason = refused or reason
    text = "\n".join(kept)
    if not MIN_SUMMARY_CHARS <= len(text) <= MAX_SUMMARY_CHARS:
        return Checked(None, "too_long" if len(text) > MAX_SUMMARY_CHARS else reason)
    return Checked(text, "summary")


def placed_summary(text: str, turns: Sequence[Turn], *, made: Making) -> Learned:
    """In `working`, beside the turns: whether it lives longer is for outcomes to say."""
    return Learned(
        memory_id=made.memory_id("summary"),
        text=text,
        tier=Tier.WORKING,
        tags=(LEARNED_TAG, SUMMARY_TAG),
        importance=SUMMARY_IMPORTANCE,
        confidence=SUMMARY_CONFIDENCE,
        trust=derived_trust([turn.trust for turn in turns]),
        task="summary",
        prompt_version=made.prompt_version,
    )


def _unsaid(line: str, said: str) -> str | None:
    mine, theirs = signature(line), signature(said)
    if not set(mine.numbers) <= set(theirs.numbers):
        return "number"
    words = set(content_words(line))
    held = set(content_words(said)) | theirs.words
    return None if words and len(words & held) >= GROUNDED_SUMMARY * len(words) else "not_said"
