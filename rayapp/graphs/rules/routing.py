"""What the routing graph advises, and the rates of rows."""

from collections.abc import Sequence
from dataclasses import fields

from rayapp.graphs.records import Counters, RoutingRow, TierAdvice
from rayapp.memory.item import Outcome
from rayapp.memory.rules.lifecycle import SUCCESS_VALUE, wilson_lower_bound
from rayapp.memory.tiers import Tier

# What a row says before anything was judged.
NEUTRAL_RATE = 0.5
# A partial success counts half, in the action graph only.
PARTIAL_SHARE = 0.5
_COUNTED = tuple(one.name for one in fields(Counters))


def counters_of(outcome: Outcome) -> Counters:
    """One use with this outcome."""
    return Counters(uses=1, **{outcome.value: 1})


def added(a: Counters, b: Counters) -> Counters:
    """Both together."""
    return Counters(**{name: getattr(a, name) + getattr(b, name) for name in _COUNTED})


def negative(c: Counters) -> Counters:
    """What added to `c` gives nothing."""
    return Counters(**{name: -getattr(c, name) for name in _COUNTED})


def success_rate(c: Counters) -> float:
    """worked / (worked + failed), 0.5 when there is neither: the rate of the routing graph."""
    judged = c.worked + c.failed
    return c.worked / judged if judged else NEUTRAL_RATE


def judged_uses(c: Counters) -> int:
    """Uses of an action that were judged; `unknown` says nothing."""
    return c.worked + c.partial + c.failed


def action_success_rate(c: Counters) -> float:
    """Share of successes among the judged uses; a partial one counts half."""
    judged = judged_uses(c)
    return (c.worked + PARTIAL_SHARE * c.partial) / judged if judged else NEUTRAL_RATE


def wilson_of(c: Counters) -> float:
    """Wilson lower bound over the success values of all outcomes."""
    success = sum(value * getattr(c, outcome.value) for outcome, value in SUCCESS_VALUE.items())
    return wilson_lower_bound(success, c.uses)


# Outcomes before a tier is called good or poor: as many as for every other learned effect
# (effectiveness at >= 3 uses, retrieval design).
MIN_USES = 3
# Wilson bound below which a tier is called poor: 1 of 3 is 0.06, 2 of 4 is 0.15, 5 of 10 is 0.24.
POOR_WILSON = 0.2
# Wilson bound from which a tier is recommended: 3 of 3 is 0.44, 6 of 8 is 0.41. Our choice.
RECOMMENDED_WILSON = 0.4
# How much deeper a tier that never failed is searched, times the normal depth. Our choice: twice
# the candidates cost less than a millisecond.
MAX_DEPTH_FACTOR = 2.0
NORMAL_DEPTH = 1.0

_TIER_ORDER = {tier: place for place, tier in enumerate(Tier)}


def tier_advice(rows: Sequence[RoutingRow]) -> tuple[TierAdvice, ...]:
    """The tiers that were used for these concepts, best first; empty when nothing was learned.

    A tier with few outcomes is advised: too little is known to call it poor.
    """
    found = [_advice(tier, counters) for tier, counters in _best_known(rows).items()]
    return tuple(sorted(found, key=lambda one: (-one.wilson, -one.uses, _TIER_ORDER[one.tier])))


def depth_factors(rows: Sequence[RoutingRow], tiers: Sequence[Tier]) -> dict[Tier, float]:
    """How deep to search each of `tiers`; 1.0 is the normal depth and the least."""
    factors = dict.fromkeys(tiers, NORMAL_DEPTH)
    for advice in tier_advice(rows):
        recommended = advice.uses >= MIN_USES and advice.wilson >= RECOMMENDED_WILSON
        if recommended and advice.tier in factors:
            factors[advice.tier] = NORMAL_DEPTH + (MAX_DEPTH_FACTOR - NORMAL_DEPTH) * advice.wilson
    return factors


def _best_known(rows: Sequence[RoutingRow]) -> dict[Tier, Counters]:
    """Of each used tier the counters of the concept with the most uses there. One outcome counts
    for every concept of its question, so a sum over concepts would count it several times. Of two
    that are used alike the worse one speaks: nothing is praised by chance."""
    known: dict[Tier, Counters] = {}
    for row in rows:
        for tier, counters in row.tiers.items():
            if counters.uses and (tier not in known or _weight(counters) > _weight(known[tier])):
                known[tier] = counters
    return known


def _weight(counters: Counters) -> tuple[int, float]:
    return counters.uses, -wilson_of(counters)


def _advice(tier: Tier, counters: Counters) -> TierAdvice:
    wilson = wilson_of(counters)
    advised = counters.uses < MIN_USES or wilson >= POOR_WILSON
    return TierAdvice(
        tier=tier,
        wilson=wilson,
        uses=counters.uses,
        advised=advised,
        success_rate=success_rate(counters),
    )
