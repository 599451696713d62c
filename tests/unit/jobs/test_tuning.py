"""Choosing parameters: folds hold out whole groups, and only what helps elsewhere is taken."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.suites.tuning import (
    FOLDS,
    ROUNDS,
    Judge,
    Parameter,
    Scored,
    Scores,
    Search,
    fold_of,
    steps,
    with_value,
)
from rayapp.core.errors import ConfigError
from rayapp.search.rules.recipes import Recipe

GRID = (
    Parameter("turns.speaker", (0.0, 0.25, 0.5)),
    Parameter("expansion_weight", (0.0, 0.5), off=0.0),
)
START = Recipe(name="start").model_copy(update={"expansion_weight": 0.5})
GROUPS = tuple(f"g{n}" for n in range(FOLDS) for _ in range(4))


def judge(recipe: Recipe) -> Scores:
    """Best at speaker 0.25; expansions change nothing."""
    value = 1.0 - abs(recipe.turns.speaker - 0.25)
    return {"one": Scored(np.full(len(GROUPS), value), GROUPS)}


def test_the_best_value_is_chosen_in_every_fold_and_its_cost_is_reported() -> None:
    tuned = Search(with_value(START, "turns.speaker", 0.5), GRID, judge).run()
    assert tuned.chosen == {"turns.speaker": 0.25, "expansion_weight": 0.5}
    assert tuned.by_fold == [tuned.chosen] * FOLDS
    assert tuned.gain["one"].mean == pytest.approx(0.25)
    assert tuned.without["turns.speaker"]["one"].mean == pytest.approx(0.25)
    assert tuned.without["expansion_weight"]["one"].mean == 0.0


def test_what_helps_one_group_only_does_not_show_in_its_held_out_value() -> None:
    def lucky(recipe: Recipe) -> Scores:
        values = np.zeros(len(GROUPS))
        values[:4] = recipe.turns.speaker  # g0 gains, the others lose a little
        values[4:] = 0.5 - recipe.turns.speaker / 8
        return {"one": Scored(values, GROUPS)}

    tuned = Search(with_value(START, "turns.speaker", 0.0), GRID, lucky).run()
    assert tuned.by_fold[0]["turns.speaker"] == 0.0
    assert tuned.by_fold[1]["turns.speaker"] == 0.5
    assert tuned.held_out["one"].mean < tuned.start["one"].mean


def test_a_recipe_is_judged_once() -> None:
    seen: list[float] = []

    def counting(recipe: Recipe) -> Scores:
        seen.append(recipe.turns.speaker + 10 * recipe.expansion_weight)
        return judge(recipe)

    tuned = Search(START, GRID, counting).run()
    assert len(seen) == len(set(seen)) == tuned.recipes


def restless(recipe: Recipe) -> Scores:
    """Each fold likes other values, so that searches differ as much as they can."""
    values = np.array(
        [np.sin(97.0 * fold * (1.0 + recipe.turns.speaker + 3.0 * recipe.expansion_weight))
         for fold in range(FOLDS) for _ in range(4)]
    )  # fmt: skip
    return {"one": Scored(values, GROUPS)}


@pytest.mark.parametrize("judged", [judge, restless])
def test_the_work_is_bounded_and_a_bar_reaches_its_end(judged: Judge) -> None:
    advanced: list[int] = []
    tuned = Search(START, GRID, judged, advanced.append).run()
    assert sum(advanced) == steps(GRID) == (FOLDS + 1) * ROUNDS * 5 + 2
    assert tuned.recipes <= steps(GRID) + 1


def test_a_metric_whose_questions_are_all_held_out_says_nothing() -> None:
    """A small sample may have all questions of a metric in one fold."""

    def scarce(recipe: Recipe) -> Scores:
        alone = Scored(np.array([1.0 - recipe.turns.speaker]), ("g0",))
        return {**judge(recipe), "scarce": alone}

    tuned = Search(with_value(START, "turns.speaker", 0.5), GRID, scarce).run()
    assert tuned.by_fold[0]["turns.speaker"] == 0.25
    assert np.isfinite(tuned.held_out["scarce"].mean)


def test_few_groups_are_a_fold_each_and_many_are_spread_the_same_way_each_time() -> None:
    few = [f"g{n}" for n in range(FOLDS)]
    assert [fold_of(group, few) for group in few] == list(range(FOLDS))
    many = [f"g{n}" for n in range(100)]
    folds = [fold_of(group, many) for group in many]
    assert set(folds) == set(range(FOLDS))
    assert folds == [fold_of(group, many) for group in many]


def test_a_value_that_no_recipe_may_have_is_refused() -> None:
    with pytest.raises((ValueError, ConfigError)):
        with_value(START, "turns.speaker", 7.0)
