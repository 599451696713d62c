"""One batch as forward passes over texts of about the same length, and their answers in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from rayapp.core.vectors import Vector

F = TypeVar("F")

# What a forward pass costs of its own, in tokens at full speed. On a CPU the weights are read once
# a pass: 32 to 40 (measured, 6 layers of 384 on one core). On a GPU the launches of 24 layers, 2 to
# 3 ms at 400 tokens per ms (an estimate; `python -m tests.bench.encoder` measures it).
PASS_TOKENS = {"cpu": 32, "cuda": 1_024}


@dataclass(frozen=True, slots=True)
class Pass(Generic[F]):
    """`rows` of the batch, and what the model reads of them."""

    rows: Sequence[int]
    feed: F


def in_order(passes: Sequence[Pass[F]], joined: Vector) -> Vector:
    """`joined` has the rows of one pass after another; the result has those of the batch."""
    placed = np.empty_like(joined)
    placed[[row for one in passes for row in one.rows]] = joined
    return placed
