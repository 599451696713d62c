"""Ranges of point ids, sums and samples of jobs."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from rayapp.bulk.model import point_ranges
from rayapp.bulk.rules import plain, sum_counts

COUNTS = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=9,
).filter(lambda value: "inf" not in repr(value))


@given(parts=st.integers(1, 300), point=st.uuids())
def test_every_point_is_in_one_range(parts: int, point: uuid.UUID) -> None:
    text = str(point)
    holding = [
        (after, until)
        for after, until in point_ranges(parts)
        if (after is None or text > after) and (until is None or text <= until)
    ]
    assert len(holding) == 1


@given(parts=st.integers(1, 300))
def test_ranges_follow_each_other(parts: int) -> None:
    ranges = point_ranges(parts)
    assert len(ranges) == parts
    assert [until for _, until in ranges[:-1]] == [after for after, _ in ranges[1:]]
    assert (ranges[0][0], ranges[-1][1]) == (None, None)


@given(first=COUNTS, second=COUNTS)
def test_sums_do_not_depend_on_how_steps_are_grouped(
    first: list[dict[str, int]], second: list[dict[str, int]]
) -> None:
    assert sum_counts([sum_counts(first), sum_counts(second)]) == sum_counts([*first, *second])


@given(value=JSON)
def test_plain_json_stays_as_it_is(value: object) -> None:
    assert plain(value) == value
    assert plain(plain(value)) == plain(value)
