"""Two runs question by question: paired differences with intervals, and what got worse."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jobs.suites.rows import Key, Row, by_key
from rayapp.search.rules.evaluation import Estimate, estimate

# Share of a measure that a run may lose before the gate closes. BM25 weighs a word by everything
# that the index holds, also of other users: measured, HeQ's R@1 moves by .018 when LoCoMo lies
# beside it. Half as much again for what else a test session stores.
TOLERANCE = 0.03
# Questions that may always turn: in a small set one of them is more than the tolerance.
SLACK_QUESTIONS = 2
# Most of a rate that may be lost: else a rate as small as the tolerance is held to nothing. From
# .12 on a quarter is more than the tolerance, which then decides (our choice).
SMALL_RATE_SHARE = 0.25
# Share of features without worth that may look as if they had some: one side of the 95 % of the
# intervals in the same tables.
CHANCE = 0.025
# Draws for each draw that chance may win: the share of wins is known to a fifth of itself.
DRAWS_PER_WIN = 20
LEAST_DRAWS = 10_000  # draws: twenty wins alone are coarse where chance may win often
DRAW_CELLS = 4_000_000  # signs drawn at once: 32 MB of them
DRAW_SEED = 20240229  # fixed, so that the same ranks give the same verdict
NAMED = 20  # questions that got worse and are named; the report counts all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure of one part over the questions of both runs. `change` is after - before.

    Attributes:
        changes: the change of each question.
    """

    part: str
    metric: str
    before: float
    after: float
    change: Estimate
    changes: tuple[float, ...]

    @property
    def sign(self) -> str:
        """`lower` or `higher` when the interval leaves zero out, else `same`."""
        if self.change.high < 0.0:
            return "lower"
        return "higher" if self.change.low > 0.0 else "same"

    def lost(self, tolerance: float) -> bool:
        """Whether more is lost than the tolerance, or than the questions that may turn.

        Of a small rate less may be lost than the tolerance.
        """
        share = min(tolerance, SMALL_RATE_SHARE * self.before)
        allowed = max(share, SLACK_QUESTIONS / self.change.n)
        return self.change.mean < -allowed - 1e-9

    def surely_lower(self, looked_at: int) -> bool:
        """Whether the loss is more than chance gives, when as many measures are looked at.

        Bonferroni (Dunn 1961): each of the measures gets its share of the chance.
        """
        return self.sign == "lower" and beyond_chance(self.changes, CHANCE / looked_at)

    def as_json(self) -> dict[str, Any]:
        return {
            "part": self.part,
            "metric": self.metric,
            "before": round(self.before, 4),
            "after": round(self.after, 4),
            "change": round(self.change.mean, 4),
            "low": round(self.change.low, 4),
            "high": round(self.change.high, 4),
            "n": self.change.n,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Worse:
    """A question that lost in a measure that is shown; `before` and `after` as ranks or values."""

    part: str
    question_id: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.part} {self.question_id}: {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`missing`: questions of the first run that the second did not ask."""

    differences: tuple[Difference, ...]
    worse: tuple[Worse, ...]
    better: int
    missing: int


def compare(before: Iterable[Row], after: Iterable[Row]) -> Comparison:
    """The questions that both runs asked; the others are counted."""
    first, second = by_key(before), by_key(after)
    shared = [key for key in first if key in second]
    pairs = [(first[key], second[key]) for key in shared]
    changes = [_total(new) - _total(old) for old, new in pairs]
    lost = [
        (change, old, new) for change, (old, new) in zip(changes, pairs, strict=True) if change < 0
    ]
    return Comparison(
        differences=tuple(_differences(pairs)),
        worse=tuple(_worse(old, new) for _, old, new in sorted(lost, key=_most)),
        better=sum(change > 0 for change in changes),
        missing=len(first) - len(shared),
    )


def beyond_chance(changes: Sequence[float], least: float) -> bool:
    """Whether signs drawn by chance give such a loss no more often than `least`.

    The paired sign-flip test (Fisher 1935), by draws, with the observed signs as one of them
    (Phipson and Smyth 2010). A bootstrap's tail is no such test where few questions changed.
    """
    sizes = np.array([abs(change) for change in changes if change], dtype=np.float64)
    loss, draws = -sum(changes), max(LEAST_DRAWS, math.ceil(DRAWS_PER_WIN / least))
    if not len(sizes) or loss <= 0.0:
        return False
    generator, wins = np.random.default_rng(DRAW_SEED), 1
    rows = max(1, DRAW_CELLS // len(sizes))
    for start in range(0, draws, rows):
        signs = generator.integers(0, 2, size=(min(rows, draws - start), len(sizes)), dtype=np.int8)
        wins += int(np.count_nonzero((2.0 * signs - 1.0) @ sizes >= loss - 1e-9))
    return wins / (draws + 1) <= least


def _differences(pairs: Sequence[tuple[Row, Row]]) -> list[Difference]:
    parts: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for old, new in pairs:
        now = new.shown
        for metric, value in old.shown.items():
            if metric in now:
                parts.setdefault((old.part, metric), []).append((value, now[metric]))
    return [
        Difference(
            part=part,
            metric=metric,
            before=sum(old for old, _ in values) / len(values),
            after=sum(new for _, new in values) / len(values),
            change=estimate(changes),
            changes=changes,
        )
        for (part, metric), values in parts.items()
        for changes in [tuple(new - old for old, new in values)]
    ]


def _total(row: Row) -> float:
    return sum(row.shown.values())


def _most(lost: tuple[float, Row, Row]) -> tuple[float, Key]:
    """Biggest loss first; questions that lost as much by their names."""
    return (round(lost[0], 9), lost[1].key)


def _worse(old: Row, new: Row) -> Worse:
    return Worse(part=old.part, question_id=old.question_id, before=_told(old), after=_told(new))


def _told(row: Row) -> str:
    if row.ranks:
        found = [str(rank) for rank in row.ranks if rank is not None]
        return "rank " + ", ".join(found) if found else "not found"
    return ", ".join(f"{name} {value:g}" for name, value in row.values.items())
