"""What every `LifecycleStore` must do.

Subclass the contracts and give a `world` fixture of empty stores.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayapp.bulk.ports import LeaseStore
from rayapp.core.errors import Conflict, DuplicateMemory, NotFound, VersionConflict
from rayapp.core.vectors import IndexSchema
from rayapp.learning.ports import LifecycleStore, Walk
from rayapp.learning.records import Move
from rayapp.learning.rules.dedup import merge_moves
from rayapp.learning.rules.promotion import Decision, apply_move, decide, transition_id
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, Source, Stats, Status, SyncState
from rayapp.memory.ports import Event, EventStore, IndexResult, MemoryStore
from rayapp.memory.rules import creation
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.support.examples import examples
from tests.support.store_contract import edited, ids, stored
from tests.support.stores.lifecycle import EVERY_POLICY

NOW = STORED_AT + timedelta(days=8)
DANA = ReadScope("dana")
PROMOTE = Decision(action="promote", to=Tier.HISTORY, reason="score 0.9", rule="promote_working")
GOOD = Stats(uses=3, success_count=2.5, score=0.9, tier_uses=3, tier_success=2.5)
HOUR = timedelta(hours=1)
SCHEMA = IndexSchema(model="model-1", dims=3, analyser="a1")


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleWorld:
    """One implementation of the stores that a transition touches."""

    items: MemoryStore
    lifecycle: LifecycleStore
    events: EventStore
    leases: LeaseStore


def a_promotion(item: MemoryItem) -> Move:
    return Move(
        item=apply_move(item, PROMOTE, NOW),
        expected_version=item.version,
        row=replaced_state(item, ChangeType.PROMOTE, PROMOTE.reason, NOW),
    )


def an_event(item: MemoryItem, kind: str = "promoted") -> Event:
    return Event(
        event_id=transition_id(item, kind),
        user_id=item.user_id,
        kind=kind,
        at=NOW,
        memory_id=item.memory_id,
        data={"from": item.tier.value, "to": "history"},
    )


async def promoted(world: LifecycleWorld, item: MemoryItem, **options: Any) -> list[MemoryItem]:
    return await world.lifecycle.transition([a_promotion(item)], [an_event(item)], **options)


async def read(world: LifecycleWorld, memory_id: str, user: str = "dana") -> MemoryItem:
    found = await world.items.get(ReadScope(user), memory_id)
    assert found is not None
    return found


async def erased(world: LifecycleWorld, item: MemoryItem) -> None:
    """Delete `item` until nothing is left of it: the index is done with it too."""
    row = replaced_state(item, ChangeType.UPDATE, None, NOW)
    gone = creation.deleted(item, NOW)
    await world.items.replace(gone, expected_version=item.version, row=row)
    due = await world.items.claim(token="eraser", limit=50, claim_s=60)
    (last,) = [one for one in due if one.point_id == item.point_id]
    done = IndexResult(
        user_id=last.user_id, point_id=last.point_id, rev=last.index.rev, op=IndexOp.DELETE
    )
    assert await world.items.finish("eraser", [done], SCHEMA) == 1


class TransitionContract:
    async def test_item_version_row_and_event_change_together(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD, text="שלום"))
        (new,) = await promoted(world, item)
        assert new == await read(world, item.memory_id)
        assert (new.tier, new.version, new.tier_entered_at) == (Tier.HISTORY, 2, NOW)
        assert new.expires_at == NOW + timedelta(days=30)
        assert (new.stats.tier_uses, new.stats.tier_success) == (0, 0.0)
        assert (new.stats.uses, new.stats.success_count) == (3, 2.5)
        (row,) = await world.items.versions(DANA, item.memory_id, 5)
        assert (row.change_type, row.reason, row.stats) == (ChangeType.PROMOTE, "score 0.9", GOOD)
        assert await world.events.recent(DANA, None, 5) == [an_event(item)]

    async def test_the_index_is_asked_to_follow(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        (new,) = await promoted(world, item)
        assert (new.index.sync_state, new.index.next_attempt_at) == (SyncState.PENDING, NOW)
        assert new.index.rev > item.index.rev
        (due,) = await world.items.claim(token="t", limit=5, claim_s=60)
        assert due.index.op is IndexOp.VECTOR  # its first vector is not written yet

    async def test_a_repeated_transition_is_recognised(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        first = await promoted(world, item)
        assert await promoted(world, item) == first
        assert len(await world.items.versions(DANA, item.memory_id, 5)) == 1
        assert len(await world.events.recent(DANA, None, 5)) == 1

    async def test_an_id_that_is_stored_again_is_moved_again(self, world: LifecycleWorld) -> None:
        for day in range(3):
            at = STORED_AT + day * HOUR
            item = await stored(world.items, an_item(memory_id="daily", stats=GOOD, stored_at=at))
            assert item.version == 1
            (new,) = await promoted(world, item)
            assert (new.tier, new.version) == (Tier.HISTORY, 2)
            assert new == await read(world, "daily")
            assert len(await world.events.recent(DANA, None, 5)) == day + 1
            await erased(world, new)

    async def test_what_was_decided_on_a_deleted_item_is_not_done_to_its_successor(
        self, world: LifecycleWorld
    ) -> None:
        old = await stored(world.items, an_item(memory_id="daily", stats=GOOD))
        await erased(world, old)
        again = an_item(memory_id="daily", stats=GOOD, stored_at=STORED_AT + HOUR)
        new = await stored(world.items, again)
        with pytest.raises(VersionConflict):
            await promoted(world, old)
        assert await read(world, "daily") == new

    async def test_events_alone_are_no_sign_that_the_items_moved(
        self, world: LifecycleWorld
    ) -> None:
        item = await stored(world.items, an_item(stats=replace(GOOD, uses=4)))
        await world.events.add(an_event(item))
        with pytest.raises(VersionConflict):
            await promoted(world, replace(item, stats=GOOD))
        assert await read(world, item.memory_id) == item

    async def test_of_ten_at_once_one_moves_and_the_others_see_it(
        self, world: LifecycleWorld
    ) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        found = await asyncio.gather(*(promoted(world, item) for _ in range(10)))
        assert {new.version for (new,) in found} == {2}
        assert len(await world.items.versions(DANA, item.memory_id, 50)) == 1
        assert len(await world.events.recent(DANA, None, 50)) == 1

    async def test_a_newer_version_is_left_alone(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        newer = await edited(world.items, item, summary="s")
        with pytest.raises(VersionConflict):
            await promoted(world, item)
        assert await read(world, item.memory_id) == newer
        assert await world.events.recent(DANA, None, 5) == []

    async def test_an_outcome_between_decision_and_move_asks_for_another_decision(
        self, world: LifecycleWorld
    ) -> None:
        item = await stored(world.items, an_item(stats=replace(GOOD, uses=4, score=0.6)))
        seen_before = replace(item, stats=GOOD)
        with pytest.raises(VersionConflict):
            await promoted(world, seen_before)
        assert await read(world, item.memory_id) == item

    async def test_a_mention_meanwhile_is_kept(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        await world.items.mention(WriteScope("dana"), item.memory_id, NOW)
        (new,) = await promoted(world, item)
        assert new.quality.mentioned_count == 2

    async def test_a_deleted_item_is_not_found(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        await edited(world.items, item, status=Status.DELETED)
        with pytest.raises(NotFound):
            await promoted(world, item)

    async def test_an_equal_active_text_is_named_and_nothing_is_written(
        self, world: LifecycleWorld
    ) -> None:
        other = await stored(world.items, an_item(text="same", tier=Tier.HISTORY))
        item = await stored(world.items, an_item(text="same", stats=GOOD))
        with pytest.raises(DuplicateMemory) as caught:
            await promoted(world, item)
        assert caught.value.details == {"memory_id": other.memory_id}
        assert await read(world, item.memory_id) == item
        assert await world.events.recent(DANA, None, 5) == []
        assert await world.items.versions(DANA, item.memory_id, 5) == []

    async def test_one_bad_move_stops_all_of_its_transition(self, world: LifecycleWorld) -> None:
        good, bad = [await stored(world.items, an_item(stats=GOOD)) for _ in range(2)]
        stale = replace(a_promotion(bad), expected_version=7)
        with pytest.raises(VersionConflict):
            await world.lifecycle.transition([a_promotion(good), stale], [an_event(good)])
        assert await read(world, good.memory_id) == good
        assert await world.events.recent(DANA, None, 5) == []

    async def test_items_of_several_users_move_at_once(self, world: LifecycleWorld) -> None:
        items = [
            await stored(world.items, an_item(user_id=user, memory_id="x", stats=GOOD))
            for user in ("dana", "noa")
        ]
        new = await world.lifecycle.transition(
            [a_promotion(item) for item in items], [an_event(item) for item in items]
        )
        assert [item.user_id for item in new] == ["dana", "noa"]
        for user in ("dana", "noa"):
            assert len(await world.events.recent(ReadScope(user), None, 5)) == 1

    async def test_an_archived_item_waits_for_its_point_to_go(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item())
        gone = creation.archived(item, "expired", NOW)
        row = replaced_state(item, ChangeType.ARCHIVE, "expired", NOW)
        move = Move(item=gone, expected_version=1, row=row)
        (new,) = await world.lifecycle.transition([move], [an_event(item, "archived")])
        assert (new.status, new.archived_reason) == (Status.ARCHIVED, "expired")
        assert new.index.op is IndexOp.DELETE


class LeaseContract:
    async def test_the_holder_moves_items(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        lease = await world.leases.acquire("promotion", "a", 60)
        (new,) = await promoted(world, item, lease=lease)
        assert new.tier is Tier.HISTORY

    async def test_a_renewed_lease_is_the_same_one(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        lease = await world.leases.acquire("promotion", "a", 60)
        assert await world.leases.acquire("promotion", "a", 60) is not None
        assert len(await promoted(world, item, lease=lease)) == 1

    async def test_nothing_is_written_under_a_lost_lease(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        lease = await world.leases.acquire("promotion", "a", 60)
        assert lease is not None
        await world.leases.release(lease)
        assert await world.leases.acquire("promotion", "b", 60) is not None
        with pytest.raises(Conflict) as caught:
            await promoted(world, item, lease=lease)
        assert caught.value.code == "lease_lost"
        assert await read(world, item.memory_id) == item
        assert await world.events.recent(DANA, None, 5) == []

    async def test_an_unknown_lease_is_a_lost_one(self, world: LifecycleWorld) -> None:
        item = await stored(world.items, an_item(stats=GOOD))
        lease = await world.leases.acquire("promotion", "a", 60)
        assert lease is not None
        with pytest.raises(Conflict):
            await promoted(world, item, lease=replace(lease, name="other"))


class MergeContract:
    async def test_every_id_of_a_chain_leads_to_the_last_winner(
        self, world: LifecycleWorld
    ) -> None:
        for memory_id in ("a", "b", "c"):
            await stored(world.items, an_item(memory_id=memory_id, stats=GOOD))
        for winner_id, loser_id in (("b", "a"), ("c", "b")):
            winner, loser = await read(world, winner_id), await read(world, loser_id)
            moves = merge_moves(winner, loser, now=NOW, reason="same")
            await world.lifecycle.transition(moves, [an_event(loser, "merged")])
        for memory_id in ("a", "b", "c"):
            assert (await read(world, memory_id)).memory_id == "c"
        assert (await read(world, "c")).stats.uses == 9
        assert [row.change_type for row in await world.items.versions(DANA, "c", 5)] == [
            ChangeType.MERGE
        ]

    async def test_the_loser_gives_its_text_free_before_the_winner_takes_it(
        self, world: LifecycleWorld
    ) -> None:
        older = await stored(world.items, an_item(memory_id="a", text="אותו דבר", stats=GOOD))
        newer = await stored(
            world.items,
            an_item(memory_id="b", text="אותו דבר", tier=Tier.HISTORY, stored_at=STORED_AT + HOUR),
        )
        arrived = apply_move(older, PROMOTE, NOW)
        moves = merge_moves(arrived, newer, now=NOW, reason="r", read=older)
        loser, winner = await world.lifecycle.transition(moves, [an_event(newer, "merged")])
        assert (winner.memory_id, winner.tier, winner.status) == ("a", Tier.HISTORY, Status.ACTIVE)
        assert (loser.memory_id, loser.merged_into, loser.status) == ("b", "a", Status.ARCHIVED)
        assert await read(world, "b") == winner

    async def test_what_was_learned_meanwhile_is_not_lost(self, world: LifecycleWorld) -> None:
        winner = await stored(world.items, an_item(stats=GOOD))
        loser = await stored(world.items, an_item(stats=GOOD))
        moves = merge_moves(winner, loser, now=NOW, reason="same")
        await world.items.mention(WriteScope("dana"), loser.memory_id, NOW)
        with pytest.raises(VersionConflict):
            await world.lifecycle.transition(moves, [an_event(loser, "merged")])
        assert (await read(world, loser.memory_id)).memory_id == loser.memory_id

    async def test_ids_of_another_user_are_not_pointed_elsewhere(
        self, world: LifecycleWorld
    ) -> None:
        for user in ("dana", "noa"):
            for memory_id in ("a", "b", "c"):
                await stored(world.items, an_item(user_id=user, memory_id=memory_id))
            one, other = await read(world, "b", user), await read(world, "a", user)
            await world.lifecycle.transition(
                merge_moves(one, other, now=NOW, reason="r"), [an_event(other, "merged")]
            )
        one, other = await read(world, "c"), await read(world, "b")
        await world.lifecycle.transition(
            merge_moves(one, other, now=NOW, reason="r"), [an_event(other, "merged")]
        )
        assert (await read(world, "a")).memory_id == "c"
        assert (await read(world, "a", "noa")).memory_id == "b"


SCORES = st.sampled_from(
    [0.0, 0.0999, 0.1, 0.1999, 0.2, 0.2999, 0.3, 0.6999, 0.7, 0.8999, 0.9, 1.0]
)
JUDGED = st.builds(
    Stats,
    uses=st.integers(1, 4),
    score=SCORES,
    wilson_score=SCORES,
    tier_uses=st.integers(2, 4),
    tier_success=st.sampled_from([4.75, 5.0]),
)
ITEMS = st.builds(
    lambda tier, stats, age_h, expiry_h, status, user, instruction: an_item(
        user_id=user,
        instruction=instruction,
        tier=tier,
        stats=stats,
        status=status,
        stored_at=NOW - timedelta(hours=age_h),
        expires_at=None if expiry_h is None else NOW + timedelta(hours=expiry_h),
    ),
    st.sampled_from(Tier),
    JUDGED | st.sampled_from([Stats(), Stats(score=0.9)]),
    st.sampled_from([1, 7 * 24 - 1, 7 * 24, 7 * 24 + 1]),
    st.sampled_from([None, -1, 0, 1]),
    st.sampled_from([Status.ACTIVE, Status.ACTIVE, Status.ACTIVE, Status.ARCHIVED]),
    st.sampled_from(["dana", "noa"]),
    st.sampled_from([None, None, "Always answer in metric."]),
)


def _moves(item: MemoryItem) -> bool:
    return any(decide(item, NOW, params).action != "keep" for params in EVERY_POLICY)


async def every_page(
    store: LifecycleStore, user_id: str | None, limit: int, now: datetime = NOW
) -> list[MemoryItem]:
    """Both walks, one after the other."""
    found: list[MemoryItem] = []
    for judged in (True, False):
        walk, after = Walk(judged=judged, user_id=user_id, now=now), None
        while True:
            page = await store.candidates(walk, after, limit)
            assert len(page) <= limit
            assert all((item.stats.uses > 0) == judged for item in page)
            found += page
            if len(page) < limit:
                break
            after = page[-1]
    return found


class CandidatesContract:
    @given(items=st.lists(ITEMS, min_size=5, max_size=40), limit=st.integers(1, 9))
    @settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
    async def test_all_that_a_rule_moves_and_nothing_else_is_paged_once(
        self, world: LifecycleWorld, items: list[MemoryItem], limit: int
    ) -> None:
        await world.items.insert_many(items)
        names = {item.memory_id for item in items}
        wanted = [item for item in items if _moves(item)]
        wanted.sort(key=lambda item: (not item.stats.uses, item.user_id, item.point_id))
        for user_id in (None, "dana"):
            found = await every_page(world.lifecycle, user_id, limit)
            mine = [i.point_id for i in found if i.memory_id in names]
            assert mine == [i.point_id for i in wanted if user_id in (None, i.user_id)]
            assert all(_moves(item) for item in found)

    async def test_an_unjudged_item_is_a_candidate_once_its_time_is_over(
        self, world: LifecycleWorld
    ) -> None:
        item = await stored(world.items, an_item(expires_at=NOW))
        assert await every_page(world.lifecycle, None, 5, NOW - timedelta(seconds=1)) == []
        assert ids(await every_page(world.lifecycle, None, 5)) == [item.memory_id]
        assert ids(await every_page(world.lifecycle, "dana", 5)) == [item.memory_id]

    async def test_a_score_that_survives_its_expiry_is_no_candidate(
        self, world: LifecycleWorld
    ) -> None:
        await stored(world.items, an_item(expires_at=NOW, stats=Stats(score=0.9)))
        assert await every_page(world.lifecycle, None, 5) == []

    async def test_what_is_asked_of_every_answer_is_no_candidate(
        self, world: LifecycleWorld
    ) -> None:
        bad = Stats(uses=2, score=0.0)
        await stored(world.items, an_item(stats=bad, instruction="ענה תמיד בעברית"))
        garbage = await stored(world.items, an_item(stats=bad))
        assert ids(await every_page(world.lifecycle, None, 5)) == [garbage.memory_id]

    async def test_what_was_brought_back_is_no_candidate(self, world: LifecycleWorld) -> None:
        gone = an_item(status=Status.ARCHIVED, stats=Stats(uses=2, score=0.05))
        await stored(world.items, gone)
        row = replaced_state(gone, ChangeType.RESTORE, None, NOW)
        back = await world.items.replace(creation.restored(gone, NOW), expected_version=1, row=row)
        assert (back.status, back.stats.score) == (Status.ACTIVE, 0.2)
        assert await every_page(world.lifecycle, None, 5) == []

    async def test_a_limit_of_zero_gives_nothing(self, world: LifecycleWorld) -> None:
        await stored(world.items, an_item(expires_at=NOW))
        assert await every_page(world.lifecycle, None, 5) != []
        for judged in (True, False):
            walk = Walk(judged=judged, user_id=None, now=NOW)
            assert await world.lifecycle.candidates(walk, None, 0) == []


class LookupContract:
    async def test_by_ids_gives_active_items_of_the_user_whatever_their_expiry(
        self, world: LifecycleWorld
    ) -> None:
        over = await stored(world.items, an_item(memory_id="over", expires_at=NOW - HOUR))
        await stored(world.items, an_item(memory_id="gone", status=Status.ARCHIVED))
        await stored(world.items, an_item(memory_id="over", user_id="noa"))
        named = ["over", "gone", "missing"]
        assert await world.lifecycle.by_ids("dana", named) == [over]
        assert await world.lifecycle.by_ids("dana", []) == []

    async def test_same_text_is_another_active_item_of_the_tier(
        self, world: LifecycleWorld
    ) -> None:
        item = await stored(world.items, an_item(text="זהה"))
        await stored(world.items, an_item(text="זהה", tier=Tier.HISTORY, user_id="noa"))
        await stored(world.items, an_item(text="זהה", tier=Tier.HISTORY, dedup_scope="d"))
        assert await world.lifecycle.same_text(item, Tier.WORKING) is None
        assert await world.lifecycle.same_text(item, Tier.HISTORY) is None
        other = await stored(world.items, an_item(text="זהה", tier=Tier.HISTORY))
        assert await world.lifecycle.same_text(item, Tier.HISTORY) == other

    async def test_activity_counts_exchanges_and_conversations(self, world: LifecycleWorld) -> None:
        since = STORED_AT + HOUR

        async def exchange(user: str, conversation: str | None, **changes: Any) -> None:
            source = Source(conversation_id=conversation)
            fields = {"stored_at": since, **changes}
            await stored(world.items, an_item(user_id=user, source=source, **fields))

        await exchange("dana", "c1")
        await exchange("dana", "c1", status=Status.ARCHIVED)
        await exchange("dana", "c2")
        await exchange("noa", None, created_at=STORED_AT - 90 * HOUR)
        await exchange("noa", "c3", stored_at=STORED_AT)
        await exchange("dana", "c4", tier=Tier.HISTORY)
        assert await world.lifecycle.activity(since) == [("dana", 3, 2), ("noa", 1, 0)]
