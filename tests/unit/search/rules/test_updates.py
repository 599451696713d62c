"""Two values of one thing: the newer stands first, the older names it, nothing is lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.memory.item import Source, SourceType
from rayapp.memory.tiers import Tier
from rayapp.search.requests import Hit, ScoreSummary
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.latest_words import LatestTable, latest_words
from rayapp.search.rules.ranking import Ranked, rank
from rayapp.search.rules.recipes import Recipe
from rayapp.search.rules.updates import LATEST_PLACES, latest_first, newest_first
from tests.support.builders import an_item
from tests.support.examples import examples

START = datetime(2026, 1, 1, tzinfo=UTC)


def hits(*told: tuple[str, int], **fields: Any) -> list[Hit]:
    """Texts with the day they were told on, best first; ids are their places."""
    return [
        Hit(
            position=place,
            item=an_item(
                memory_id=str(place), text=text, created_at=START + timedelta(days=day), **fields
            ),
            summary=ScoreSummary(final_score=1.0 / place),
        )
        for place, (text, day) in enumerate(told, start=1)
    ]


def shown(found: list[Hit], *, reorder: bool = True) -> list[tuple[int, str, str | None]]:
    return [
        (one.position, one.item.memory_id, one.outdated_by)
        for one in newest_first(found, reorder=reorder)
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Haifa", "I live in Tel Aviv"),
        ("My phone number is 050-1", "My phone number is 050-2"),
        ("אני גר בחיפה", "אני גר בתל אביב"),
        ("הקוד של השער הוא 4711", "הקוד של השער הוא 1188"),
    ],
)
def test_the_newer_value_takes_the_better_place(old: str, new: str) -> None:
    found = hits((old, 1), ("The choir sings on Monday", 2), (new, 30))
    assert shown(found) == [(1, "3", None), (2, "2", None), (3, "1", "3")]
    assert shown(found, reorder=False) == [(1, "1", "3"), (2, "2", None), (3, "3", None)]


def test_of_three_all_older_ones_name_the_newest() -> None:
    found = hits(("I work at Elbit", 20), ("I work at Wix", 10), ("I work at Intel", 30))
    assert shown(found) == [(1, "3", None), (2, "1", "3"), (3, "2", "3")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Haifa", "Dana lives in Tel Aviv"),
        ("I live in Haifa", "אני גר בתל אביב"),
        ("I live in Tel Aviv", "I live in Tel Aviv Florentin"),
        ("I live in Haifa", "I visited Tel Aviv"),
    ],
)
def test_what_is_not_said_of_the_same_thing_stays(one: str, other: str) -> None:
    assert shown(hits((one, 1), (other, 2))) == [(1, "1", None), (2, "2", None)]


@pytest.mark.parametrize(
    "fields", [{"source": Source(type=SourceType.DOCUMENT)}, {"tier": Tier.BOOKS}]
)
def test_a_document_is_no_persons_word(fields: dict[str, Any]) -> None:
    found = hits(("I live in Haifa", 1), ("I live in Tel Aviv", 2), **fields)
    assert [by for _, _, by in shown(found)] == [None, None]


def test_of_the_same_moment_neither_is_newer() -> None:
    assert shown(hits(("I live in Haifa", 1), ("I live in Eilat", 1))) == [
        (1, "1", None),
        (2, "2", None),
    ]


def test_people_are_kept_apart() -> None:
    first, second = hits(("I live in Haifa", 1), subject_id="dana") + hits(
        ("I live in Tel Aviv", 2), subject_id="omri"
    )
    assert [by for _, _, by in shown([first, second])] == [None, None]


TOLD = st.tuples(
    st.sampled_from(
        ["I live in Haifa", "I live in Eilat", "my car is a Mazda", "my car is a Kia", "Hello"]
    ),
    st.integers(0, 5),
)


@given(st.lists(TOLD, max_size=8))
@settings(max_examples=examples(200))
def test_every_hit_keeps_a_place_and_no_mark_points_to_something_older(
    told: list[tuple[str, int]],
) -> None:
    found = hits(*told)
    after = newest_first(found, reorder=True)
    assert [one.position for one in after] == [one.position for one in found]
    assert sorted(one.item.memory_id for one in after) == sorted(
        one.item.memory_id for one in found
    )
    by_id = {one.item.memory_id: one for one in after}
    for one in after:
        if one.outdated_by is not None:
            newer = by_id[one.outdated_by]
            assert newer.item.created_at > one.item.created_at
            assert newer.position < one.position
            assert newer.outdated_by is None


WORDS = latest_words([LatestTable(now=("latest",), states=("status",))])
RECIPE = Recipe(name="test")
QUESTION = "latest status of the falcon move"


def ranked_of(*told: tuple[str, int], **fields: Any) -> list[Ranked]:
    """As `hits`, by falling score."""
    items = [one.item for one in hits(*told, **fields)]
    found = Candidates.of(
        [
            Candidate(item=item, sparse=100.0 - place, sparse_rank=place)
            for place, item in enumerate(items, start=1)
        ]
    )
    return rank(found, query_lang="en", recipe=RECIPE, retriever=DenseRetriever(used=False))


def latest(ranked: list[Ranked], question: str = QUESTION, recipe: Recipe = RECIPE) -> str:
    """Ids in order, those that were moved for their age with a sign."""
    return " ".join(
        one.item.memory_id + "!" * one.latest
        for one in latest_first(ranked, question, WORDS, recipe)
    )


REPORTS = [(f"Status of the Falcon move: step {day}, green", day) for day in range(1, 6)]


def test_the_newest_that_speak_of_it_come_first() -> None:
    told = ranked_of(*REPORTS, ("Dana bought a bike", 50), ("Falcon is over", 30))
    assert latest(told) == "7! 5! 4! 1 2 3 6"


def test_neither_documents_nor_a_question_without_a_thing_move_anything() -> None:
    told = ranked_of(*REPORTS, ("Falcon is over", 30), tier=Tier.BOOKS)
    assert latest(told) == "1 2 3 4 5 6"
    told = ranked_of(*REPORTS, ("Falcon is over", 30))
    assert latest(told, "latest status") == latest(told, "zebra") == "1 2 3 4 5 6"
    assert latest(told, recipe=RECIPE.model_copy(update={"latest_share": 0.0})) == "1 2 3 4 5 6"
    assert latest([]) == ""


def test_of_one_moment_the_better_ones_stay_before_the_others() -> None:
    told = ranked_of(*((text, 1) for text, _ in REPORTS))
    assert latest(told) == "1! 2! 3! 4 5"


@given(st.lists(st.tuples(st.sampled_from([*(text for text, _ in REPORTS), "Falcon", "Hello"]),
                          st.integers(0, 5)), max_size=8))  # fmt: skip
@settings(max_examples=examples(200))
def test_nothing_is_lost_and_a_wrong_guess_costs_three_places(told: list[tuple[str, int]]) -> None:
    before = [one.item.memory_id for one in ranked_of(*told)]
    after = [one.item.memory_id for one in latest_first(ranked_of(*told), QUESTION, WORDS, RECIPE)]
    assert sorted(after) == sorted(before)
    assert all(after.index(one) <= before.index(one) + LATEST_PLACES for one in before)
