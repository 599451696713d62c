"""When two facts say the same, and which of the two stays. Pure.

A merge loses nothing in the store, but it hides one of two facts, so every rule here errs towards
keeping both. The vectors only say that two texts are about the same thing; that they say the same
of it is checked on their words.
"""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.tiers import Tier
from rayapp.text.hebrew import unify_finals
from rayapp.text.lemmas import lemma
from rayapp.text.normalize import normalize
from rayapp.text.signature import difference
from rayapp.text.stopwords import STOP_WORDS
from rayapp.text.tokens import tokens

# Where a fact is kept for good; elsewhere a repetition runs out by itself.
DEDUP_TIERS = frozenset({Tier.MEMORY_BANK, Tier.PATTERNS})


@dataclass(frozen=True, slots=True)
class DedupParams:
    """`similarity`: least cosine of two texts that say the same; 0 = nothing is merged."""

    similarity: float


@dataclass(frozen=True, slots=True)
class DedupDecision:
    """`reason` is one word: `same`, or the first thing that tells the two apart."""

    merge: bool
    reason: str


def twin(item: MemoryItem, other: MemoryItem, cosine: float, params: DedupParams) -> DedupDecision:
    """Whether the two become one memory. The order of the two does not matter."""
    reason = _apart(item, other) or _distance(cosine, params) or _unlike(item, other)
    return DedupDecision(merge=reason is None, reason=reason or "same")


def winner(a: MemoryItem, b: MemoryItem) -> MemoryItem:
    """The one that stays: higher quality, then Wilson, then the newer, then the greater id."""
    return max(a, b, key=_standing)


def paired(a: MemoryItem, b: MemoryItem) -> tuple[MemoryItem, MemoryItem]:
    """(winner, loser)."""
    kept = winner(a, b)
    return kept, b if kept is a else a


def content_words(text: str) -> tuple[str, ...]:
    """Lemmas in the order they stand, stop words left out."""
    words = (token.text for token in tokens(normalize(text)))
    return tuple(unify_finals(lemma(word)) for word in words if word not in STOP_WORDS)


def _standing(item: MemoryItem) -> tuple[object, ...]:
    return (
        item.quality.quality_score,
        item.stats.wilson_score,
        item.stored_at,
        item.memory_id,
    )


def _apart(item: MemoryItem, other: MemoryItem) -> str | None:
    """What keeps the two apart whatever they say."""
    checks = (
        ("id", item.point_id != other.point_id),
        ("user", item.user_id == other.user_id),
        ("tier", item.tier is other.tier and item.tier in DEDUP_TIERS),
        ("status", item.status is Status.ACTIVE and other.status is Status.ACTIVE),
        ("subject", _about(item) == _about(other)),
        ("validity", _validity(item) == _validity(other)),
    )
    return next((name for name, holds in checks if not holds), None)


def _about(item: MemoryItem) -> tuple[str | None, ...]:
    return item.org_id, item.subject_id, item.perspective_owner_id


def _validity(item: MemoryItem) -> tuple[object, ...]:
    return item.valid_from, item.valid_to, item.supersedes, item.superseded_by


def _distance(cosine: float, params: DedupParams) -> str | None:
    if params.similarity <= 0.0:
        return "off"
    # Written so that a cosine that is not a number never merges.
    return None if cosine >= params.similarity else "distance"


def _unlike(item: MemoryItem, other: MemoryItem) -> str | None:
    """The cohesion check: what one of the two says and the other does not.

    Beyond `difference`, the content words must be the same ones ("peanuts" is near "walnuts", and
    one "almost" changes a fact) in the same order ("Dana owes Noa" is not "Noa owes Dana").
    """
    if not _labels_agree(item.entities, other.entities):
        return "entities"
    told_apart = difference(item.text, other.text)
    if told_apart is not None:
        return told_apart
    words, others = content_words(item.text), content_words(other.text)
    if words == others:
        return None
    return "order" if sorted(words) == sorted(others) else "words"


def _labels_agree(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Nobody names an entity, or one of the lists holds the other."""
    one, other = ({normalize(label).casefold() for label in labels} for labels in (a, b))
    return not one or not other or one <= other or other <= one
