"""How texts are cut into model calls."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.batching import (
    GIB,
    after_out_of_memory,
    estimate_tokens,
    padded_tokens,
    parts_by_length,
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


LENGTHS = st.lists(st.integers(1, 600), max_size=80)


def cost(lengths: list[int], parts: list[list[int]], pass_tokens: int) -> int:
    return sum(padded_tokens([lengths[p] for p in part]) + pass_tokens for part in parts)


@given(LENGTHS, st.integers(0, 2_000))
def test_passes_hold_every_text_once_and_never_cost_more_than_one(
    lengths: list[int], pass_tokens: int
) -> None:
    parts = parts_by_length(lengths, pass_tokens)
    assert sorted(position for part in parts for position in part) == list(range(len(lengths)))
    if lengths:
        whole = [list(range(len(lengths)))]
        assert cost(lengths, parts, pass_tokens) <= cost(lengths, whole, pass_tokens)
        assert all(lengths[part[-1]] == max(lengths[p] for p in part) for part in parts)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=7), st.integers(0, 100))
def test_passes_of_a_small_batch_are_the_cheapest(lengths: list[int], pass_tokens: int) -> None:
    order = sorted(range(len(lengths)), key=lambda position: lengths[position])
    places = range(1, len(order))
    cheapest = min(
        cost(
            lengths,
            [order[a:b] for a, b in itertools.pairwise([0, *cuts, len(order)])],
            pass_tokens,
        )
        for count in range(len(order))
        for cuts in itertools.combinations(places, count)
    )
    assert cost(lengths, parts_by_length(lengths, pass_tokens), pass_tokens) == cheapest


def test_one_long_text_does_not_pad_the_short_ones() -> None:
    assert parts_by_length([10, 500, 12, 11], 64) == [[0, 3, 2], [1]]
    assert parts_by_length([10, 500, 12, 11], 10_000) == [[0, 3, 2, 1]]
