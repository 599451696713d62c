"""When a user's rows of a graph are counted, and when what was counted is still good."""

from typing import Any, cast

from pymongo.asynchronous.client_session import AsyncClientSession

from rayapp.storage.mongo.database import Collection
from rayapp.storage.mongo.graph_settlement import SPARE, Room
from rayapp.storage.mongo.indexes import EDGES

CAP = 20 * SPARE
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

    async def free(self, room: Room, new: int, cap: int = CAP) -> int:
        """What is free before `new` rows are added, as a settlement adds them."""
        free = await room.free(cast(Collection, self), DANA, cap, set(range(new)), SESSION)
        self.held += min(free, new)
        return free


async def test_far_from_the_cap_one_count_serves_many_items() -> None:
    rows, room = Rows(0), Room()
    assert [await rows.free(room, 10) for _ in range(50)] == [CAP - 10 * n for n in range(50)]
    assert rows.counts == 1


async def test_close_to_the_cap_each_item_counts_and_none_passes_it() -> None:
    rows, room = Rows(CAP - SPARE + 1), Room()
    while rows.held < CAP:
        counts = rows.counts
        await rows.free(room, 300)
        assert rows.counts == counts + 1
    assert rows.held == CAP


async def test_a_full_user_is_not_counted_for_every_item_until_rows_go() -> None:
    rows, room = Rows(CAP), Room()
    assert [await rows.free(room, 5) for _ in range(9)] == [0] * 9
    assert rows.counts == 1
    rows.held -= 3
    room.forget("dana")
    assert await rows.free(room, 5) == 3


async def test_nothing_new_is_not_counted_and_a_small_cap_always_is() -> None:
    rows, room = Rows(2), Room()
    assert await rows.free(room, 0) == 0
    assert rows.counts == 0
    assert [await rows.free(room, 1, cap=3) for _ in range(3)] == [1, 0, 0]
    assert rows.counts == 3
