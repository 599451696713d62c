"""Which tiers a search looks into: named ones, the core tiers, and open data when it is meant."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import CORE_TIERS, DATAGOV_ANSWERS, DATAGOV_TIERS, Tier
from rayapp.search.requests import DatagovUse, SearchQuery
from rayapp.search.rules.datagov_intent import datagov_intent


@dataclass(frozen=True, slots=True)
class TierChoice:
    tiers: tuple[Tier, ...]
    datagov: DatagovUse


def choose_tiers(query: SearchQuery, plain: str, *, shared: bool, intent: bool) -> TierChoice:
    """Named tiers stay as they are named; `include_datagov` decides over filters and words.

    Args:
        plain: the question, normalised.
        shared: the caller may read the shared tenant.
        intent: the words of the question may ask for open data.
    """
    named = query.tiers if query.tiers is not None else query.where.tiers
    tiers = tuple(dict.fromkeys(CORE_TIERS if named is None else named))
    use = DatagovUse()
    if query.include_datagov or any(tier in DATAGOV_TIERS for tier in tiers):
        use = DatagovUse(searched=True, reason="asked")
    elif named is None and query.include_datagov is None and shared:
        use = _unasked(query.where, plain, intent=intent)
    if use.searched and (query.include_datagov or named is None):
        tiers = tuple(dict.fromkeys((*tiers, *DATAGOV_ANSWERS)))
    return TierChoice(tiers, use)


def _unasked(where: ItemFilter, plain: str, *, intent: bool) -> DatagovUse:
    """Conditions that only catalogue items meet ask for them; else the question may."""
    conditions = (where.categories, where.formats, where.organizations, where.flags)
    if any(values is not None for values in conditions):
        return DatagovUse(searched=True, reason="filter")
    found = datagov_intent(plain) if intent else None
    if found is None or not found.wanted:
        return DatagovUse()
    return DatagovUse(searched=True, guessed=True, reason=found.reason, categories=found.categories)
