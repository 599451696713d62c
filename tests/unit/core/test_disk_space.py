"""When a disk counts as low and as full, with a margin, and what is said of it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.disk_space import ELSEWHERE, MARGIN, MIB, DiskLimits, DiskSpace, DiskState, judge
from rayapp.core.errors import StoreFull

OK, LOW, TIGHT, FULL = DiskState
LIMITS = DiskLimits(warn_bytes=1_000 * MIB, min_bytes=200 * MIB)


@pytest.mark.parametrize(
    ("before", "free_mib", "after"),
    [
        (OK, 1_000, OK),
        (OK, 999, LOW),
        (OK, 200, LOW),
        (OK, 199, FULL),
        (LOW, 1_249, LOW),
        (LOW, 1_250, OK),
        (LOW, 199, FULL),
        (FULL, 249, FULL),
        (FULL, 250, LOW),
        (FULL, 1_249, LOW),
        (FULL, 1_250, OK),
        (FULL, 0, FULL),
    ],
)
def test_a_state_is_left_with_a_margin(before: DiskState, free_mib: int, after: DiskState) -> None:
    assert judge(before, free_mib * MIB, LIMITS) is after


@given(
    st.sampled_from(DiskState),
    st.integers(0, 2_000 * MIB),
    st.lists(st.floats(0, 1), min_size=2, max_size=30),
)
def test_what_moves_less_than_the_margin_changes_the_state_once(
    before: DiskState, low: int, shares: list[float]
) -> None:
    states = []
    for share in shares:
        before = judge(before, int(low * (1 + share * (MARGIN - 1) * 0.999)), LIMITS)
        states.append(before)
    # Both bounds are wider apart than the margin, so only one of them can be crossed.
    changes = sum(one is not other for one, other in pairwise(states))
    assert changes <= 1


@given(st.sampled_from(DiskState), st.integers(0, 2_000 * MIB), st.integers(0, 2_000 * MIB))
def test_more_room_is_never_worse(before: DiskState, one: int, other: int) -> None:
    order = [FULL, TIGHT, LOW, OK]
    less, more = (judge(before, free, LIMITS) for free in sorted((one, other)))
    assert order.index(less) <= order.index(more)


BULK_LIMITS = DiskLimits(warn_bytes=1_000 * MIB, bulk_bytes=500 * MIB, min_bytes=200 * MIB)


@pytest.mark.parametrize(
    ("before", "free_mib", "after"),
    [
        (OK, 500, LOW),
        (OK, 499, TIGHT),
        (OK, 199, FULL),
        (LOW, 499, TIGHT),
        (TIGHT, 624, TIGHT),
        (TIGHT, 625, LOW),
        (TIGHT, 1_250, OK),
        (FULL, 249, FULL),
        (FULL, 250, TIGHT),
        (FULL, 625, LOW),
    ],
)
def test_between_low_and_full_only_what_takes_much_is_refused(
    before: DiskState, free_mib: int, after: DiskState
) -> None:
    assert judge(before, free_mib * MIB, BULK_LIMITS) is after
    disk = DiskSpace("/data", BULK_LIMITS, lambda: (4_000 * MIB, free_mib * MIB))
    disk._state = before
    assert disk.tight is (after in (TIGHT, FULL))
    if after is TIGHT:
        disk.check()
        disk.check(frees=True, bulk=True)
        with pytest.raises(StoreFull, match="jobs, imports and uploads go on at 625 MiB"):
            disk.check(bulk=True)


def space(free: list[int]) -> DiskSpace:
    return DiskSpace("/data", LIMITS, lambda: (4_000 * MIB, free[0] * MIB))


def test_a_write_is_refused_with_what_to_do_until_there_is_room_again() -> None:
    free = [1_500]
    disk = space(free)
    disk.check()
    assert disk.look().reason == ""  # type: ignore[union-attr]  # there is a disk
    free[0] = 500
    disk.check()
    found = disk.look()
    assert found is not None
    assert (found.state, "writes are refused below 200 MiB" in found.reason) == (LOW, True)
    free[0] = 199
    with pytest.raises(StoreFull) as caught:
        disk.check()
    assert caught.value.message == (
        "The disk of /data is full (199 MiB are left, writes go on at 250 MiB): free space on it, "
        "or move data.dir to a larger one; nothing was stored."
    )
    assert (caught.value.code, caught.value.retry_after_s) == ("disk_full", 30)
    assert caught.value.details == {"folder": "/data", "free_bytes": 199 * MIB}
    free[0] = 249
    assert disk.full
    free[0] = 250
    disk.check()


def test_what_frees_room_is_let_through_until_the_reserve_is_nearly_gone() -> None:
    free = [50]
    disk = space(free)
    disk.check(frees=True)
    assert not disk.exhausted
    free[0] = 49
    assert disk.exhausted
    with pytest.raises(StoreFull):
        disk.check(frees=True)


def test_the_index_goes_on_with_half_of_the_reserve_whatever_was_seen_before() -> None:
    free = [0]
    disk = space(free)
    assert disk.full_for_index
    free[0] = 99
    assert disk.full_for_index
    free[0] = 100
    assert (disk.full, disk.full_for_index) == (True, False)


def test_data_on_another_machine_are_not_looked_at() -> None:
    ELSEWHERE.check()
    assert (ELSEWHERE.look(), ELSEWHERE.full, ELSEWHERE.full_for_index) == (None, False, False)


def test_without_a_reserve_nothing_is_refused() -> None:
    disk = DiskSpace("/data", DiskLimits(warn_bytes=0, min_bytes=0), lambda: (1, 0))
    disk.check()
    assert not disk.exhausted
