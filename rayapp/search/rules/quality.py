"""memory_bank quality in ranking, and the cap over all multipliers (decision 0002)."""

from __future__ import annotations

from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier
from rayapp.search.rules.boosts import nearer
from rayapp.search.rules.recipes import Recipe


def distance_boost(relevance: float, item: MemoryItem, recipe: Recipe) -> float:
    """How many times nearer quality brings a memory_bank item: >= 1, 1 for other tiers.

    The rule is `distance * max(floor, 1 - 0.8 * quality)`. It is returned as a multiplier so that
    it falls under the same cap as every other boost: read alone it would lift an item that has
    nothing to do with the question to 0.8. It takes what `quality_boost` leaves of the quality
    cap.
    """
    if item.tier is not Tier.MEMORY_BANK:
        return 1.0
    factor = max(recipe.quality_floor, 1.0 - recipe.quality_distance * item.quality.quality_score)
    return min(nearer(relevance, factor), recipe.quality_cap / quality_boost(item, recipe))


def quality_boost(item: MemoryItem, recipe: Recipe) -> float:
    """Multiplier 1 + quality for memory_bank up to the quality cap, 1 for other tiers."""
    if item.tier is not Tier.MEMORY_BANK:
        return 1.0
    return min(recipe.quality_cap, 1.0 + item.quality.quality_score)


def total_boost(cap: float, *factors: float) -> float:
    """The product of all multipliers, never above `cap`."""
    product = 1.0
    for factor in factors:
        product *= factor
    return min(cap, product)
