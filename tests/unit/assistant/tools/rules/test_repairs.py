"""What is put right in the arguments of a tool that reads, and what is left alone."""

from typing import Any

import pytest

from rayapp.assistant.tools.rules.definitions import (
    TOOLS_BY_NAME,
    AddToMemoryBank,
    GetContextInsights,
    SearchMemory,
)
from rayapp.assistant.tools.rules.repairs import MOST, read_repaired
from rayapp.core.errors import InvalidInput

ASKED = "איפה דנה גרה?"


@pytest.mark.parametrize(
    ("sent", "wanted", "notes"),
    [
        ({"query": "tea"}, {"query": "tea", "limit": 5}, 0),
        ({"query": "tea", "limit": 0}, {"limit": 1}, 1),
        ({"query": "tea", "limit": -5.5}, {"limit": 1}, 1),
        ({"query": "tea", "limit": "many"}, {"limit": 5}, 1),
        ({"query": "tea", "limit": 999}, {"limit": 20}, 0),
        ({"query": "tea", "top_k": "2.5"}, {"limit": 2}, 1),
        ({"query": "tea", "tiers": ["attic", "history"]}, {"tiers": None}, 1),
        ({"query": "tea", "sort_by": "beauty"}, {"sort_by": None}, 1),
        ({"query": "tea", "more": "perhaps"}, {"more": False}, 1),
        ({"query": "tea", "tags": {"a": 1}}, {"tags": None}, 1),
        ({"query": "tea", "a": 1, "b": 2}, {"query": "tea"}, 2),
        ({"q": ""}, {"query": ASKED}, 1),
        ({"q": 5, "limit": "x"}, {"query": ASKED, "limit": 5}, 2),
        ([1], {"query": ASKED}, 1),
        ('{"query": "te', {"query": ASKED}, 1),
        (None, {"query": ASKED}, 1),
    ],
)
def test_a_search_is_made(sent: Any, wanted: dict[str, Any], notes: int) -> None:
    found, said = read_repaired(SearchMemory, sent, ASKED)
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert len(said) == notes
    assert all(one.endswith(".") for one in said)


@pytest.mark.parametrize("sent", [{}, {"query": " "}, {"query": 5}, [1], {"limit": 3}])
def test_without_the_question_a_query_is_needed(sent: Any) -> None:
    with pytest.raises(InvalidInput):
        read_repaired(SearchMemory, sent, None)


def test_a_question_that_cannot_be_read_itself_ends_it() -> None:
    with pytest.raises(InvalidInput):
        read_repaired(SearchMemory, {"query": "\0"}, "\0")


def test_a_call_with_too_much_wrong_is_no_call_of_this_tool() -> None:
    with pytest.raises(InvalidInput):
        read_repaired(SearchMemory, {f"x{n}": n for n in range(MOST + 1)}, ASKED)


def test_other_tools_that_read_are_helped_too() -> None:
    found, said = read_repaired(GetContextInsights, {"depth": 3}, ASKED)
    assert (found.query, len(said)) == (ASKED, 2)


def test_tools_that_write_are_strict() -> None:
    for tool in TOOLS_BY_NAME.values():
        if tool.writes:
            with pytest.raises(InvalidInput):
                read_repaired(tool, {"mood": 1}, ASKED)
    with pytest.raises(InvalidInput):
        read_repaired(AddToMemoryBank, {"content": ""}, ASKED)
