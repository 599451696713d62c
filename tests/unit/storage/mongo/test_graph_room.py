"""When a user's rows of a graph are counted, and when what was counted is still good."""

import time
from typing import Any, cast

import pytest
from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.storage.mongo import graph_settlement
from rayapp.storage.mongo.database import Collection
from rayapp.storage.mongo.graph_settlement import FEW, PART, Room
from rayapp.storage.mongo.indexes import EDGES

CAP = 20 * FEW
# Edges of one item at most.
ITEM = 28
DANA = {"user_id": "dana"}
SESSION = cast(AsyncClientSession, None)


class Rows:
    """A collection that counts, and how often it did."""

    name = EDGES

    def __init__(self, held: int) -> None:
        self.held, self.counts = held, 0

    async def count_documents(self, _: dict[str, Any], *, limit: int, session: Any) -> int:
        self.counts += 1
        return min(limit, self.held)

    async def free(self, room: Room, new: int, cap: int = CAP, *, ends: bool = True) -> int:
        """What is free before `new` rows are added, as a settlement adds them when it `ends`."""
        free = await room.free(cast(Collection, self), DANA, cap, set(range(new)), SESSION)
        self.held += min(free, new) * ends
        return free


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock says."""
    found = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: found[0])
    return found


async def test_far_from_the_cap_one_count_serves_many_items() -> None:
    rows, room = Rows(0), Room()
    assert [await rows.free(room, 10) for _ in range(50)] == [CAP - 10 * n for n in range(50)]
    assert rows.counts == 1


async def test_a_cap_is_reached_with_few_counts_and_never_passed() -> None:
    rows, room, items = Rows(0), Room(), 0
    while rows.held < CAP:
        await rows.free(room, ITEM)
        items += 1
    assert rows.held == CAP
    assert rows.counts < items / 10


@pytest.mark.parametrize("processes", [2, PART])
async def test_several_processes_pass_a_cap_by_less_than_a_hundredth(processes: int) -> None:
    """Each counts for itself, and takes its part before it counts again."""
    rows, rooms = Rows(0), [Room() for _ in range(processes)]
    for n in range(2 * CAP // ITEM):
        await rows.free(rooms[n % processes], ITEM)
    assert CAP <= rows.held < CAP + CAP // 100


async def test_what_was_asked_for_in_vain_makes_no_user_full() -> None:
    """Of a transaction that the server ends, which is repeated."""
    rows, room = Rows(CAP - FEW), Room()
    assert await rows.free(room, 2 * FEW, ends=False) == FEW
    assert await rows.free(room, ITEM) == FEW


async def test_a_full_user_is_not_counted_for_every_item_until_rows_go(now: list[float]) -> None:
    rows, room = Rows(CAP), Room()
    assert [await rows.free(room, 5) for _ in range(9)] == [0] * 9
    assert rows.counts == 1
    rows.held -= 3
    room.forget("dana")
    assert await rows.free(room, 5) == 3
    assert await rows.free(room, 5) == 0
    rows.held -= 4  # another process did
    now[0] += graph_settlement.FULL_S
    assert await rows.free(room, 5) == 4


async def test_what_others_use_is_counted_after_some_seconds(now: list[float]) -> None:
    rows, room = Rows(0), Room()
    assert await rows.free(room, 5) == CAP
    rows.held = CAP
    now[0] += graph_settlement.COUNT_S
    assert await rows.free(room, 5) == 0


async def test_nothing_new_is_not_counted_and_a_small_cap_always_is() -> None:
    rows, room = Rows(2), Room()
    assert await rows.free(room, 0) == 0
    assert rows.counts == 0
    assert [await rows.free(room, 1, cap=3) for _ in range(3)] == [1, 0, 0]
    assert rows.counts == 3
