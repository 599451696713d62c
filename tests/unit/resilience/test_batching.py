"""How texts are cut into model calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.resilience.batching import (
    GIB,
    after_out_of_memory,
    estimate_tokens,
    padded_tokens,
    plan_batches,
    token_budget,
)

COUNTS = st.lists(st.integers(0, 2_000), max_size=200)


@given(COUNTS, st.integers(1, 64), st.integers(1, 5_000))
def test_every_text_once_and_every_batch_in_bounds(
    counts: list[int], max_size: int, max_tokens: int
) -> None:
    plan = plan_batches(counts, max_size, max_tokens)
    assert sorted(position for batch in plan for position in batch) == list(range(len(counts)))
    for batch in plan:
        assert 1 <= len(batch) <= max_size
        cost = padded_tokens([counts[position] for position in batch])
        assert cost <= max_tokens or len(batch) == 1


@given(COUNTS, st.integers(1, 64))
def test_neighbours_in_length_share_a_batch(counts: list[int], max_size: int) -> None:
    plan = plan_batches(counts, max_size, 10**9)
    flat = [counts[position] for batch in plan for position in batch]
    assert flat == sorted(counts)
    assert len(plan) == -(-len(counts) // max_size)


@pytest.mark.parametrize(
    ("counts", "max_size", "max_tokens", "plan"),
    [
        ([], 4, 100, []),
        ([10, 10, 10], 4, 100, [[0, 1, 2]]),
        ([10, 10, 10], 2, 100, [[0, 1], [2]]),
        ([90, 10, 10], 4, 100, [[1, 2], [0]]),
        ([500], 4, 100, [[0]]),
        ([50, 500, 50], 4, 100, [[0, 2], [1]]),
    ],
)
def test_plans(counts: list[int], max_size: int, max_tokens: int, plan: list[list[int]]) -> None:
    assert plan_batches(counts, max_size, max_tokens) == plan


@pytest.mark.parametrize(
    ("free", "budget"), [(None, 16_384), (0, 1), (GIB, 6_553), (10 * GIB, 65_536)]
)
def test_budget_follows_free_gpu_memory(free: int | None, budget: int) -> None:
    assert token_budget(free, cpu_tokens=16_384, tokens_per_free_gib=8_192) == budget


@given(st.integers(1, 10**6))
def test_out_of_memory_halves_down_to_one(size: int) -> None:
    cap = after_out_of_memory(size)
    assert cap == max(1, size // 2)


@pytest.mark.parametrize(("chars", "tokens"), [(0, 2), (25, 12), (1_000, 402)])
def test_tokens_from_characters(chars: int, tokens: int) -> None:
    assert estimate_tokens(["א" * chars]) == [tokens]


def test_a_model_that_cuts_texts_bounds_the_estimate() -> None:
    assert estimate_tokens(["a" * 10_000, "a" * 25], text_tokens=512) == [512, 12]
