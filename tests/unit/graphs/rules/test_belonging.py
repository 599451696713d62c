"""A memory under the id of a deleted one inherits nothing of what that one did."""

from datetime import timedelta

import pytest

from rayapp.graphs.records import GraphPriors
from rayapp.graphs.rules.content import CLOCK_SKEW, happened_to, inherited_at
from rayapp.memory.item import MemoryItem, Outcome
from rayapp.search.rules.ranking import graph_boosts, solution_points, solutions_among
from rayapp.search.rules.recipes import Recipe
from tests.support.builders import an_item
from tests.unit.graphs.rules import rows

MILLISECOND = timedelta(milliseconds=1)
BOTH = pytest.mark.parametrize("query", [rows.ENGLISH, rows.HEBREW])


def new_under_the_id(stored: timedelta) -> MemoryItem:
    """Stored so long after what the graphs remember of its id."""
    return an_item(memory_id="again", text="a new text", stored_at=rows.AT + stored)


def test_what_happened_before_a_memory_was_stored_did_not_happen_to_it() -> None:
    item = an_item(stored_at=rows.AT)
    assert happened_to(item, rows.AT)
    assert happened_to(item, rows.later(9))
    assert happened_to(item, rows.AT - CLOCK_SKEW)
    assert not happened_to(item, rows.AT - CLOCK_SKEW - MILLISECOND)


def test_what_a_later_copy_inherits_happened_to_it() -> None:
    copy = an_item(stored_at=rows.AT)
    assert inherited_at(copy, rows.later(-3)) == rows.AT
    assert inherited_at(copy, rows.later(3)) == rows.later(3)
    assert happened_to(copy, inherited_at(copy, rows.later(-3)))


@BOTH
@pytest.mark.parametrize(
    ("stored", "inherits"), [(timedelta(hours=1), False), (timedelta(hours=-1), True)]
)
def test_a_known_solution_is_the_memory_that_solved_it(
    query: str, stored: timedelta, inherits: bool
) -> None:
    question, item = rows.asked(query), new_under_the_id(stored)
    assert question.problem is not None
    priors = GraphPriors(solutions=(rows.solution(item, question.problem, 9),))
    found = rows.told(question, priors=priors, items=(item,))
    assert found.known_solution == (item if inherits else None)
    assert len(found.patterns) == len(found.directives) == int(inherits)


@BOTH
@pytest.mark.parametrize("outcome", [Outcome.WORKED, Outcome.FAILED])
@pytest.mark.parametrize(
    ("stored", "inherits"), [(timedelta(hours=1), False), (timedelta(hours=-1), True)]
)
def test_an_example_is_told_of_the_memory_that_it_happened_to(
    query: str, outcome: Outcome, stored: timedelta, inherits: bool
) -> None:
    question, item = rows.asked(query), new_under_the_id(stored)
    row = rows.routing(question.concepts[0].key, {}, examples=(rows.example(item, outcome),))
    found = rows.told(question, priors=GraphPriors(routing=(row,)), items=(item,))
    assert len((*found.patterns, *found.failures)) == int(inherits)


@BOTH
@pytest.mark.parametrize(
    ("stored", "inherits"), [(timedelta(hours=1), False), (timedelta(hours=-1), True)]
)
def test_a_failure_is_told_of_the_memory_that_failed(
    query: str, stored: timedelta, inherits: bool
) -> None:
    question, item = rows.asked(query), new_under_the_id(stored)
    row = rows.routing(
        question.concepts[0].key, {}, examples=(rows.example(item, Outcome.WORKED, rows.later(-9)),)
    )
    failed = rows.failure(item, rows.AT, query=query, concepts=(question.concepts[0].key,))
    priors = GraphPriors(routing=(row,))
    found = rows.told(question, priors=priors, items=(item,), failures=(failed,))
    assert len(found.failures) == int(inherits)


def test_only_the_memory_that_solved_a_problem_is_nearer_and_a_candidate() -> None:
    old, new = new_under_the_id(timedelta(hours=-1)), new_under_the_id(timedelta(hours=1))
    assert old.point_id == new.point_id
    priors = GraphPriors(solutions=(rows.solution(old, "p"),))
    found = graph_boosts(priors, Recipe(name="test"))
    assert solution_points(priors) == (old.point_id,)
    assert found.of(old, 0.6).solution > 1.0
    assert found.of(new, 0.6).solution == 1.0
    assert solutions_among((old,), priors) == {old.point_id}
    assert not solutions_among((new,), priors)
