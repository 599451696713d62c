"""Pauses of bad rows: they grow, they end, and they are bounded in number."""

from rayapp.learning.promotion import MAX_REMEMBERED, Pauses
from tests.support.clock import FakeClock


def test_a_row_waits_longer_after_each_failure() -> None:
    clock = FakeClock()
    pauses = Pauses(clock)
    found = []
    for _ in range(13):
        found.append(pauses.failed("row"))
        assert pauses.waits("row")
        clock.advance(found[-1])
        assert not pauses.waits("row")
    assert found == sorted(found)
    assert (found[0], found[1], found[-1]) == (1.0, 2.0, 600.0)


def test_an_outage_does_not_lengthen_the_pause() -> None:
    pauses = Pauses(FakeClock())
    assert {pauses.failed("row", outage=True) for _ in range(9)} == {5.0}
    assert pauses.failed("row") == 1.0


def test_a_settled_row_is_forgotten() -> None:
    pauses = Pauses(FakeClock())
    for _ in range(5):
        pauses.failed("row")
    pauses.forget("row")
    assert not pauses.waits("row")
    assert pauses.failed("row") == 1.0


def test_rows_settled_by_somebody_else_are_forgotten_in_time() -> None:
    clock = FakeClock()
    pauses = Pauses(clock)
    pauses.failed("row")
    clock.advance(600.0)
    pauses.forget_old()
    assert len(pauses) == 1
    clock.advance(2.0)
    pauses.forget_old()
    assert len(pauses) == 0


def test_only_so_many_rows_are_remembered() -> None:
    pauses = Pauses(FakeClock())
    for n in range(MAX_REMEMBERED + 3):
        pauses.failed(n)
    assert len(pauses) == MAX_REMEMBERED
    assert not pauses.waits(2)
    assert pauses.waits(3)
