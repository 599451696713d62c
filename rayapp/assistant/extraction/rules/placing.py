"""Where something learned goes, and with which numbers. A model decides none of it. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.assistant.extraction.records import Learned, Task, Turn
from rayapp.assistant.extraction.rules.exchange import LearnedExchange
from rayapp.assistant.extraction.rules.facts import grounding
from rayapp.memory.item import POINT_NAMESPACE, SOURCE_TRUST, SourceType
from rayapp.memory.tiers import Tier

LEARNED_TAG = "learned"
FACT_TAG = "fact"
SUMMARY_TAG = "conversation_summary"
# From this share of its words in the user's own message on, a line is the user's word and stays;
# below it, it is what the assistant said, and runs out unless outcomes prove it. Our choice.
OWN_WORDS = 0.75
# Below those of facts that a person keeps on purpose (importance .7 and more), so that capacity
# archives what was only overheard first.
FACT_IMPORTANCE = 0.6
FACT_CONFIDENCE = 0.7
ANSWER_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class Making:
    """What something is learned from, and the prompt that was asked."""

    exchange: LearnedExchange
    prompt_version: str

    def memory_id(self, task: Task, number: int = 0) -> str:
        """The same for the same exchange, so that storing it twice is storing it once."""
        basis = "\x00".join(("learned", task, str(number), *self.exchange.key))
        return str(uuid.uuid5(POINT_NAMESPACE, basis))


def derived_trust(parents: Sequence[float]) -> float:
    """A derived item is trusted as its least trusted parent; a model's wording is one of them."""
    return min((*parents, SOURCE_TRUST[SourceType.ASSISTANT]))


def placed_fact(text: str, turn: Turn, shown: Sequence[float] = (), *, made: Making) -> Learned:
    """A fact in the user's own words is kept for good; another one only as long as it helps.

    Args:
        shown: trust of the memories that the answer was given with: its parents as well.
    """
    own = grounding(text, turn.user) >= OWN_WORDS
    return Learned(
        memory_id=made.memory_id("fact"),
        text=text,
        tier=Tier.MEMORY_BANK if own else Tier.WORKING,
        tags=(LEARNED_TAG, FACT_TAG),
        importance=FACT_IMPORTANCE,
        confidence=FACT_CONFIDENCE if own else ANSWER_CONFIDENCE,
        trust=derived_trust([turn.trust, *(() if own else shown)]),
        task="fact",
        prompt_version=made.prompt_version,
    )
