"""What the round trip compares finds each kind of difference."""

import pytest

from tests.bench.round_trip import different_rows, main

KEPT = {"memory_items": [{"memory_id": "a", "text": "תה"}, {"memory_id": "b", "text": "tea"}]}


def test_a_change_a_loss_and_a_new_row_are_each_found() -> None:
    assert different_rows(KEPT, KEPT) == []
    other = {"memory_items": [{"memory_id": "a", "text": "קפה"}, {"memory_id": "c", "text": "tea"}]}
    assert different_rows(KEPT, other) == [("memory_items", key) for key in "abc"]
    assert different_rows(KEPT, {}) == [("memory_items", key) for key in "ab"]


def test_a_count_below_one_is_refused() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--users", "0"])
