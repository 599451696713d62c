"""How much outcome evidence counts: the maturity table, inside a relevance band (decision 0016)."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.memory.item import NEUTRAL_SCORE, MemoryItem
from rayapp.memory.tiers import TIER_POLICY, Tier
from rayapp.search.rules.recipes import Recipe

# The memory bank is not scored by outcomes: from this many uses on they are this share of what is
# learned of a fact, in the Wilson blend that is shown and in what moves it (decision 0016).
BANK_WILSON_SHARE = 0.2
BANK_WILSON_USES = 3
BANK_HIGH_QUALITY = 0.8
# Tiers whose items outcomes can sink.
HARMING_TIERS = frozenset({Tier.WORKING, Tier.HISTORY, Tier.PATTERNS})


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the relevance and of the learned score; they sum to 1."""

    embedding: float
    learned: float


@dataclass(frozen=True, slots=True)
class Maturity:
    """A row of the table: applies from `uses` and `score` on."""

    name: str
    uses: int
    score: float
    weights: Weights


NEW = Weights(0.70, 0.30)
MATURITY: tuple[Maturity, ...] = (
    Maturity("proven", 5, 0.8, Weights(0.20, 0.80)),
    Maturity("established", 3, 0.7, Weights(0.25, 0.75)),
    Maturity("emerging", 2, 0.5, Weights(0.35, 0.65)),
    Maturity("doubtful", 2, 0.0, Weights(0.70, 0.30)),
    Maturity("new", 0, 0.0, NEW),
)


def learned_score(item: MemoryItem) -> float:
    """What experience says of the item, 0..1."""
    if item.tier is not Tier.MEMORY_BANK:
        return item.stats.score
    quality = item.quality.quality_score
    if item.stats.uses < BANK_WILSON_USES:
        return quality
    return (1 - BANK_WILSON_SHARE) * quality + BANK_WILSON_SHARE * item.stats.wilson_score


def weights_of(item: MemoryItem) -> Weights:
    """The row that applies to this item."""
    if not TIER_POLICY[item.tier].learned_weight:
        return Weights(1.0, 0.0)
    if item.tier is Tier.MEMORY_BANK:
        high = item.quality.quality_score >= BANK_HIGH_QUALITY
        return Weights(0.45, 0.55) if high else Weights(0.60, 0.40)
    for row in MATURITY:
        if item.stats.uses >= row.uses and item.stats.score >= row.score:
            return row.weights
    return NEW


def evidence_factor(item: MemoryItem, recipe: Recipe) -> float:
    """What outcomes multiply the relevance by; exactly 1 while nobody has judged the item.

    Two rules. Inside the band, the learned score moves the item by its distance from neutral,
    weighed by maturity. Beyond it, an item that keeps failing is held to do harm and falls to a
    share of its relevance. Nothing lifts an item beyond the band, so that what helped elsewhere
    cannot pass what answers this question. A fact of the memory bank moves by its small share of
    the band and never does harm: it was kept on purpose, and an answer that failed does not make
    it untrue.
    """
    if not recipe.maturity or not is_judged(item):
        return 1.0
    weight = weights_of(item).learned
    if item.tier is Tier.MEMORY_BANK:
        weight *= BANK_WILSON_SHARE
    shift = weight * (item.stats.score - NEUTRAL_SCORE)
    shift = min(recipe.outcome_band, max(-recipe.outcome_band, shift))
    return (1.0 + shift) * (1.0 - (1.0 - recipe.harm_floor) * harm(item, recipe))


def is_judged(item: MemoryItem) -> bool:
    """A score given at birth counts as a judgement; items of tiers without learning never do, and
    facts of the memory bank from `BANK_WILSON_USES` outcomes on."""
    if not TIER_POLICY[item.tier].learned_weight:
        return False
    if item.tier is Tier.MEMORY_BANK:
        return item.stats.uses >= BANK_WILSON_USES
    return item.stats.uses > 0 or item.stats.score != NEUTRAL_SCORE


def harm(item: MemoryItem, recipe: Recipe) -> float:
    """How surely the item does harm, 0..1: how low its score is, and on how many outcomes."""
    if item.tier not in HARMING_TIERS:
        return 0.0
    low = max(0.0, (recipe.harm_score - item.stats.score) / recipe.harm_score)
    return low * min(1.0, item.stats.uses / recipe.harm_uses)
