"""Running model calls that may not fit: split on out-of-memory and on a rejected request."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rayapp.core.batching import (
    OUT_OF_MEMORY,
    after_out_of_memory,
    padded_tokens,
    plan_batches,
)
from rayapp.core.errors import DependencyDown, InvalidInput, RayappError
from rayapp.core.ports import Metrics

E = TypeVar("E")
R = TypeVar("R")


@dataclass(slots=True)
class BatchCap:
    """Largest call; `max_tokens` shrinks for good when a call runs out of memory."""

    max_size: int
    max_tokens: int

    def plan(self, token_counts: Sequence[int]) -> list[list[int]]:
        return plan_batches(token_counts, self.max_size, self.max_tokens)

    def shrink(self, failed_tokens: int) -> None:
        self.max_tokens = min(self.max_tokens, after_out_of_memory(failed_tokens))


@dataclass(frozen=True)
class Splitter(Generic[E, R]):
    """Calls a model with one batch and halves the batch where only a part of it is to blame.

    Attributes:
        call: one model call, results in order.
        tokens: tokens of one entry.
        cap: learns from calls that did not fit.
        metrics: counts `oom_metric`.
        oom_metric: registered metric name.
    """

    call: Callable[[Sequence[E]], Awaitable[Sequence[R]]]
    tokens: Callable[[E], int]
    cap: BatchCap
    metrics: Metrics
    oom_metric: str

    async def run(self, batch: Sequence[E]) -> list[R | RayappError]:
        """A result or an error per entry, in order; errors of rayapp never leave as raises."""
        results: dict[int, R | RayappError] = {}
        work = deque([list(range(len(batch)))])
        while work:
            positions = work.popleft()
            parts = self._parts(batch, positions)
            if len(parts) == 1:
                answers = await self._attempt([batch[position] for position in positions])
                if answers is not None:
                    results |= zip(positions, answers, strict=True)
                    continue
                middle = len(positions) // 2
                parts = [positions[:middle], positions[middle:]]
            work.extendleft(reversed(parts))
        return [results[position] for position in range(len(batch))]

    def _parts(self, batch: Sequence[E], positions: list[int]) -> list[list[int]]:
        """More than one when the cap shrank since the batch was planned."""
        plan = self.cap.plan([self.tokens(batch[position]) for position in positions])
        if len(plan) == 1:
            return [positions]
        return [[positions[place] for place in part] for part in plan]

    async def _attempt(self, entries: list[E]) -> Sequence[R | RayappError] | None:
        """One call; None when a smaller one may do better."""
        try:
            return await self.call(entries)
        except InvalidInput as error:
            return [error] if len(entries) == 1 else None
        except DependencyDown as error:
            if error.code != OUT_OF_MEMORY:
                return [error] * len(entries)
            self.metrics.count(self.oom_metric)
            self.cap.shrink(padded_tokens([self.tokens(entry) for entry in entries]))
            return [error] if len(entries) == 1 else None
        except RayappError as error:
            return [error] * len(entries)
