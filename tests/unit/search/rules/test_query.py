"""The plan of a search."""

import pytest

from rayapp.search.rules.latest_words import LatestWords
from rayapp.search.rules.query import (
    BROAD_LIMIT,
    DEFAULT_LIMIT,
    HOW_TO_LIMIT,
    IDENTITY_LIMIT,
    estimate_context_limit,
    plan_query,
)
from rayapp.text.expansions import Expansions

NONE = Expansions()
NO_WORDS = LatestWords()
CATS = Expansions({"a.yaml": {"domain": "a", "entries": [{"he": ["חתול"], "en": ["cat"]}]}})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tell me about the trip", BROAD_LIMIT),
        ("list all my orders", BROAD_LIMIT),
        ("Summarize our project", BROAD_LIMIT),
        ("ספר לי על הפרויקט", BROAD_LIMIT),
        ("תסכם את הפגישה", BROAD_LIMIT),
        ("כל הפגישות עם דנה", BROAD_LIMIT),
        ("how do I install docker", HOW_TO_LIMIT),
        ("איך מתקינים דוקר", HOW_TO_LIMIT),
        ("steps to reset the router", HOW_TO_LIMIT),
        ("what is my name", IDENTITY_LIMIT),
        ("who is Dana", IDENTITY_LIMIT),
        ("מי אני", IDENTITY_LIMIT),
        ("איך קוראים לכלב שלי", IDENTITY_LIMIT),
        ("listen to jazz", DEFAULT_LIMIT),
        ("prefix of the table", DEFAULT_LIMIT),
        ("whose car broke", DEFAULT_LIMIT),
        ("האיכות של התמונה", DEFAULT_LIMIT),
        ("", DEFAULT_LIMIT),
    ],
)
def test_estimate_context_limit(query: str, expected: int) -> None:
    assert estimate_context_limit(query) == expected


def test_plan_decides_what_was_left_open() -> None:
    plan = plan_query(
        "  מה החתולים\u200f אכלו אתמול", limit=None, sort_by=None, expansions=CATS, latest=NO_WORDS
    )
    assert plan.text == "מה החתולים אכלו אתמול"
    assert plan.language == "he"
    assert [expansion.text for expansion in plan.expansions] == ["cat"]
    assert (plan.limit, plan.sort_by) == (DEFAULT_LIMIT, "recency")


def test_plan_keeps_what_was_given() -> None:
    plan = plan_query(
        "tell me what we did yesterday",
        limit=3,
        sort_by="relevance",
        expansions=NONE,
        latest=NO_WORDS,
    )
    assert (plan.limit, plan.sort_by, plan.expansions) == (3, "relevance", ())


def test_plan_sorts_by_relevance_without_temporal_words() -> None:
    assert (
        plan_query(
            "my last name", limit=None, sort_by=None, expansions=NONE, latest=NO_WORDS
        ).sort_by
        == "relevance"
    )
