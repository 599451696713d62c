"""Reads and counts of every `MemoryStore`, lists apart."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import (
    IndexState,
    MemoryItem,
    Quality,
    Source,
    Stats,
    Status,
    SyncState,
    point_id_of,
)
from rayapp.memory.ports import TierCount
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT, an_item
from tests.support.store_contract import DANA, DANA_WRITES, Stores, edited, ids, stored

SYNCED = IndexState(sync_state=SyncState.SYNCED)


class ReadContract:
    async def test_deleted_and_foreign_items_are_not_there(self, stores: Stores) -> None:
        memories = stores.memories
        mine = await stored(memories, an_item())
        theirs = await stored(memories, an_item(user_id="noa"))
        gone = await stored(memories, an_item())
        await edited(memories, gone, status=Status.DELETED)
        points = [mine.point_id, theirs.point_id, gone.point_id, point_id_of("dana", "none")]
        assert await memories.by_points(DANA, points) == [mine]
        assert await memories.by_points(DANA, []) == []
        for item in (theirs, gone):
            assert await memories.get(DANA, item.memory_id) is None
        assert await memories.count(DANA, ItemFilter(statuses=None)) == 1

    async def test_shared_tiers_of_the_system_user_are_readable(self, stores: Stores) -> None:
        shared = an_item(user_id=SYSTEM_USER, tier=Tier.DATAGOV_SCHEMA)
        private = an_item(user_id=SYSTEM_USER, tier=Tier.WORKING)
        await stores.memories.insert_many([shared, private])
        points = [shared.point_id, private.point_id]
        assert ids(await stores.memories.by_points(DANA, points)) == [shared.memory_id]
        assert await stores.memories.by_points(ReadScope("dana", False), points) == []
        assert await stores.memories.count(DANA, ItemFilter()) == 1
        assert await stores.memories.get(DANA, private.memory_id) is None

    async def test_my_item_comes_before_a_shared_one_with_its_id(self, stores: Stores) -> None:
        for user in (SYSTEM_USER, "dana"):
            await stores.memories.insert(
                an_item(user_id=user, memory_id="x", tier=Tier.DATAGOV_SCHEMA)
            )
        found = await stores.memories.get(DANA, "x")
        assert found is not None
        assert found.user_id == "dana"

    async def test_a_merged_id_resolves_to_its_winner(self, stores: Stores) -> None:
        winner = await stored(stores.memories, an_item())
        loser = an_item(status=Status.ARCHIVED, merged_into=winner.memory_id)
        await stores.memories.insert(loser)
        assert await stores.memories.get(DANA, loser.memory_id) == winner

    @pytest.mark.parametrize("user_id", ["", "a b", "a\x00b", "x" * 129, "$ne"])
    async def test_a_malformed_user_id_fails_closed(self, stores: Stores, user_id: str) -> None:
        with pytest.raises(InvalidInput):
            await stores.memories.count(ReadScope(user_id), ItemFilter())
        with pytest.raises(InvalidInput):
            await stores.memories.get(ReadScope(user_id), "x")

    async def test_find_duplicate_sees_active_items_only(self, stores: Stores) -> None:
        active = await stored(stores.memories, an_item(text="a"))
        archived = await stored(stores.memories, an_item(text="b", status=Status.ARCHIVED))
        find = stores.memories.find_duplicate
        assert await find(DANA_WRITES, Tier.WORKING, "", active.content_hash) == active
        assert await find(DANA_WRITES, Tier.HISTORY, "", active.content_hash) is None
        assert await find(DANA_WRITES, Tier.WORKING, "", archived.content_hash) is None
        assert await find(WriteScope("noa"), Tier.WORKING, "", active.content_hash) is None

    async def test_lowest_quality_orders_by_quality_wilson_and_last_use(
        self, stores: Stores
    ) -> None:
        def bank(name: str, importance: float, wilson: float, used_h: int | None) -> MemoryItem:
            used = None if used_h is None else STORED_AT + timedelta(hours=used_h)
            return an_item(
                memory_id=name,
                tier=Tier.MEMORY_BANK,
                quality=Quality(importance=importance, confidence=1.0),
                stats=Stats(wilson_score=wilson, last_outcome_at=used),
            )

        rows = [
            bank("e", 0.9, 0.1, None),
            bank("c", 0.2, 0.5, 1),
            bank("d", 0.2, 0.5, 2),
            bank("b", 0.2, 0.5, None),
            bank("a", 0.2, 0.4, 9),
        ]
        await stores.memories.insert_many(rows)
        await stores.memories.insert(
            replace(bank("archived", 0.0, 0.0, None), status=Status.ARCHIVED)
        )
        lowest = stores.memories.lowest_quality
        assert ids(await lowest(DANA_WRITES, Tier.MEMORY_BANK, 4)) == ["a", "b", "c", "d"]
        # What was replaced comes first, and in the same order; its successor's id plays no part.
        for name, importance, newer in (("y", 0.9, "b"), ("x", 0.8, "a")):
            await stores.memories.insert(
                replace(bank(name, importance, 0.9, 9), superseded_by=newer)
            )
        assert ids(await lowest(DANA_WRITES, Tier.MEMORY_BANK, 4)) == ["x", "y", "a", "b"]
        assert await stores.memories.lowest_quality(DANA_WRITES, Tier.MEMORY_BANK, 0) == []

    async def test_tier_counts(self, stores: Stores) -> None:
        stats = Stats(uses=3, worked_count=2, failed_count=1)
        await stores.memories.insert_many(
            [
                an_item(stats=stats),
                an_item(stats=stats, status=Status.ARCHIVED, index=SYNCED),
                an_item(status=Status.ARCHIVED, archived_reason="ghost:mine", index=SYNCED),
                an_item(tier=Tier.HISTORY),
                an_item(user_id="noa"),
            ]
        )
        await edited(
            stores.memories,
            await stored(stores.memories, an_item(stats=stats)),
            status=Status.DELETED,
        )
        working = TierCount(
            tier=Tier.WORKING,
            active=1,
            archived=1,
            hidden=1,
            deleted=1,
            uses_total=6,
            worked=4,
            failed=2,
        )
        history = TierCount(
            tier=Tier.HISTORY, active=1, archived=0, deleted=0, uses_total=0, worked=0, failed=0
        )
        working, history = replace(working, waiting=1), replace(history, waiting=1)
        assert await stores.memories.tier_counts(DANA) == [working, history]
        everyone = replace(working, active=2, waiting=2)
        assert await stores.memories.tier_counts(None) == [everyone, history]

    async def test_tags_are_distinct_sorted_and_mine(self, stores: Stores) -> None:
        await stores.memories.insert_many(
            [
                an_item(tags=("ב", "a")),
                an_item(tags=("a", "c")),
                an_item(tags=("d",), status=Status.ARCHIVED),
                an_item(tags=("e",), user_id="noa"),
                an_item(tags=("f",), tier=Tier.HISTORY),
            ]
        )
        assert await stores.memories.tags(DANA, Tier.WORKING) == ["a", "c", "d", "ב"]

    async def test_growth_counts_days_by_source_label(self, stores: Stores) -> None:
        day = timedelta(days=1)
        tool = Source(tool_name="web")
        await stores.memories.insert_many(
            [
                an_item(stored_at=STORED_AT - day),
                an_item(),
                an_item(),
                an_item(source=tool),
                an_item(stored_at=STORED_AT + day),
                an_item(status=Status.DELETED),
                an_item(user_id="noa"),
                an_item(user_id=SYSTEM_USER, tier=Tier.DATAGOV_SCHEMA),
                an_item(user_id=SYSTEM_USER, tier=Tier.DATAGOV_SCHEMA, stored_at=STORED_AT - day),
            ]
        )
        assert await stores.memories.growth(DANA, STORED_AT) == [
            ("", "", 1),
            ("2026-01-15", "manual", 2),
            ("2026-01-15", "web", 1),
            ("2026-01-16", "manual", 1),
        ]

    async def test_ping_answers(self, stores: Stores) -> None:
        assert 0 <= await stores.memories.ping() < 5
