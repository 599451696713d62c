"""What every `ItemScan` must do.

Subclass the contract and give a `rig` fixture of empty stores.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rayapp.bulk.model import point_ranges
from rayapp.core.errors import InvalidInput
from rayapp.core.vectors import IndexSchema
from rayapp.index.ports import ItemScan, Requeue
from rayapp.memory.item import IndexOp, IndexState, MemoryItem, Status, SyncState
from rayapp.memory.ports import IndexResult, MemoryStore
from tests.support.builders import STORED_AT, an_item
from tests.support.store_contract import edited

SCHEMA = IndexSchema(model="model-1", dims=3, analyser="a1")
SYNCED = IndexState(sync_state=SyncState.SYNCED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRig:
    """The scan, the store that it looks into, and time."""

    scan: ItemScan
    memories: MemoryStore
    elapse: Callable[[float], Awaitable[None]]


def indexed(minutes: float, **changes: Any) -> MemoryItem:
    """A synced item whose index write ended that long after `STORED_AT`."""
    at = STORED_AT + timedelta(minutes=minutes)
    state = replace(changes.pop("index", SYNCED), indexed_at=at)
    return an_item(index=state, **changes)


async def everything(scan: ItemScan, limit: int, **bounds: Any) -> list[list[MemoryItem]]:
    """All pages of a range."""
    after, pages = bounds.get("after"), []
    while True:
        items, last = await scan.page(after=after, until=bounds.get("until"), limit=limit)
        pages.append(items)
        if last is None:
            return pages
        assert after is None or last > after
        after = last


async def the_item(scan: ItemScan, item: MemoryItem) -> MemoryItem:
    (found,) = await scan.by_points([item.point_id])
    return found


async def filled(rig: ScanRig, *items: MemoryItem) -> list[MemoryItem]:
    results = await rig.memories.insert_many(items)
    assert all(result.inserted for result in results)
    return sorted(items, key=lambda item: item.point_id)


def points(items: list[MemoryItem]) -> list[str]:
    return [item.point_id for item in items]


class ItemScanContract:
    async def test_pages_give_the_items_of_all_users_in_point_order(self, rig: ScanRig) -> None:
        items = await filled(
            rig, *(an_item(user_id=f"u-{n}", status=status) for n in range(4) for status in Status)
        )
        pages = await everything(rig.scan, 5)
        assert [len(page) for page in pages] == [5, 5, 2]
        assert [p for page in pages for p in points(page)] == points(items)

    async def test_a_page_that_ends_a_range_says_so(self, rig: ScanRig) -> None:
        items = await filled(rig, *(an_item() for _ in range(4)))
        found, last = await rig.scan.page(after=None, until=None, limit=4)
        assert (points(found), last) == (points(items), None)
        found, last = await rig.scan.page(after=items[3].point_id, until=None, limit=4)
        assert (found, last) == ([], None)

    async def test_a_range_starts_after_one_point_and_holds_the_other(self, rig: ScanRig) -> None:
        items = await filled(rig, *(an_item() for _ in range(5)))
        first, third = items[0].point_id, items[2].point_id
        found, last = await rig.scan.page(after=first, until=third, limit=9)
        assert (points(found), last) == (points(items[1:3]), None)

    async def test_ranges_cover_every_item_once(self, rig: ScanRig) -> None:
        items = await filled(rig, *(an_item() for _ in range(40)))
        found = [
            point
            for after, until in point_ranges(7)
            for page in await everything(rig.scan, 3, after=after, until=until)
            for point in points(page)
        ]
        assert found == points(items)

    async def test_a_page_holds_at_least_one_item(self, rig: ScanRig) -> None:
        with pytest.raises(InvalidInput):
            await rig.scan.page(after=None, until=None, limit=0)

    async def test_items_are_found_by_their_points(self, rig: ScanRig) -> None:
        items = [an_item(user_id=f"u-{n}", status=status) for n, status in enumerate(Status)]
        await filled(rig, *items, an_item())
        found = await rig.scan.by_points([*points(items), "00000000-0000-0000-0000-000000000000"])
        assert {item.point_id for item in found} == set(points(items))
        assert await rig.scan.by_points([]) == []
        states = {state.point_id: state for state in await rig.scan.states(points(items))}
        assert len(states) == len(items)
        for item in items:
            state = states[item.point_id]
            assert (state.status, state.content_hash) == (item.status, item.content_hash)
            assert (state.sync_state, state.rev) == (item.index.sync_state, item.index.rev)
        assert await rig.scan.states([]) == []

    async def test_it_is_known_which_points_have_rows(self, rig: ScanRig) -> None:
        items = [an_item(user_id=f"u-{n}", status=status) for n, status in enumerate(Status)]
        await filled(rig, *items, an_item())
        asked = [*points(items), "00000000-0000-0000-0000-000000000000"]
        assert await rig.scan.existing(asked) == set(points(items))
        assert await rig.scan.existing([]) == set()

    async def test_indexed_items_come_in_the_order_of_their_writes(self, rig: ScanRig) -> None:
        early, at_once = indexed(0), [indexed(5, user_id=f"u-{n}") for n in range(5)]
        late = indexed(9)
        await filled(rig, late, early, *at_once)
        at_once.sort(key=lambda item: item.point_id)
        since = STORED_AT + timedelta(minutes=5)
        wanted = points([*at_once, late])
        found: list[str] = []
        after: tuple[datetime, str] | None = None
        while page := await rig.scan.indexed_since(since, after, 2):
            assert len(page) == 2
            found += points(page)
            ended = page[-1].index.indexed_at
            assert ended is not None
            after = (ended, page[-1].point_id)
        assert found == wanted
        assert await rig.scan.indexed_since(since, None, 0) == []

    async def test_only_active_indexed_items_count_as_indexed(self, rig: ScanRig) -> None:
        pending = indexed(2, index=IndexState())
        await filled(
            rig,
            pending,
            indexed(2, status=Status.ARCHIVED),
            indexed(2, status=Status.DELETED),
            an_item(),
        )
        found = await rig.scan.indexed_since(STORED_AT, None, 9)
        assert points(found) == points([pending])

    async def test_the_total_is_what_the_index_should_hold(self, rig: ScanRig) -> None:
        assert await rig.scan.total() == 0
        await filled(
            rig,
            *(
                an_item(user_id=f"u-{n}", status=status, index=IndexState(sync_state=state))
                for n in range(2)
                for status in Status
                for state in SyncState
            ),
        )
        assert await rig.scan.total() == 4

    async def test_what_an_indexer_holds_is_in_flight(self, rig: ScanRig) -> None:
        later = IndexState(next_attempt_at=STORED_AT + timedelta(days=36_500))
        await filled(rig, *(an_item() for _ in range(3)), an_item(index=later))
        assert await rig.scan.in_flight() == 0
        held = await rig.memories.claim(token="a", limit=1, claim_s=60)
        await rig.memories.claim(token="b", limit=1, claim_s=0.05)
        await rig.elapse(0.1)
        assert await rig.scan.in_flight() == 1
        done = IndexResult(
            user_id=held[0].user_id, point_id=held[0].point_id, rev=1, op=IndexOp.VECTOR
        )
        await rig.memories.finish("a", [done], SCHEMA)
        assert await rig.scan.in_flight() == 0

    @pytest.mark.parametrize("op", list(IndexOp))
    async def test_a_synced_item_is_queued_again(self, rig: ScanRig, op: IndexOp) -> None:
        item = indexed(0, index=replace(SYNCED, rev=4, model="m", dims=3, vector_hash="h"))
        await filled(rig, item)
        assert await rig.scan.requeue([_asked(item, op)]) == 1
        after = (await the_item(rig.scan, item)).index
        assert after.next_attempt_at is not None
        assert replace(after, next_attempt_at=None) == replace(
            item.index, op=op, rev=5, sync_state=SyncState.PENDING
        )
        assert (await rig.memories.backlog()).pending == 1
        (claimed,) = await rig.memories.claim(token="t", limit=5, claim_s=60)
        assert (claimed.point_id, claimed.index.op) == (item.point_id, op)

    async def test_waiting_starts_when_it_is_asked(self, rig: ScanRig) -> None:
        item = indexed(0)
        await filled(rig, item)
        await rig.elapse(0.2)
        asked_at = await rig.scan.now()
        await rig.scan.requeue([_asked(item, IndexOp.VECTOR)])
        waits_s = (await rig.memories.backlog()).oldest_pending_s
        # However long the calls took: the time before it was asked does not count.
        assert waits_s <= (await rig.scan.now() - asked_at).total_seconds()

    @pytest.mark.parametrize("status", [Status.ARCHIVED, Status.DELETED])
    async def test_a_point_of_an_inactive_item_is_deleted_again(
        self, rig: ScanRig, status: Status
    ) -> None:
        item = indexed(0, status=status, index=replace(SYNCED, op=IndexOp.DELETE))
        await filled(rig, item)
        assert await rig.scan.requeue([_asked(item, IndexOp.DELETE)]) == 1
        assert (await the_item(rig.scan, item)).index.op is IndexOp.DELETE

    async def test_a_payload_cannot_follow_a_delete(self, rig: ScanRig) -> None:
        item = indexed(0, index=replace(SYNCED, op=IndexOp.DELETE))
        await filled(rig, item)
        assert await rig.scan.requeue([_asked(item, IndexOp.PAYLOAD)]) == 1
        assert (await the_item(rig.scan, item)).index.op is IndexOp.VECTOR

    async def test_what_changed_meanwhile_or_waits_is_left(self, rig: ScanRig) -> None:
        changed, synced = indexed(0, memory_id="changed"), indexed(0)
        pending, failed = an_item(), an_item(index=IndexState(sync_state=SyncState.FAILED))
        await filled(rig, changed, synced, pending, failed)
        stored = await the_item(rig.scan, changed)
        await edited(rig.memories, stored, summary="new", index=IndexState())
        others = (changed, pending, failed)
        before = [await the_item(rig.scan, item) for item in others]
        wanted = [_asked(item, IndexOp.VECTOR) for item in (*others, synced, synced)]
        assert await rig.scan.requeue(wanted) == 1
        assert [await the_item(rig.scan, item) for item in others] == before
        assert await rig.scan.requeue([]) == 0

    async def test_what_was_indexed_since_a_moment_is_queued_again(self, rig: ScanRig) -> None:
        again = [
            indexed(5, index=IndexState(sync_state=state, op=IndexOp.PAYLOAD))
            for state in SyncState
        ]
        others = [
            indexed(4),
            indexed(9, status=Status.ARCHIVED, index=replace(SYNCED, op=IndexOp.DELETE)),
        ]
        await filled(rig, *again, *others)
        assert await rig.scan.requeue_indexed_since(STORED_AT + timedelta(minutes=5)) == 3
        for item in again:
            state = (await the_item(rig.scan, item)).index
            assert (state.sync_state, state.op, state.rev) == (SyncState.PENDING, IndexOp.VECTOR, 2)
        for item in others:
            assert (await the_item(rig.scan, item)).index == item.index

    async def test_its_clock_is_the_one_of_the_index_writes(self, rig: ScanRig) -> None:
        await filled(rig, an_item())
        before = await rig.scan.now()
        assert before.utcoffset() == timedelta(0)
        await rig.elapse(0.005)
        (item,) = await rig.memories.claim(token="t", limit=1, claim_s=60)
        done = IndexResult(user_id=item.user_id, point_id=item.point_id, rev=1, op=IndexOp.VECTOR)
        await rig.memories.finish("t", [done], SCHEMA)
        await rig.elapse(0.005)
        ended = (await the_item(rig.scan, item)).index.indexed_at
        assert ended is not None
        assert before < ended < await rig.scan.now()
        assert len(await rig.scan.indexed_since(before, None, 5)) == 1


def _asked(item: MemoryItem, op: IndexOp) -> Requeue:
    return Requeue(point_id=item.point_id, rev=item.index.rev, op=op)
