"""Organic recall: what the graphs and the conversation say about a question, in short lines. Pure.

A line states what happened and what is known. What memories and people wrote is quoted by
`directives.quoted`, so that it stays inside its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rayapp.assistant.context.rules.prompt_block import Placed
from rayapp.graphs.requests import ContextInsights, PastExperience
from rayapp.graphs.rules.directives import Side, advised_tiers, directives_of, side_of
from rayapp.graphs.rules.question import fingerprint
from rayapp.inference.ports import Message
from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier
from rayapp.text.expansions import Expansions

# Lines of one block, and past successes among them: a reminder, not a second context.
MAX_LINES = 8
MAX_SUCCESSES = 3
# Earlier questions of the conversation that are compared with this one.
MAX_EARLIER = 10
# Facts named as known already, and the share of the question's words that they must hold: all but
# one of five (our choice; a fact that misses more answers something else).
MAX_KNOWN = 2
KNOWN_COVERAGE = 0.8
KNOWN_TIERS = frozenset({Tier.MEMORY_BANK, Tier.PATTERNS})

_SUCCESS: dict[Side, str] = {
    "he": "זיכרון {id} עזר בעבר: {reason}{rate}.",
    "en": "Memory {id} helped before: {reason}{rate}.",
}
_RATE: dict[Side, str] = {"he": " ({rate:.0%} הצלחה)", "en": " ({rate:.0%} success)"}
_KNOWN: dict[Side, str] = {
    "he": "זה כבר ידוע: זיכרון {ids}.",
    "en": "You already know this: memory {ids}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """`lines` to tell, and the memories of past successes, to be shown whole."""

    lines: tuple[str, ...] = ()
    past: tuple[Placed, ...] = ()


def organic_recall(
    insights: ContextInsights | None,
    *,
    known: Sequence[MemoryItem] = (),
    repeated: str | None = None,
    language: str = "other",
    documents: bool = False,
) -> Recalled:
    """The most important lines first.

    Args:
        known: facts that hold what the question asks for.
        repeated: an earlier question of the conversation that asked the same, if the messages
            show one; the graphs may know of another.
        documents: what the reader calls the books tier (`tier_name`).
    """
    side = side_of(insights.language if insights else language)
    lines = [_KNOWN[side].format(ids=", ".join(one.memory_id for one in known))] if known else []
    if insights is None:
        lines += directives_of(
            side,
            solution=None,
            failures=(),
            tiers=None,
            actions=(),
            repeated=repeated,
            continuity=(),
        )
        return Recalled(lines=tuple(lines))
    successes = insights.patterns[:MAX_SUCCESSES]
    lines += [_success(side, one) for one in successes]
    solved = insights.known_solution is not None
    lines += directives_of(
        side,
        solution=None,
        failures=insights.failures,
        tiers=advised_tiers(side, insights.tiers, documents),
        actions=insights.actions,
        # What was solved is asked again because it works.
        repeated=insights.repeated or (None if solved else repeated),
        continuity=insights.continuity,
    )
    past = tuple(Placed("past", one.item) for one in successes)
    return Recalled(lines=tuple(lines[:MAX_LINES]), past=past)


def repeated_question(
    query: str, recent: Sequence[Message], expansions: Expansions | None
) -> str | None:
    """The newest message of the user that asked the same."""
    asked = fingerprint(query, expansions)
    said = [one.content for one in recent if one.role == "user"][-MAX_EARLIER:][::-1]
    return next((one for one in said if fingerprint(one, expansions).same(asked)), None)


def already_known(
    items: Sequence[MemoryItem], coverage: Callable[[str], float]
) -> tuple[MemoryItem, ...]:
    """Facts and patterns that hold the words of the question; `coverage` is their share, 0..1."""
    facts = [one for one in items if one.tier in KNOWN_TIERS]
    return tuple(one for one in facts if coverage(one.text) >= KNOWN_COVERAGE)[:MAX_KNOWN]


def _success(side: Side, one: PastExperience) -> str:
    stats = one.item.stats
    rate = _RATE[side].format(rate=stats.success_rate) if stats.uses else ""
    return _SUCCESS[side].format(id=one.item.memory_id, reason=one.reason, rate=rate)
