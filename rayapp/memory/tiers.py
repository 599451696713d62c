"""The seven tiers and what each one is allowed to do. `TIER_POLICY` is the documentation."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Tier(StrEnum):
    WORKING = "working"
    HISTORY = "history"
    PATTERNS = "patterns"
    BOOKS = "books"
    MEMORY_BANK = "memory_bank"
    DATAGOV_SCHEMA = "datagov_schema"
    DATAGOV_EXPANSION = "datagov_expansion"


CORE_TIERS: tuple[Tier, ...] = (
    Tier.WORKING,
    Tier.HISTORY,
    Tier.PATTERNS,
    Tier.BOOKS,
    Tier.MEMORY_BANK,
)
DATAGOV_TIERS: tuple[Tier, ...] = (Tier.DATAGOV_SCHEMA, Tier.DATAGOV_EXPANSION)
# What "also DataGov" searches. Pages of the dictionary answer nobody's question: its terms widen
# the question instead, and they are hits only for who names their tier.
DATAGOV_ANSWERS: tuple[Tier, ...] = (Tier.DATAGOV_SCHEMA,)

# Tiers whose items feed the content graph, or are searched for near-duplicates, after a change.
FOLLOWED_TIERS: tuple[Tier, ...] = (Tier.MEMORY_BANK, Tier.BOOKS, Tier.PATTERNS)
# From this score on an item outlives its expiry: it has proved itself (decision 0015).
SURVIVES_EXPIRY_SCORE = 0.9
# Below it what was judged in working and history is garbage; what a person brings back has it.
GARBAGE_SCORE = 0.2


@dataclass(frozen=True, slots=True)
class TierPolicy:
    """What one tier may do.

    Attributes:
        ttl_hours: lifetime from entering the tier, None for no expiry.
        scored: outcomes move `score`.
        learned_weight: outcome evidence takes part in ranking.
        shared: readable by every user, writable by none.
    """

    ttl_hours: int | None
    scored: bool
    learned_weight: bool
    shared: bool = False


TIER_POLICY: dict[Tier, TierPolicy] = {
    Tier.WORKING: TierPolicy(ttl_hours=24, scored=True, learned_weight=True),
    Tier.HISTORY: TierPolicy(ttl_hours=30 * 24, scored=True, learned_weight=True),
    Tier.PATTERNS: TierPolicy(ttl_hours=None, scored=True, learned_weight=True),
    Tier.BOOKS: TierPolicy(ttl_hours=None, scored=False, learned_weight=False),
    Tier.MEMORY_BANK: TierPolicy(ttl_hours=None, scored=True, learned_weight=True),
    Tier.DATAGOV_SCHEMA: TierPolicy(
        ttl_hours=None, scored=False, learned_weight=False, shared=True
    ),
    Tier.DATAGOV_EXPANSION: TierPolicy(
        ttl_hours=None, scored=False, learned_weight=False, shared=True
    ),
}


def expiry_in(tier: Tier, now: datetime) -> datetime | None:
    """When an item ends that enters the tier now."""
    hours = TIER_POLICY[tier].ttl_hours
    return None if hours is None else now + timedelta(hours=hours)


# The first client calls the books tier "documents"; both names are accepted everywhere.
TIER_ALIASES: dict[str, Tier] = {"documents": Tier.BOOKS}


def tier_name(tier: str, documents: bool) -> str:
    """What a caller is told: a tier's own name, or the first client's for the books tier."""
    return "documents" if documents and tier == Tier.BOOKS else str(tier)


def parse_tier(name: str) -> Tier | None:
    """Return the tier called `name` (aliases included), or None when there is none."""
    alias = TIER_ALIASES.get(name)
    if alias is not None:
        return alias
    try:
        return Tier(name)
    except ValueError:
        return None
