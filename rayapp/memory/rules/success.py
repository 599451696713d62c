"""How often a memory helps: Wilson bounds of its outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rayapp.memory.item import NEUTRAL_SCORE, SCORE_DECIMALS, Outcome

# What one outcome adds to `success_count`. It always adds 1 to `uses`, a failure too: otherwise bad
# items would never look worse than new ones.
SUCCESS_VALUE: Mapping[Outcome, float] = {
    Outcome.WORKED: 1.0,
    Outcome.PARTIAL: 0.5,
    Outcome.UNKNOWN: 0.25,
    Outcome.FAILED: 0.0,
}


# Quantile of the normal distribution for 95 % confidence.
WILSON_Z = 1.96


def wilson_lower_bound(success: float, uses: int) -> float:
    """Lower bound of the success rate (Wilson 1927), 4 decimals; 0.5 when never used.

    `success` may be fractional; it counts as `uses` at most.
    """
    return NEUTRAL_SCORE if uses <= 0 else success_estimate(success, uses).low


@dataclass(frozen=True, slots=True)
class SuccessEstimate:
    """How often a memory helps: what is most likely, and between what it lies (95 %); each 0..1."""

    value: float
    low: float
    high: float


def success_estimate(success: float, uses: int) -> SuccessEstimate:
    """The Wilson interval and its centre, 4 decimals: what people are shown (decision 0049).

    The lower bound alone falls from 0.5 to 0.2 with the first success, because it also says how
    little is known. Here no success lowers any of the three numbers, and no failure raises one.
    """
    if uses <= 0:
        return UNJUDGED
    share = min(1.0, max(0.0, success / uses))
    square = WILSON_Z * WILSON_Z
    scale = 1 + square / uses
    centre = share + square / (2 * uses)
    spread = WILSON_Z * math.sqrt((share * (1 - share) + square / (4 * uses)) / uses)
    return SuccessEstimate(
        value=rounded(centre / scale),
        low=rounded(max(0.0, (centre - spread) / scale)),
        high=rounded(min(1.0, (centre + spread) / scale)),
    )


# Nothing is known: what the formula tends to.
UNJUDGED = SuccessEstimate(value=NEUTRAL_SCORE, low=0.0, high=1.0)


def rounded(value: float) -> float:
    """Every stored number has 4 decimals, so that stores and domain code agree exactly."""
    return round(value, SCORE_DECIMALS)
