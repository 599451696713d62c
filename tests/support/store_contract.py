"""What writes of every `MemoryStore` must do.

Subclass the contracts of this package and give a `stores` fixture of empty stores.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.admin.ports import ApiKeyStore, AuditStore, IdempotencyStore
from rayapp.bulk.ports import LeaseStore
from rayapp.core.errors import DuplicateMemory, InvalidInput, NotFound, VersionConflict
from rayapp.memory.item import (
    IndexOp,
    IndexState,
    MemoryItem,
    Outcome,
    Quality,
    Source,
    Stats,
    Status,
    SyncState,
)
from rayapp.memory.ports import EventStore, MemoryStore
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import ReceiptStore
from tests.support.builders import STORED_AT, a_version, an_item

DANA = ReadScope("dana")
DANA_WRITES = WriteScope("dana")
ALL = ItemFilter(statuses=(Status.ACTIVE, Status.ARCHIVED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """One implementation of every store; `elapse` lets that many seconds pass for all of them."""

    memories: MemoryStore
    receipts: ReceiptStore
    events: EventStore
    leases: LeaseStore
    api_keys: ApiKeyStore
    audit_log: AuditStore
    idempotency: IdempotencyStore
    elapse: Callable[[float], Awaitable[None]]


def ids(items: list[MemoryItem]) -> list[str]:
    return [item.memory_id for item in items]


async def stored(store: MemoryStore, item: MemoryItem) -> MemoryItem:
    """Insert `item` and read it back."""
    assert (await store.insert(item)).inserted
    found = await store.get(ReadScope(item.user_id), item.memory_id)
    assert found is not None
    return found


async def edited(store: MemoryStore, item: MemoryItem, **changes: Any) -> MemoryItem:
    """Replace `item` as an editor does who has just read it."""
    new = replace(item, **changes)
    return await store.replace(new, expected_version=item.version, row=a_version(item))


class InsertContract:
    async def test_every_field_comes_back(self, stores: Stores) -> None:
        at = STORED_AT + timedelta(milliseconds=7)
        item = an_item(
            text='זיכרון עם ניקוד: שָׁלוֹם "quoted" 👋',
            org_id="org",
            tier=Tier.DATAGOV_SCHEMA,
            summary="s",
            dedup_scope="doc-1",
            tags=("תגית", "b"),
            entities=("Tel Aviv",),
            always_inject=True,
            lang="he",
            source=Source(
                conversation_id="c",
                tool_name="t",
                doc_id="d",
                book={"page": 3, "a.b": {"$x": 1}},
                datagov={"category": "health", "flags": {"geo.api": True, "$off": False}},
            ),
            perspective_owner_id="p",
            subject_id="noa",
            topics=("$garden", "גינה"),
            trust=0.25,
            quality=Quality(importance=0.9, confidence=0.7, mentioned_count=4),
            stats=Stats(
                uses=3, success_count=2.5, last_outcome=Outcome.PARTIAL, last_outcome_at=at
            ),
            archived_at=at,
            archived_reason="r",
            expires_at=at,
            index=IndexState(
                op=IndexOp.PAYLOAD, rev=5, sync_state=SyncState.SYNCED, model="m", dims=3
            ),
            version=4,
            supersedes="x",
            valid_from=at,
            valid_to=at,
            sequence=1_768_478_400_000_007,
            context_prefix="על ספינות",
        )
        assert await stored(stores.memories, item) == item

    async def test_a_new_item_is_due_from_the_moment_it_was_stored(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item())
        assert item.index.next_attempt_at == item.stored_at

    async def test_an_equal_id_is_a_clash_with_the_stored_item(self, stores: Stores) -> None:
        first = await stored(stores.memories, an_item(memory_id="x"))
        result = await stores.memories.insert(an_item(memory_id="x"))
        assert (result.inserted, result.clash, result.existing) == (False, "id", first)

    async def test_an_equal_active_text_is_a_clash(self, stores: Stores) -> None:
        first = await stored(stores.memories, an_item(text="same"))
        result = await stores.memories.insert(an_item(text="same"))
        assert (result.inserted, result.clash, result.existing) == (False, "text", first)

    async def test_the_id_decides_before_the_text(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="a", text="same"))
        second = await stored(stores.memories, an_item(memory_id="b", text="other"))
        result = await stores.memories.insert(an_item(memory_id="b", text="same"))
        assert (result.clash, result.existing) == ("id", second)

    @pytest.mark.parametrize(
        "other", [{"user_id": "noa"}, {"tier": Tier.HISTORY}, {"dedup_scope": "doc-2"}]
    )
    async def test_text_is_unique_only_within_user_tier_and_scope(
        self, stores: Stores, other: dict[str, object]
    ) -> None:
        await stores.memories.insert(an_item(text="same"))
        assert (await stores.memories.insert(an_item(text="same", **other))).inserted

    async def test_an_archived_text_does_not_block(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(text="same", status=Status.ARCHIVED))
        assert (await stores.memories.insert(an_item(text="same"))).inserted

    async def test_two_users_may_hold_the_same_id(self, stores: Stores) -> None:
        for user in ("dana", "noa"):
            assert (await stores.memories.insert(an_item(user_id=user, memory_id="x"))).inserted
        found = await stores.memories.get(ReadScope("noa"), "x")
        assert found is not None
        assert found.user_id == "noa"

    async def test_a_tombstone_does_not_block_its_id(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item(memory_id="x"))
        gone = await edited(stores.memories, item, status=Status.DELETED)
        assert (await stores.memories.insert(an_item(memory_id="x", text="again"))).inserted
        back = await stores.memories.get(DANA, "x")
        assert back is not None
        assert (back.text, back.status) == ("again", Status.ACTIVE)
        assert back.version > gone.version
        assert back.index.rev > gone.index.rev

    async def test_insert_many_answers_per_item_in_order(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="old", text="old text"))
        batch = [
            an_item(memory_id="a", text="one"),
            an_item(memory_id="old", text="new"),
            an_item(memory_id="b", text="one"),
            an_item(memory_id="c", text="old text"),
            an_item(memory_id="a", text="three"),
            an_item(memory_id="d", text="four"),
        ]
        results = await stores.memories.insert_many(batch)
        assert [r.clash for r in results] == [None, "id", "text", "text", "id", None]
        assert [r.inserted for r in results] == [r.clash is None for r in results]
        assert [r.existing.memory_id for r in results if r.existing] == ["old", "a", "old", "a"]
        assert await stores.memories.count(DANA, ItemFilter()) == 3
        assert await stores.memories.insert_many([]) == []

    async def test_a_time_without_zone_is_refused(self, stores: Stores) -> None:
        with pytest.raises(InvalidInput):
            await stores.memories.insert(an_item(created_at=STORED_AT.replace(tzinfo=None)))

    async def test_mention_counts_and_needs_the_item(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item())
        later = item.updated_at + timedelta(seconds=5)
        await stores.memories.mention(DANA_WRITES, item.memory_id, later)
        await stores.memories.mention(DANA_WRITES, item.memory_id, item.updated_at)
        again = await stores.memories.get(DANA, item.memory_id)
        assert again is not None
        assert (again.quality.mentioned_count, again.updated_at) == (3, later)
        assert again.version == item.version
        with pytest.raises(NotFound):
            await stores.memories.mention(WriteScope("noa"), item.memory_id, later)


class ReplaceContract:
    async def test_bumps_the_version_and_keeps_the_old_state(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item(text="old", tags=("a",)))
        new = await edited(stores.memories, item, text="new", content_hash="h2")
        assert (new.version, new.text) == (2, "new")
        assert await stores.memories.get(DANA, item.memory_id) == new
        assert await stores.memories.versions(DANA, item.memory_id, 5) == [a_version(item)]
        assert await stores.memories.versions(ReadScope("noa"), item.memory_id, 5) == []

    async def test_versions_are_newest_first_and_limited(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item())
        for summary in ("one", "two", "three"):
            item = await edited(stores.memories, item, summary=summary)
        rows = await stores.memories.versions(DANA, item.memory_id, 2)
        assert [row.version for row in rows] == [3, 2]
        assert await stores.memories.versions(DANA, item.memory_id, 0) == []

    async def test_a_stale_version_changes_nothing(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item())
        new = await edited(stores.memories, item, summary="first")
        with pytest.raises(VersionConflict):
            await edited(stores.memories, item, summary="second")
        assert await stores.memories.get(DANA, item.memory_id) == new
        assert len(await stores.memories.versions(DANA, item.memory_id, 5)) == 1

    async def test_of_30_concurrent_edits_exactly_one_wins(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item())
        results = await asyncio.gather(
            *(edited(stores.memories, item, summary=f"edit {n}") for n in range(30)),
            return_exceptions=True,
        )
        winners = [r for r in results if isinstance(r, MemoryItem)]
        losers = [r for r in results if isinstance(r, VersionConflict)]
        assert (len(winners), len(losers)) == (1, 29)
        assert await stores.memories.get(DANA, item.memory_id) == winners[0]

    async def test_a_missing_or_deleted_item_is_not_found(self, stores: Stores) -> None:
        with pytest.raises(NotFound):
            await edited(stores.memories, an_item(), summary="x")
        item = await stored(stores.memories, an_item())
        gone = await edited(stores.memories, item, status=Status.DELETED)
        with pytest.raises(NotFound):
            await edited(stores.memories, gone, status=Status.ACTIVE)

    async def test_an_equal_active_text_is_named_and_nothing_changes(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="winner", text="same"))
        item = await stored(stores.memories, an_item(text="same", status=Status.ARCHIVED))
        with pytest.raises(DuplicateMemory) as caught:
            await edited(stores.memories, item, status=Status.ACTIVE)
        assert caught.value.details == {"memory_id": "winner"}
        assert await stores.memories.get(DANA, item.memory_id) == item
        assert await stores.memories.versions(DANA, item.memory_id, 5) == []

    async def test_counters_the_editor_did_not_touch_are_kept(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item())
        await stores.memories.mention(DANA_WRITES, item.memory_id, item.updated_at)
        new = await edited(stores.memories, item, quality=replace(item.quality, importance=0.9))
        assert new.quality == Quality(importance=0.9, confidence=0.5, mentioned_count=2)

    async def test_a_pending_edit_raises_the_rev_and_frees_the_claim(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(memory_id="x"))
        (item,) = await stores.memories.claim(token="t", limit=5, claim_s=60)
        new = await edited(stores.memories, item, summary="s")
        assert new.index.rev == item.index.rev + 1
        assert new.index.claim is None
        assert new.index.next_attempt_at == item.updated_at
        assert new.index.op is IndexOp.VECTOR

    async def test_deleting_erases_the_version_rows(self, stores: Stores) -> None:
        item = await stored(stores.memories, an_item(text="secret"))
        item = await edited(stores.memories, item, summary="s")
        await edited(stores.memories, item, status=Status.DELETED)
        assert await stores.memories.versions(DANA, item.memory_id, 5) == []
