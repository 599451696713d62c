"""Which tiers a search looks into."""

import pytest

from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.search.requests import SearchQuery
from rayapp.search.rules.query import TierChoice, choose_tiers

ASKING = ("datasets about hospitals", "אילו מאגרי מידע יש על בתי חולים")
PLAIN = ("where does Dana live", "איפה גרה דנה")
WITH = (*CORE_TIERS, Tier.DATAGOV_SCHEMA)


def choice(text: str, *, shared: bool = True, intent: bool = True, **fields: object) -> TierChoice:
    query = SearchQuery(query=text, **fields)  # type: ignore[arg-type]
    return choose_tiers(query, text, shared=shared, intent=intent)


@pytest.mark.parametrize("text", ASKING)
def test_the_words_of_a_question_add_open_data(text: str) -> None:
    found = choice(text)
    assert found.tiers == WITH
    assert (found.datagov.searched, found.datagov.guessed) == (True, True)
    assert found.datagov.reason == "datasets"
    assert found.datagov.categories == ("health",)


@pytest.mark.parametrize("text", PLAIN)
def test_other_questions_look_into_the_core_tiers(text: str) -> None:
    found = choice(text)
    assert found.tiers == CORE_TIERS
    assert not found.datagov.searched


@pytest.mark.parametrize("text", ASKING)
@pytest.mark.parametrize(
    "fields",
    [
        {"include_datagov": False},
        {"tiers": (Tier.WORKING,)},
        {"tiers": CORE_TIERS},
        {"tiers": ()},
        {"where": ItemFilter(tiers=(Tier.BOOKS,))},
        {"intent": False},
        {"shared": False},
        {"include_datagov": False, "where": ItemFilter(categories=("health",))},
    ],
)
def test_a_guess_gives_way_to_what_was_said(text: str, fields: dict[str, object]) -> None:
    found = choice(text, **fields)  # type: ignore[arg-type]
    assert not found.datagov.searched
    assert Tier.DATAGOV_SCHEMA not in found.tiers


@pytest.mark.parametrize("text", [*ASKING, *PLAIN])
def test_asking_for_open_data_is_no_guess(text: str) -> None:
    found = choice(text, include_datagov=True)
    assert found.tiers == WITH
    assert (found.datagov.guessed, found.datagov.reason) == (False, "asked")


def test_named_tiers_are_searched_as_named() -> None:
    found = choice("x", tiers=(Tier.DATAGOV_EXPANSION,))
    assert found.tiers == (Tier.DATAGOV_EXPANSION,)
    assert found.datagov.reason == "asked"
    both = choice("x", tiers=(Tier.BOOKS,), include_datagov=True)
    assert both.tiers == (Tier.BOOKS, Tier.DATAGOV_SCHEMA)


@pytest.mark.parametrize(
    "where",
    [
        ItemFilter(categories=("health",)),
        ItemFilter(formats=()),
        ItemFilter(organizations=("משרד הבריאות",)),
        ItemFilter(flags=("has_phone",)),
    ],
)
def test_a_filter_on_open_data_asks_for_it(where: ItemFilter) -> None:
    found = choice("anything", where=where)
    assert found.tiers == WITH
    assert (found.datagov.guessed, found.datagov.reason) == (False, "filter")


def test_the_dictionary_is_never_searched_unless_it_is_named() -> None:
    for fields in ({}, {"include_datagov": True}, {"where": ItemFilter(categories=("water",))}):
        assert Tier.DATAGOV_EXPANSION not in choice(ASKING[0], **fields).tiers  # type: ignore[arg-type]
