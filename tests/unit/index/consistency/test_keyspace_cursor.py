"""A walk goes through its ranges once, stops at its limit, and survives being stored as JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rayapp.bulk.model import UUID_SPACE, point_ranges, uuid_text
from rayapp.index.consistency.keyspace_cursor import KeyspaceCursor, round_from

POINTS = st.lists(
    st.integers(0, UUID_SPACE - 1).map(uuid_text), min_size=1, max_size=40, unique=True
)


def walked(walk: KeyspaceCursor, points: list[str], batch: int) -> list[str]:
    """The ids that a walk over `points` looks at, stored and read again between any two pages."""
    payload = {"ranges": walk.ranges, "limit": walk.limit}
    seen: list[str] = []
    while not walk.over:
        (after, until), size = walk.position, walk.page_size(batch)
        inside = sorted(
            p for p in points if (after is None or p > after) and (until is None or p <= until)
        )
        page, more = inside[:size], len(inside) > size
        seen += page
        walk = walk.moved(page[-1] if more else None, len(page), page[:1])
        walk = KeyspaceCursor.of(
            json.loads(json.dumps(payload)), json.loads(json.dumps(walk.cursor()))
        )
        assert walk.seen == len(seen)
    return seen


@given(POINTS, st.integers(1, 7), st.integers(0, UUID_SPACE - 1))
def test_a_round_sees_every_point_once_wherever_it_begins(
    points: list[str], batch: int, start: int
) -> None:
    for begin in (None, uuid_text(start), points[0]):
        seen = walked(KeyspaceCursor(ranges=round_from(begin)), points, batch)
        assert sorted(seen) == sorted(points)
        assert begin is None or seen == sorted(points, key=lambda p: (p <= begin, p))


@given(POINTS, st.integers(1, 7), st.integers(1, 12))
def test_partitions_together_see_every_point_once(
    points: list[str], batch: int, parts: int
) -> None:
    seen = [
        point
        for one in point_ranges(parts)
        for point in walked(KeyspaceCursor(ranges=(one,)), points, batch)
    ]
    assert seen == sorted(points)


@given(POINTS, st.integers(1, 7), st.integers(1, 60))
def test_a_limit_ends_the_walk(points: list[str], batch: int, limit: int) -> None:
    seen = walked(KeyspaceCursor(ranges=round_from(points[0]), limit=limit), points, batch)
    assert len(seen) == len(set(seen)) == min(limit, len(points))


def test_suspects_are_kept_over_pages() -> None:
    walk = KeyspaceCursor(ranges=((None, None),)).moved("b", 2, ["a"]).moved(None, 1, ["c"])
    assert (walk.suspects, walk.over, walk.seen) == (("a", "c"), True, 3)
