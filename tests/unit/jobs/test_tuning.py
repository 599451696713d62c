"""Choosing parameters: a set is measured with what the others choose."""

import numpy as np
import pytest

from jobs.suites.tuning import ROUNDS, Judge, Parameter, Scored, Scores, Search, steps, with_value
from rayapp.core.errors import ConfigError
from rayapp.search.rules.recipes import Recipe

GRID = (
    Parameter("turns.speaker", (0.0, 0.25, 0.5)),
    Parameter("expansion_weight", (0.0, 0.5), off=0.0),
)
START = Recipe(name="start").model_copy(update={"expansion_weight": 0.5})
SETS = ("one", "two", "three")


def judge(recipe: Recipe) -> Scores:
    """Best at speaker 0.25; expansions change nothing."""
    value = 1.0 - abs(recipe.turns.speaker - 0.25)
    return {name: Scored(name, np.full(4, value)) for name in SETS}


def test_the_best_value_is_chosen_without_every_set_and_its_cost_is_reported() -> None:
    tuned = Search(with_value(START, "turns.speaker", 0.5), GRID, judge).run()
    assert tuned.chosen == {"turns.speaker": 0.25, "expansion_weight": 0.5}
    assert tuned.by_set == dict.fromkeys(SETS, tuned.chosen)
    assert tuned.gain["one"].mean == pytest.approx(0.25)
    assert tuned.without["turns.speaker"]["one"].mean == pytest.approx(0.25)
    assert tuned.without["expansion_weight"]["one"].mean == 0.0


def test_what_helps_one_set_only_does_not_show_in_its_value_when_left_out() -> None:
    def lucky(recipe: Recipe) -> Scores:
        speaker = recipe.turns.speaker  # the first set gains, the others lose a little
        values = {"one": speaker, "two": 0.5 - speaker / 8, "three": 0.5 - speaker / 8}
        return {name: Scored(name, np.full(4, value)) for name, value in values.items()}

    tuned = Search(with_value(START, "turns.speaker", 0.5), GRID, lucky).run()
    assert tuned.by_set["one"]["turns.speaker"] == 0.0
    assert tuned.by_set["two"]["turns.speaker"] == 0.5
    assert tuned.held_out["one"].mean < tuned.start["one"].mean


def test_a_recipe_is_judged_once() -> None:
    seen: list[float] = []

    def counting(recipe: Recipe) -> Scores:
        seen.append(recipe.turns.speaker + 10 * recipe.expansion_weight)
        return judge(recipe)

    tuned = Search(START, GRID, counting).run()
    assert len(seen) == len(set(seen)) == tuned.recipes


def restless(recipe: Recipe) -> Scores:
    """Each set likes other values, so that searches differ as much as they can."""
    at = 1.0 + recipe.turns.speaker + 3.0 * recipe.expansion_weight
    return {
        name: Scored(name, np.full(4, np.sin(97.0 * number * at)))
        for number, name in enumerate(SETS)
    }


@pytest.mark.parametrize("judged", [judge, restless])
def test_the_work_is_bounded_and_a_bar_reaches_its_end(judged: Judge) -> None:
    advanced: list[int] = []
    tuned = Search(START, GRID, judged, advanced.append).run()
    assert sum(advanced) == steps(GRID, len(SETS)) == (len(SETS) + 1) * ROUNDS * 5 + 2
    assert tuned.recipes <= sum(advanced) + 1


def test_a_value_that_no_recipe_may_have_is_refused() -> None:
    with pytest.raises((ValueError, ConfigError)):
        with_value(START, "turns.speaker", 7.0)
