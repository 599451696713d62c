"""Two values of one thing: the newer stands first, the older names it, nothing is lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.memory.item import Source, SourceType
from rayapp.memory.tiers import Tier
from rayapp.search.requests import Hit, ScoreSummary
from rayapp.search.rules.updates import newest_first
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
