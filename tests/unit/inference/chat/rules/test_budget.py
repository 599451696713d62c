"""What model calls may cost."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.inference.chat.rules.answers import (
    Budget,
    Prices,
    Spent,
    cost_of,
    day_start,
    refused_by,
)
from rayapp.inference.ports import prompt_language
from rayapp.inference.rules import estimate_tokens

COUNTS = st.integers(0, 1_000)
SPENT = st.builds(Spent, calls=COUNTS, tokens=COUNTS, cost=COUNTS.map(float))
BUDGETS = st.builds(Budget, calls=COUNTS, tokens=COUNTS, cost=COUNTS.map(float))


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(), None),
        (Budget(calls=3), None),
        (Budget(calls=2), "calls"),
        (Budget(tokens=19), "tokens"),
        (Budget(tokens=20), None),
        (Budget(cost=0.2), "cost"),
    ],
)
def test_the_first_limit_that_breaks_is_named(budget: Budget, limit: str | None) -> None:
    spent, planned = Spent(calls=2, tokens=10, cost=0.1), Spent(calls=1, tokens=10, cost=0.2)
    assert refused_by(budget, spent, planned) == limit


@given(BUDGETS, SPENT, SPENT, SPENT)
def test_who_spent_more_is_never_allowed_more(
    budget: Budget, spent: Spent, more: Spent, planned: Spent
) -> None:
    if refused_by(budget, spent, planned) is not None:
        assert refused_by(budget, spent.plus(more), planned) is not None


@given(BUDGETS, st.lists(SPENT, max_size=20))
def test_what_is_allowed_never_exceeds_a_limit(budget: Budget, wishes: list[Spent]) -> None:
    spent = Spent()
    for wish in wishes:
        if refused_by(budget, spent, wish) is None:
            spent = spent.plus(wish)
    assert not budget.calls or spent.calls <= budget.calls
    assert not budget.tokens or spent.tokens <= budget.tokens
    assert not budget.cost or spent.cost <= budget.cost


@given(SPENT, SPENT)
def test_what_is_given_back_is_gone(one: Spent, other: Spent) -> None:
    assert one.plus(other).minus(other) == one


def test_prices_are_per_million() -> None:
    assert cost_of(1_000_000, 500_000, Prices(prompt=2.0, completion=6.0)) == 5.0


def test_a_day_begins_at_midnight_utc_whatever_the_zone() -> None:
    jerusalem = timezone(timedelta(hours=2))
    at = datetime(2026, 3, 1, 1, 30, tzinfo=jerusalem)
    assert day_start(at) == datetime(2026, 2, 28, tzinfo=UTC)


def test_hebrew_has_more_tokens_than_english() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd" * 10) == 10
    assert estimate_tokens("אבגד" * 6) == 10


@pytest.mark.parametrize(
    ("text", "language"),
    [("דנה גרה בחיפה", "he"), ("Dana lives in Haifa", "en"), ("דנה works at גוגל", "he"),
     ("Дана", "en"), ("42", "en")],
)  # fmt: skip
def test_the_text_chooses_the_language_of_the_prompt(text: str, language: str) -> None:
    assert prompt_language(text) == language
