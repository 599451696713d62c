"""Rates of graph rows, computed from their counters when a row is read."""

from __future__ import annotations

from rayapp.graphs.records import Counters
from rayapp.memory.item import Outcome
from rayapp.memory.rules.success import SUCCESS_VALUE, wilson_lower_bound

# What a row says before anything was judged (data model, kg_routing).
NEUTRAL_RATE = 0.5
# A partial success counts half, in the action graph only (data model, kg_actions).
PARTIAL_SHARE = 0.5


def counters_of(outcome: Outcome) -> Counters:
    """One use with this outcome."""
    return Counters(
        uses=1,
        worked=int(outcome is Outcome.WORKED),
        partial=int(outcome is Outcome.PARTIAL),
        unknown=int(outcome is Outcome.UNKNOWN),
        failed=int(outcome is Outcome.FAILED),
    )


def added(a: Counters, b: Counters) -> Counters:
    """Both together."""
    return Counters(
        uses=a.uses + b.uses,
        worked=a.worked + b.worked,
        partial=a.partial + b.partial,
        unknown=a.unknown + b.unknown,
        failed=a.failed + b.failed,
    )


def negative(c: Counters) -> Counters:
    """What added to `c` gives nothing."""
    return Counters(
        uses=-c.uses, worked=-c.worked, partial=-c.partial, unknown=-c.unknown, failed=-c.failed
    )


def success_rate(c: Counters) -> float:
    """worked / (worked + failed), 0.5 when there is neither: the rate of the routing graph."""
    judged = c.worked + c.failed
    return c.worked / judged if judged else NEUTRAL_RATE


def action_success_rate(c: Counters) -> float:
    """Share of successes where a partial one counts half; `unknown` says nothing."""
    judged = c.worked + c.partial + c.failed
    return (c.worked + PARTIAL_SHARE * c.partial) / judged if judged else NEUTRAL_RATE


def wilson_of(c: Counters) -> float:
    """Wilson lower bound over the success values of all outcomes."""
    success = (
        SUCCESS_VALUE[Outcome.WORKED] * c.worked
        + SUCCESS_VALUE[Outcome.PARTIAL] * c.partial
        + SUCCESS_VALUE[Outcome.UNKNOWN] * c.unknown
        + SUCCESS_VALUE[Outcome.FAILED] * c.failed
    )
    return wilson_lower_bound(success, c.uses)
