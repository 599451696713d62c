"""Ids of the points of passages."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rayapp.index.rules.points import checked_ids, is_passage, item_point, passage_point
from rayapp.memory.item import point_id_of
from rayapp.text.passages import MAX_PASSAGES

NUMBERS = st.integers(0, MAX_PASSAGES - 1)


@given(st.text(), st.text(), NUMBERS)
def test_the_id_of_a_passage_says_whose_it_is(user_id: str, memory_id: str, number: int) -> None:
    home = point_id_of(user_id, memory_id)
    point_id = passage_point(home, number)
    assert item_point(point_id) == (home, number)
    assert is_passage(point_id) == (number > 0)
    assert checked_ids([point_id]) == [str(UUID(point_id))] == [point_id]


def test_all_passages_of_an_item_have_ids_of_their_own() -> None:
    home = point_id_of("dana", "m1")
    assert len({passage_point(home, number) for number in range(MAX_PASSAGES)}) == MAX_PASSAGES
