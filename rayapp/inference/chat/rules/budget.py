"""What the model calls of one user may cost in a day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

# Prices are quoted per million tokens everywhere.
PRICE_UNIT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits per user and UTC day; 0 = no limit."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was used already, calls on their way included."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )

    def minus(self, other: Spent) -> Spent:
        """Without `other`, never below nothing."""
        return Spent(
            calls=max(0, self.calls - other.calls),
            tokens=max(0, self.tokens - other.tokens),
            cost=max(0.0, self.cost - other.cost),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Per million tokens, in the currency of the settings."""

    prompt: float = 0.0
    completion: float = 0.0


def cost_of(prompt_tokens: int, completion_tokens: int, prices: Prices) -> float:
    """Cost of one call."""
    total = prompt_tokens * prices.prompt + completion_tokens * prices.completion
    return total / PRICE_UNIT


def refused_by(budget: Budget, spent: Spent, planned: Spent) -> str | None:
    """The limit that `planned` would break after `spent`, None when it fits."""
    after = spent.plus(planned)
    if budget.calls and after.calls > budget.calls:
        return "calls"
    if budget.tokens and after.tokens > budget.tokens:
        return "tokens"
    if budget.cost and after.cost > budget.cost:
        return "cost"
    return None


def day_start(now: datetime) -> datetime:
    """Midnight UTC of that day: when budgets begin anew."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
