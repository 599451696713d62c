"""Choosing recipe parameters one set left out: a declared grid and coordinate descent.

The judge is a function from a recipe to one value per question, asked once per recipe. Each set is
measured with the values that the other sets choose, so that a parameter is never chosen on what it
is measured on. The number of recipes is bounded by the grid: `steps`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rayapp.search.rules.evaluation import Estimate, estimate
from rayapp.search.rules.recipes import Recipe

Floats = npt.NDArray[np.float64]
# Rounds over all parameters at most, our choice. The second one sees whether a value chosen early
# still is the best beside those chosen after it; a search ends sooner when a round changes nothing.
ROUNDS = 2
# A step is taken when it gains more than noise of the last digit, share of a point.
LEAST_GAIN = 1e-4


@dataclass(frozen=True, slots=True)
class Parameter:
    """`path` names a field of the recipe (`turns.speaker`), `off` the value without it."""

    path: str
    values: tuple[float, ...]
    off: float = 0.0


@dataclass(frozen=True, slots=True)
class Scored:
    """One metric of one set under one recipe: a value per question, always in the same order."""

    of: str
    values: Floats


# Metric name (`locomo hit@10`) to its values; each counts the same in the objective.
Scores = Mapping[str, Scored]
Judge = Callable[[Recipe], Scores]
# Told how many more steps are done.
Advance = Callable[[int], object]


@dataclass(slots=True)
class Tuned:
    """`held_out`: each set under the recipe that the others choose. `start`: the recipe as it was.

    `chosen`: on all sets. `without`: what a metric loses when one parameter of it is off.
    """

    chosen: dict[str, float]
    by_set: dict[str, dict[str, float]]
    start: dict[str, Estimate]
    held_out: dict[str, Estimate]
    gain: dict[str, Estimate]
    without: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    recipes: int = 0


def with_value(recipe: Recipe, path: str, value: float) -> Recipe:
    """The recipe with one field set, checked like a file; `a.b` is field b of part a."""
    tree = recipe.model_dump()
    part: dict[str, Any] = tree
    *parents, last = path.split(".")
    for name in parents:
        part = part[name]
    part[last] = value
    return Recipe.model_validate(tree)


def value_of(recipe: Recipe, path: str) -> float:
    found: Any = recipe
    for name in path.split("."):
        found = getattr(found, name)
    return float(found)


def steps(grid: Sequence[Parameter], sets: int) -> int:
    """Values that a search tries at most, which bounds the recipes that it judges."""
    return (sets + 1) * ROUNDS * _in_round(grid) + len(grid)


def _in_round(grid: Sequence[Parameter]) -> int:
    return sum(len(parameter.values) for parameter in grid)


class Search:
    """Coordinate descent from `start` over `grid`; every recipe is judged once."""

    def __init__(
        self,
        start: Recipe,
        grid: Sequence[Parameter],
        judge: Judge,
        advance: Advance = lambda count: None,
    ) -> None:
        """`advance` hears of every step, of `steps` in all when the search ends."""
        self._start, self._grid, self._judge, self._advance = start, grid, judge, advance
        self._seen: dict[tuple[float, ...], Scores] = {}

    def run(self) -> Tuned:
        start = self._scores(self._start)
        by_set = {name: self._best(name) for name in sorted({one.of for one in start.values()})}
        chosen = self._best(None)
        held = {
            name: self._scores(by_set[scored.of])[name].values for name, scored in start.items()
        }
        tuned = Tuned(
            chosen=self._values(chosen),
            by_set={name: self._values(recipe) for name, recipe in by_set.items()},
            start={name: estimate(list(one.values)) for name, one in start.items()},
            held_out={name: estimate(list(values)) for name, values in held.items()},
            gain={
                name: estimate(list(values - start[name].values)) for name, values in held.items()
            },
        )
        for parameter in self._grid:
            tuned.without[parameter.path] = self._losses(chosen, parameter)
            self._advance(1)
        tuned.recipes = len(self._seen)
        return tuned

    def _losses(self, recipe: Recipe, parameter: Parameter) -> dict[str, Estimate]:
        """What each metric loses when the parameter is off; above 0 = it earns its place."""
        full = self._scores(recipe)
        off = self._scores(with_value(recipe, parameter.path, parameter.off))
        return {name: estimate(list(full[name].values - off[name].values)) for name in full}

    def _best(self, left_out: str | None) -> Recipe:
        best = self._start
        value = self._objective(best, left_out)
        for number in range(1, ROUNDS + 1):
            before = best
            for parameter in self._grid:
                for candidate in parameter.values:
                    recipe = with_value(best, parameter.path, candidate)
                    found = self._objective(recipe, left_out)
                    if found > value + LEAST_GAIN:
                        best, value = recipe, found
                    self._advance(1)
            if best == before:
                self._advance((ROUNDS - number) * _in_round(self._grid))
                break
        return best

    def _objective(self, recipe: Recipe, left_out: str | None) -> float:
        """Mean over the metrics of the other sets, each the mean over its questions."""
        means = [
            float(one.values.mean())
            for one in self._scores(recipe).values()
            if one.of != left_out and one.values.size
        ]
        return float(np.mean(means)) if means else 0.0

    def _scores(self, recipe: Recipe) -> Scores:
        key = tuple(self._values(recipe).values())
        if key not in self._seen:
            self._seen[key] = self._judge(recipe)
        return self._seen[key]

    def _values(self, recipe: Recipe) -> dict[str, float]:
        return {one.path: value_of(recipe, one.path) for one in self._grid}
