"""The index queue of every `MemoryStore`: claim, finish, back-off, backlog."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.core.vectors import IndexSchema
from rayapp.memory.item import IndexOp, IndexState, MemoryItem, Status, SyncState
from rayapp.memory.ports import IndexResult
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope
from tests.support.builders import STORED_AT, an_item
from tests.support.store_contract import DANA, Stores, edited, stored

SCHEMA = IndexSchema(model="model-1", dims=3, analyser="a1")
FAR = timedelta(days=36_500)


def result_of(item: MemoryItem, **changes: Any) -> IndexResult:
    done = IndexResult(
        user_id=item.user_id, point_id=item.point_id, rev=item.index.rev, op=item.index.op
    )
    return replace(done, **changes)


class QueueContract:
    async def test_a_claimed_item_is_not_given_twice(self, stores: Stores) -> None:
        await stores.memories.insert_many([an_item() for _ in range(5)])
        first = await stores.memories.claim(token="a", limit=3, claim_s=60)
        second = await stores.memories.claim(token="b", limit=3, claim_s=60)
        third = await stores.memories.claim(token="c", limit=3, claim_s=60)
        assert [len(first), len(second), len(third)] == [3, 2, 0]
        assert not {i.memory_id for i in first} & {i.memory_id for i in second}
        assert {item.index.claim for item in first} == {"a"}
        assert await stores.memories.claim(token="d", limit=0, claim_s=60) == []

    async def test_claims_at_once_do_not_overlap(self, stores: Stores) -> None:
        await stores.memories.insert_many([an_item() for _ in range(100)])
        batches = await asyncio.gather(
            *(stores.memories.claim(token=f"t{n}", limit=30, claim_s=60) for n in range(4))
        )
        points = [item.point_id for batch in batches for item in batch]
        assert points
        assert len(points) == len(set(points))

    async def test_an_expired_claim_is_taken_over_and_loses(self, stores: Stores) -> None:
        await stores.memories.insert(an_item())
        (late,) = await stores.memories.claim(token="a", limit=1, claim_s=0.05)
        await stores.elapse(0.1)
        (item,) = await stores.memories.claim(token="b", limit=1, claim_s=60)
        assert await stores.memories.finish("a", [result_of(late)], SCHEMA) == 0
        assert await stores.memories.finish("b", [result_of(item)], SCHEMA) == 1

    async def test_a_bulk_import_does_not_starve_other_users(self, stores: Stores) -> None:
        await stores.memories.insert_many(
            [an_item(user_id="bulk", memory_id=f"b-{n}") for n in range(300)]
        )
        for user in ("amit", "zohar"):
            late = STORED_AT + timedelta(hours=1)
            await stores.memories.insert(an_item(user_id=user, stored_at=late))
        claimed = await stores.memories.claim(token="t", limit=10, claim_s=60)
        assert {"amit", "zohar"} <= {item.user_id for item in claimed}
        assert len(claimed) == 10

    async def test_users_take_turns_when_there_are_more_than_places(self, stores: Stores) -> None:
        users = [f"u-{n:02}" for n in range(50)]
        await stores.memories.insert_many(
            [an_item(user_id=user, memory_id=f"m-{n}") for user in users for n in range(3)]
        )
        seen: set[str] = set()
        for turn in range(5):
            claimed = await stores.memories.claim(token=f"t{turn}", limit=10, claim_s=60)
            seen |= {item.user_id for item in claimed}
        assert seen == set(users)

    async def test_newest_and_oldest_of_a_user_come_first(self, stores: Stores) -> None:
        for n in range(20):
            at = STORED_AT + timedelta(minutes=n)
            await stores.memories.insert(an_item(memory_id=f"m-{n}", stored_at=at))
        claimed = await stores.memories.claim(token="t", limit=4, claim_s=60)
        assert {item.memory_id for item in claimed} == {"m-19", "m-18", "m-0", "m-1"}

    async def test_claims_drain_everything(self, stores: Stores) -> None:
        users = [f"u-{n}" for n in range(40)]
        await stores.memories.insert_many(
            [an_item(user_id=user, memory_id=f"m-{n}") for user in users for n in range(4)]
        )
        turns = 0
        while claimed := await stores.memories.claim(token=f"t{turns}", limit=16, claim_s=60):
            done = [result_of(item) for item in claimed]
            assert await stores.memories.finish(f"t{turns}", done, SCHEMA) == len(claimed)
            turns += 1
        assert turns == 10
        assert (await stores.memories.backlog()).synced == 160

    async def test_success_records_what_was_written(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        done = result_of(item, vector_hash="$h")
        assert await stores.memories.finish("t", [done], SCHEMA) == 1
        after = await stores.memories.get(DANA, "x")
        assert after is not None
        assert after.index.indexed_at is not None
        assert replace(after.index, indexed_at=None) == IndexState(
            rev=item.index.rev,
            sync_state=SyncState.SYNCED,
            model="model-1",
            dims=3,
            analyser="a1",
            vector_hash="$h",
        )
        assert after.version == item.version

    @pytest.mark.parametrize("error", [None, "$no model"])
    async def test_a_prefix_is_kept_whatever_came_of_the_try(
        self, stores: Stores, error: str | None
    ) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        done = result_of(item, context_prefix="$על ספינות", error=error)
        assert await stores.memories.finish("t", [done], SCHEMA) == 1
        after = await stores.memories.get(DANA, "x")
        assert after is not None
        assert (after.context_prefix, after.version) == ("$על ספינות", item.version)
        await stores.memories.mark_all_pending()
        await stores.elapse(1)
        (again,) = await stores.memories.claim(token="u", limit=1, claim_s=60)
        assert again.context_prefix == "$על ספינות"
        await stores.memories.finish("u", [result_of(again)], SCHEMA)
        after = await stores.memories.get(DANA, "x")
        assert after is not None
        assert after.context_prefix == "$על ספינות"

    async def test_a_prefix_of_an_older_text_is_not_kept(self, stores: Stores) -> None:
        first = await stored(stores.memories, an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        asked = replace(first.index, rev=first.index.rev + 1)
        await edited(stores.memories, first, text="new", content_hash="n", index=asked)
        done = result_of(item, context_prefix="About the old text.")
        assert await stores.memories.finish("t", [done], SCHEMA) == 0
        after = await stores.memories.get(DANA, "x")
        assert after is not None
        assert after.context_prefix == ""

    async def test_an_edit_keeps_the_prefix_of_a_text_and_drops_that_of_another(
        self, stores: Stores
    ) -> None:
        read = await stored(stores.memories, an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        await stores.memories.finish("t", [result_of(item, context_prefix="Ships.")], SCHEMA)
        # The editor had read the item before its prefix came.
        tagged = await edited(stores.memories, read, tags=("new",))
        assert tagged.context_prefix == "Ships."
        after = await edited(stores.memories, tagged, text="other", content_hash="o")
        assert after.context_prefix == ""
        assert await stores.memories.get(DANA, "x") == after

    async def test_a_payload_write_keeps_the_vector_facts(self, stores: Stores) -> None:
        state = IndexState(op=IndexOp.PAYLOAD, model="old", dims=9, vector_hash="v")
        await stores.memories.insert(an_item(memory_id="x", index=state))
        (item,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        await stores.memories.finish("t", [result_of(item)], SCHEMA)
        after = await stores.memories.get(DANA, "x")
        assert after is not None
        assert (after.index.model, after.index.dims, after.index.vector_hash) == ("old", 9, "v")

    async def test_failure_backs_off_then_fails(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="a", limit=1, claim_s=60)
        later = STORED_AT + FAR
        error = result_of(item, error="$no model", next_attempt_at=later)
        assert await stores.memories.finish("a", [error], SCHEMA) == 1
        state = (await stores.memories.pending(DANA, ItemFilter(), 1))[0].index
        assert (state.attempts, state.last_error, state.next_attempt_at) == (1, "$no model", later)
        assert await stores.memories.claim(token="b", limit=1, claim_s=60) == []

    async def test_a_failed_item_is_counted_and_left_alone(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="a", limit=1, claim_s=60)
        await stores.memories.finish("a", [result_of(item, error="e", failed=True)], SCHEMA)
        backlog = await stores.memories.backlog()
        assert (backlog.pending, backlog.failed, backlog.oldest_pending_s) == (0, 1, 0.0)
        assert await stores.memories.claim(token="b", limit=1, claim_s=60) == []
        # A rebuild does not wait for what gave up by its own fault.
        assert await stores.memories.mark_all_pending() == 0
        assert await stores.memories.retry_failed() == 1
        assert len(await stores.memories.claim(token="b", limit=1, claim_s=60)) == 1

    async def test_a_try_that_is_not_blamed_does_not_count(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        for blamed, attempts in ((False, 0), (True, 1)):
            (item,) = await stores.memories.claim(token="a", limit=1, claim_s=60)
            result = result_of(item, error="e", blamed=blamed, next_attempt_at=item.stored_at)
            assert await stores.memories.finish("a", [result], SCHEMA) == 1
            (after,) = await stores.memories.pending(DANA, ItemFilter(), 5)
            assert after.index.attempts == attempts
            backlog = await stores.memories.backlog()
            assert (backlog.oldest_untried_s is None) == (attempts == 1)

    async def test_pending_may_include_what_gave_up(self, stores: Stores) -> None:
        failed = IndexState(sync_state=SyncState.FAILED)
        await stores.memories.insert_many(
            [an_item(memory_id="f", index=failed), an_item(memory_id="p")]
        )
        found = await stores.memories.pending(DANA, ItemFilter(), 5)
        assert [item.memory_id for item in found] == ["p"]
        found = await stores.memories.pending(DANA, ItemFilter(), 5, with_failed=True)
        assert {item.memory_id for item in found} == {"p", "f"}

    async def test_an_item_that_changed_meanwhile_is_due_at_once(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="a", limit=1, claim_s=60)
        await edited(stores.memories, item, summary="new")
        assert await stores.memories.finish("a", [result_of(item)], SCHEMA) == 0
        (again,) = await stores.memories.claim(token="b", limit=1, claim_s=60)
        assert again.index.rev == item.index.rev + 1

    async def test_an_item_marked_pending_meanwhile_is_due_at_once(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="a", limit=1, claim_s=60)
        assert await stores.memories.mark_all_pending() == 1
        assert await stores.memories.finish("a", [result_of(item)], SCHEMA) == 0
        assert len(await stores.memories.claim(token="b", limit=1, claim_s=60)) == 1

    async def test_a_finished_delete_removes_the_tombstone(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item(memory_id="x"))
        gone = replace(item.index, op=IndexOp.DELETE)
        await edited(stores.memories, item, status=Status.DELETED, index=gone)
        (claimed,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        assert claimed.index.op is IndexOp.DELETE
        assert await stores.memories.finish("t", [result_of(claimed)], SCHEMA) == 1
        everything = ItemFilter(statuses=tuple(Status))
        assert not (await stores.memories.page(DANA, everything, ItemQuery(limit=1))).items

    async def test_what_was_deleted_stays_counted(self, stores: Stores) -> None:
        for name in ("x", "y"):
            item = await stored(stores.memories, an_item(memory_id=name))
            gone = replace(item.index, op=IndexOp.DELETE)
            await edited(stores.memories, item, status=Status.DELETED, index=gone)
        for claimed in await stores.memories.claim(token="t", limit=2, claim_s=60):
            await stores.memories.finish("t", [result_of(claimed)], SCHEMA)
        (count,) = await stores.memories.tier_counts(DANA)
        assert (count.tier, count.active, count.deleted) == (item.tier, 0, 2)
        assert await stores.memories.tier_counts(ReadScope("noa", include_shared=False)) == []
        assert [one.deleted for one in await stores.memories.tier_counts(None)] == [2]

    async def test_a_finished_delete_keeps_an_archived_row(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item(memory_id="x"))
        off = replace(item.index, op=IndexOp.DELETE)
        await edited(stores.memories, item, status=Status.ARCHIVED, index=off)
        (claimed,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        assert await stores.memories.finish("t", [result_of(claimed)], SCHEMA) == 1
        after = await stores.memories.get(DANA, "x")
        assert after is not None
        assert after.index.sync_state is SyncState.SYNCED

    async def test_backlog_counts_and_ages(self, stores: Stores) -> None:
        await stores.memories.insert_many([an_item() for _ in range(3)])
        (item,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        before = await stores.memories.backlog()
        assert (before.pending, before.synced, before.failed) == (3, 0, 0)
        assert before.oldest_pending_s > 0
        await stores.memories.finish("t", [result_of(item)], SCHEMA)
        after = await stores.memories.backlog()
        assert (after.pending, after.synced) == (2, 1)
        assert await stores.memories.finish("t", [], SCHEMA) == 0

    async def test_failed_items_are_listed_and_tried_again(self, stores: Stores) -> None:
        failed = IndexState(sync_state=SyncState.FAILED, attempts=20, last_error="bad_vector")
        await stores.memories.insert_many(
            [an_item(memory_id="f", index=failed), an_item(memory_id="ok")]
        )
        assert [item.memory_id for item in await stores.memories.failures(5)] == ["f"]
        assert await stores.memories.failures(0) == []
        assert await stores.memories.retry_failed() == 1
        assert await stores.memories.failures(5) == []
        claimed = await stores.memories.claim(token="t", limit=5, claim_s=60)
        again = next(item for item in claimed if item.memory_id == "f")
        assert (again.index.attempts, again.index.last_error) == (0, None)
        assert await stores.memories.retry_failed() == 0

    async def test_failed_items_of_one_user_are_tried_again(self, stores: Stores) -> None:
        failed = IndexState(sync_state=SyncState.FAILED)
        await stores.memories.insert_many(
            [an_item(memory_id="f", user_id=user, index=failed) for user in ("dana", "amit")]
        )
        assert await stores.memories.retry_failed("dana") == 1
        assert [item.user_id for item in await stores.memories.failures(5)] == ["amit"]

    async def test_failures_of_one_user_are_not_hidden_by_those_of_others(
        self, stores: Stores
    ) -> None:
        failed = IndexState(sync_state=SyncState.FAILED)
        users = ["amit"] * 3 + ["dana"]
        await stores.memories.insert_many([an_item(user_id=user, index=failed) for user in users])
        found = await stores.memories.failures(2, "dana")
        assert [item.user_id for item in found] == ["dana"]
        assert len(await stores.memories.failures(2, "amit")) == 2
        assert await stores.memories.failures(2, "noa") == []
        with pytest.raises(InvalidInput):
            await stores.memories.failures(2, "no such user!")

    async def test_what_waits_since_a_time_is_counted_apart(self, stores: Stores) -> None:
        second = timedelta(seconds=1)
        for n, user in ((0, "dana"), (1, "dana"), (2, "amit")):
            await stores.memories.insert(an_item(user_id=user, stored_at=STORED_AT + n * second))
        gone = IndexState(sync_state=SyncState.FAILED)
        await stores.memories.insert(an_item(user_id="dana", index=gone))
        for at, mine, everyone in ((-1, 0, 0), (0, 1, 1), (1, 2, 2), (2, 2, 3)):
            since = STORED_AT + at * second
            assert await stores.memories.waiting_since("dana", since) == mine
            assert await stores.memories.waiting_since(None, since) == everyone
        (item, *_) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        await stores.memories.finish("t", [result_of(item)], SCHEMA)
        assert await stores.memories.waiting_since(None, STORED_AT + 2 * second) == 2

    async def test_hasten_makes_what_waits_due_now(self, stores: Stores) -> None:
        failed = IndexState(op=IndexOp.PAYLOAD, sync_state=SyncState.FAILED, attempts=20)
        later = IndexState(attempts=3, next_attempt_at=STORED_AT + FAR)
        synced = IndexState(sync_state=SyncState.SYNCED)
        await stores.memories.insert_many(
            [
                an_item(memory_id="f", index=failed),
                an_item(memory_id="later", index=later),
                an_item(memory_id="due"),
                an_item(memory_id="synced", index=synced),
                an_item(memory_id="other", user_id="amit", index=later),
            ]
        )
        assert await stores.memories.requeue("dana") == 2
        assert await stores.memories.requeue("dana") == 0
        claimed = await stores.memories.claim(token="t", limit=9, claim_s=60)
        found = {item.memory_id: item.index for item in claimed}
        assert set(found) == {"f", "later", "due"}
        # A retry is a new revision; waiting less changes nothing of what is to be written.
        assert (found["f"].op, found["f"].rev, found["f"].attempts) == (IndexOp.PAYLOAD, 2, 0)
        assert (found["later"].rev, found["later"].attempts) == (1, 3)
        assert await stores.memories.requeue(None) == 1

    async def test_hasten_leaves_what_is_claimed(self, stores: Stores) -> None:
        await stores.memories.insert(an_item())
        (item,) = await stores.memories.claim(token="t", limit=1, claim_s=60)
        assert await stores.memories.requeue("dana") == 0
        assert await stores.memories.claim(token="u", limit=1, claim_s=60) == []
        assert await stores.memories.finish("t", [result_of(item)], SCHEMA) == 1

    async def test_waiting_counts_what_the_index_owes(self, stores: Stores) -> None:
        states = [IndexState(sync_state=state) for state in SyncState]
        await stores.memories.insert_many([an_item(index=state) for state in states])
        await stores.memories.insert(an_item(user_id="amit"))
        assert await stores.memories.waiting("dana") == 2
        assert await stores.memories.waiting("noa") == 0
        assert await stores.memories.waiting(None) == 3
        with pytest.raises(InvalidInput):
            await stores.memories.waiting("no such user!")
        with pytest.raises(InvalidInput):
            await stores.memories.requeue("no such user!")

    async def test_mark_all_pending_skips_what_the_index_does_not_hold(
        self, stores: Stores
    ) -> None:
        synced = IndexState(sync_state=SyncState.SYNCED)
        await stores.memories.insert_many(
            [
                an_item(memory_id="a", index=synced),
                an_item(index=synced, status=Status.ARCHIVED),
                an_item(index=synced, status=Status.DELETED),
            ]
        )
        assert await stores.memories.mark_all_pending() == 1
        (item,) = await stores.memories.claim(token="t", limit=5, claim_s=60)
        assert (item.memory_id, item.index.op, item.index.rev) == ("a", IndexOp.VECTOR, 2)

    async def test_what_was_restored_is_written_above_any_rev_of_the_index(
        self, stores: Stores
    ) -> None:
        """Archived items and tombstones too: the index may hold a point of a later life."""
        old = IndexState(sync_state=SyncState.SYNCED, rev=4)
        ahead = IndexState(sync_state=SyncState.SYNCED, rev=1 << 60)
        failed = IndexState(sync_state=SyncState.FAILED, op=IndexOp.PAYLOAD, attempts=8)
        await stores.memories.insert_many(
            [
                an_item(memory_id="a", index=old),
                an_item(memory_id="ahead", index=ahead),
                an_item(memory_id="failed", index=failed),
                an_item(memory_id="put away", index=old, status=Status.ARCHIVED),
                an_item(memory_id="gone", index=old, status=Status.DELETED),
            ]
        )
        assert await stores.memories.mark_restored() == 5
        claimed = await stores.memories.claim(token="t", limit=9, claim_s=60)
        ops = {item.memory_id: item.index.op for item in claimed}
        assert ops == {
            **dict.fromkeys(("a", "ahead", "failed"), IndexOp.VECTOR),
            **dict.fromkeys(("put away", "gone"), IndexOp.DELETE),
        }
        revs = {item.memory_id: item.index.rev for item in claimed}
        assert revs.pop("ahead") == (1 << 60) + 1
        assert all(rev > 1_700_000_000_000 for rev in revs.values())
        done = [result_of(item) for item in claimed]
        assert await stores.memories.finish("t", done, SCHEMA) == 5
        item = next(one for one in claimed if one.memory_id == "a")
        again = await edited(stores.memories, item, index=replace(item.index, rev=1))
        assert again.index.rev == revs["a"] + 1
