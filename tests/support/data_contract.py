"""What every store of the data pages must do: rows of a user, housekeeping, personalities."""

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.admin.ports import RetentionKind
from rayapp.admin.rules import retention_limits
from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.personality.rules import MAX_TEMPLATES, Template, TemplateLibrary
from rayapp.assistant.ports import ExchangeQueue, InjectedContext, SessionStore
from rayapp.core.errors import Conflict, InvalidInput
from rayapp.core.runtime import SystemClock
from rayapp.graphs.ports import GraphStore
from rayapp.graphs.records import Contribution
from rayapp.graphs.rules.content import content_changes
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, Source, SourceType, SyncState
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.creation import archived
from rayapp.memory.rules.filtering import matches
from rayapp.memory.rules.hiding import archived_reason
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.scope import EVERYTHING, ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import ReceiptStore
from rayapp.text.concept import Concept
from rayapp.understanding.statements.ports import KnowledgeStore
from tests.support.builders import STORED_AT, an_item
from tests.support.knowledge_contract import a_gift, a_statement, an_entity, put
from tests.support.side_store_contract import a_receipt
from tests.support.store_contract import DANA, DANA_WRITES, stored
from tests.support.stores.data import DataStores

NOA, NOA_WRITES = ReadScope("noa"), WriteScope("noa")
TEA, HAIFA = Concept("tea", "tea", "phrase"), Concept("חיפה", "חיפה", "phrase")
SESSION_USER = "0a" * 32
WORKING = replace(EVERYTHING, tiers=(Tier.WORKING,))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataWorld:
    """Empty stores of one implementation."""

    data: DataStores
    items: MemoryStore
    graphs: GraphStore
    receipts: ReceiptStore
    sessions: SessionStore
    exchanges: ExchangeQueue
    knowledge: KnowledgeStore


async def hide(world: DataWorld, item: MemoryItem, reason: str, minutes: int) -> MemoryItem:
    at = STORED_AT + timedelta(minutes=minutes)
    row = replaced_state(item, ChangeType.ARCHIVE, reason, at)
    new = archived(item, reason, at)
    return await world.items.replace(new, expected_version=item.version, row=row)


async def living(world: DataWorld, made: list[MemoryItem]) -> list[MemoryItem]:
    found = [await world.items.get(ReadScope(one.user_id), one.memory_id) for one in made]
    return [one for one in found if one is not None]


async def settle_all(world: DataWorld, *concepts: Concept) -> int:
    """Let every due item add `concepts` to its user's graph; how many were due."""
    due = await world.graphs.follow_ups(100)
    for one in due:
        after = Contribution(concepts, 0.5)
        changes = content_changes(one.contributed, after, one.item.memory_id)
        assert await world.graphs.settle_content(one, after, changes)
    return len(due)


def a_turn(user_id: str) -> LearnedExchange:
    return LearnedExchange(
        user_id=user_id,
        conversation_id="c-1",
        message_id="m-1",
        user_text="אני גרה בחיפה",
        answer="Noted.",
        memory_id=None,
        at=SystemClock().now(),
    )


async def a_fact(world: DataWorld, user_id: str) -> MemoryItem:
    return await stored(world.items, an_item(user_id=user_id, tier=Tier.MEMORY_BANK))


class UserRowsContract:
    async def test_hidden_memories_come_newest_first_to_their_user_only(
        self, world: DataWorld
    ) -> None:
        for user in ("dana", "noa"):
            for n, reason in enumerate(("wrong", "מביך", "old")):
                item = await stored(world.items, an_item(user_id=user, memory_id=f"h-{n}"))
                await hide(world, item, archived_reason(reason), minutes=n)
        found = await world.data.rows.hidden(DANA, 2)
        assert [(one.user_id, one.memory_id) for one in found] == [("dana", "h-2"), ("dana", "h-1")]
        assert [one.archived_reason for one in found] == ["ghost:old", "ghost:מביך"]
        assert await world.data.rows.hidden(DANA, 0) == []

    @pytest.mark.parametrize("reason", ["ttl", "ghos", "ghost", "ghost;", "Ghost:x", ""])
    async def test_what_was_archived_for_another_reason_is_not_hidden(
        self, world: DataWorld, reason: str
    ) -> None:
        await hide(world, await stored(world.items, an_item()), reason, minutes=1)
        assert await world.data.rows.hidden(DANA, 9) == []

    async def test_what_another_conversation_said_too_is_of_that_one(
        self, world: DataWorld
    ) -> None:
        async def source(memory_id: str) -> tuple[str | None, tuple[str, ...]]:
            item = await world.items.get(DANA, memory_id)
            assert item is not None
            return item.source.conversation_id, item.source.also

        for name in ("mine", "shared", "outside", "hers"):
            user = "noa" if name == "hers" else "dana"
            item = an_item(memory_id=name, user_id=user, text=name)
            item = replace(item, source=Source(conversation_id="c-1", message_id="m-1"))
            await stored(world.items, item)
        for also in ("c-3", "c-2", "c-3"):
            await world.items.mention(DANA_WRITES, "shared", STORED_AT, also)
        await world.items.mention(DANA_WRITES, "outside", STORED_AT, "")
        await world.items.mention(WriteScope("noa"), "hers", STORED_AT, "c-2")
        assert await source("shared") == ("c-1", ("c-3", "c-2"))
        rows = world.data.rows
        await rows.leave_conversation(DANA_WRITES, "c-3")
        assert await source("shared") == ("c-1", ("c-2",))
        await rows.leave_conversation(DANA_WRITES, "c-1")
        assert await source("shared") == ("c-2", ())
        moved = await world.items.get(DANA, "shared")
        assert moved is not None
        state = moved.index
        assert (state.op, state.sync_state) == (IndexOp.VECTOR, SyncState.PENDING), "as it was owed"
        assert (state.rev, moved.version) == (2, 2)
        assert await source("outside") == (None, ())
        assert await rows.delete_of_conversation(DANA_WRITES, "c-1", 9, STORED_AT) == 1
        assert await world.items.get(DANA, "mine") is None
        hers = await world.items.get(ReadScope("noa"), "hers")
        assert hers is not None
        assert (hers.source.conversation_id, hers.source.message_id) == ("c-1", "m-1")

    async def test_what_was_merged_is_cleared_with_the_tier_that_it_stands_in(
        self, world: DataWorld
    ) -> None:
        """Its text is of this tier, wherever its winner went since."""
        winner = await stored(world.items, an_item(memory_id="w", tier=Tier.PATTERNS))
        loser = replace(archived(an_item(memory_id="l"), "merged", STORED_AT), merged_into="w")
        assert (await world.items.insert(loser)).inserted
        here = ItemFilter(tiers=(Tier.WORKING,), statuses=None, include_superseded=True)
        assert await world.items.count(DANA, here) == 1
        assert await world.data.rows.delete_page(DANA_WRITES, WORKING, 9, STORED_AT) == 1
        assert await world.data.rows.delete_page(DANA_WRITES, WORKING, 9, STORED_AT) == 0
        assert await world.items.count(DANA, here) == 0
        assert await world.items.get(DANA, "l") is None
        assert await world.items.get(DANA, winner.memory_id) == winner

    async def test_a_page_may_hold_both_of_a_merge(self, world: DataWorld) -> None:
        made = [an_item(memory_id="a", merged_into="w"), an_item(memory_id="w")]
        made += [an_item(memory_id="z", merged_into="w"), an_item(memory_id="y")]
        assert all(one.inserted for one in await world.items.insert_many(made))
        pages = [
            await world.data.rows.delete_page(DANA_WRITES, WORKING, 2, STORED_AT) for _ in range(4)
        ]
        assert (sum(pages), pages[-1]) == (4, 0)

    async def test_a_page_is_deleted_with_versions_and_merged_ones(self, world: DataWorld) -> None:
        rows, read = world.data.rows, ReadScope("dana", include_shared=False)
        winner = await stored(world.items, an_item(memory_id="w"))
        merged = an_item(memory_id="m", merged_into="w")  # a read of it would give its winner
        await hide(world, winner, "old", minutes=1)
        other = await stored(world.items, an_item(memory_id="o", tier=Tier.HISTORY))
        part = an_item(memory_id="p", tier=Tier.HISTORY, merged_into="o")
        assert all(one.inserted for one in await world.items.insert_many([merged, part]))
        hers = await stored(world.items, an_item(user_id="noa"))
        at = STORED_AT + timedelta(hours=1)
        assert await rows.delete_page(DANA_WRITES, WORKING, 0, at) == 0
        assert await rows.delete_page(DANA_WRITES, WORKING, 9, at) == 2
        assert await rows.delete_page(DANA_WRITES, WORKING, 9, at) == 0
        assert await world.items.get(DANA, "w") is None
        assert await world.items.versions(read, "w", 9) == []
        kept = await world.items.by_points(DANA, [one.point_id for one in (winner, merged, part)])
        assert [one.memory_id for one in kept] == ["p"]
        assert await world.items.get(DANA, other.memory_id) is not None
        assert await world.items.get(NOA, hers.memory_id) is not None
        due = await world.items.claim(token="t", limit=9, claim_s=9)
        deletions = {one.memory_id for one in due if one.index.op is IndexOp.DELETE}
        assert deletions == {"w", "m"}

    async def test_pages_of_a_tier_end_when_nothing_is_left(self, world: DataWorld) -> None:
        for _ in range(5):
            await stored(world.items, an_item())
        pages = [
            await world.data.rows.delete_page(DANA_WRITES, WORKING, 2, STORED_AT) for _ in range(4)
        ]
        assert pages == [2, 2, 1, 0]

    async def test_counts_are_those_of_the_user(self, world: DataWorld) -> None:
        await self._some_rows(world)
        counts = await world.data.rows.counts(DANA)
        assert (counts.sessions, counts.nodes, counts.edges) == (2, 2, 1)

    async def test_clearing_conversations_takes_what_was_shown_in_them(
        self, world: DataWorld
    ) -> None:
        await self._some_rows(world)
        await world.receipts.put_many([a_receipt("r-1")])
        await world.receipts.put_many([a_receipt("r-2", user_id="noa")])
        assert await world.data.rows.clear_sessions(DANA_WRITES) == 2
        assert await world.receipts.get(DANA, "r-1") is None
        assert await world.receipts.get(NOA, "r-2") is not None
        assert (await world.data.rows.counts(DANA)).sessions == 0
        assert (await world.data.rows.counts(NOA)).sessions == 2
        assert await world.data.rows.clear_sessions(DANA_WRITES) == 0

    async def test_clearing_conversations_takes_what_was_said_in_them(
        self, world: DataWorld
    ) -> None:
        for user in ("dana", "noa"):
            assert await world.exchanges.offer(WriteScope(user), a_turn(user))
        await world.data.rows.clear_sessions(DANA_WRITES)
        left = await world.exchanges.claim(token="t", limit=9, claim_s=9)
        assert [one.exchange.user_id for one in left] == ["noa"]

    async def test_a_cleared_graph_is_filled_again_by_the_same_memories(
        self, world: DataWorld
    ) -> None:
        await self._some_rows(world)
        before = await world.data.rows.counts(DANA)
        assert before.nodes + before.edges + before.learned == 3
        for user in ("dana", "noa"):
            await put(world.knowledge, user, an_entity("avi"), a_statement(1), a_gift())
        assert await world.data.rows.clear_graph(DANA_WRITES) == 6
        assert await world.knowledge.reads(DANA).of_type(None, 5) == []
        assert len(await world.knowledge.reads(NOA).of_type(None, 5)) == 1
        assert (await world.data.rows.counts(DANA)).nodes == 0
        assert (await world.data.rows.counts(NOA)).nodes == 2
        assert await world.graphs.ask_follow_up(DANA_WRITES, 10, dry_run=False) == 1
        assert await settle_all(world, TEA, HAIFA) == 1
        counts = await world.data.rows.counts(DANA)
        assert (counts.nodes, counts.edges) == (2, 1)
        (node,) = await world.graphs.nodes(DANA, ["tea"])
        assert node.mentions == 1

    async def test_clearing_the_rows_of_books_leaves_memories(self, world: DataWorld) -> None:
        await a_fact(world, "dana")
        assert await world.data.rows.clear_documents(DANA_WRITES) == 0
        assert sum(row.active for row in await world.items.tier_counts(DANA)) == 1

    async def _some_rows(self, world: DataWorld) -> None:
        for user in ("dana", "noa"):
            await a_fact(world, user)
            for conversation in ("c-1", "c-2"):
                await world.sessions.log_injected(
                    WriteScope(user), InjectedContext(conversation, "f", STORED_AT)
                )
        assert await settle_all(world, TEA, HAIFA) == 2


class HousekeepingContract:
    async def test_what_is_past_its_age_is_what_the_rule_says(self, world: DataWorld) -> None:
        at = STORED_AT + timedelta(days=10)
        made = [
            an_item(
                user_id=user,
                tier=tier,
                stored_at=STORED_AT,
                updated_at=STORED_AT + timedelta(days=days),
                always_inject=pinned,
                source=Source(type=kind),
            )
            for user in ("dana", "noa", "omer")
            for tier in (Tier.HISTORY, Tier.WORKING, Tier.BOOKS, Tier.MEMORY_BANK)
            for days in (1, 9)
            for pinned in (True, False)
            for kind in (SourceType.USER, SourceType.TOOL)
        ]
        assert all(one.inserted for one in await world.items.insert_many(made))
        days = dict.fromkeys((kind.value for kind in RetentionKind), 5.0)
        for limit in retention_limits(days, pinned=False, now=at):
            found = await world.data.housekeeping.aged(limit, {"omer"})
            wanted = [one for one in made if limit.memories and matches(one, limit.memories)]
            counts = Counter(one.user_id for one in wanted if one.user_id != "omer")
            assert found == counts
            assert list(found) == sorted(found)
            if limit.memories is not None:
                rows = await world.data.rows.delete_page(DANA_WRITES, limit.memories, 99, at)
                assert rows == counts["dana"]
            made = await living(world, made)

    async def test_sizes_name_each_collection_once(self, world: DataWorld) -> None:
        await a_fact(world, "dana")
        sizes = await world.data.housekeeping.sizes()
        names = [size.name for size in sizes]
        assert names == sorted(set(names))
        assert {size.name: size.count for size in sizes}["memory_items"] == 1

    async def test_session_users_are_told_by_their_ids(self, world: DataWorld) -> None:
        users = (SESSION_USER, SESSION_USER[:-1], SESSION_USER.upper(), "dana", "f" * 65)
        for user in users:
            await a_fact(world, user)
        await a_fact(world, SESSION_USER)
        later = STORED_AT + timedelta(days=1)
        await stored(world.items, an_item(user_id="1b" * 32, stored_at=later))
        found = await world.data.housekeeping.session_users()
        assert [(one.user_id, one.memories, one.last_change) for one in found] == [
            (SESSION_USER, 2, STORED_AT),
            ("1b" * 32, 1, later),
        ]

    async def test_rows_of_one_user_are_forgotten(self, world: DataWorld) -> None:
        for user in ("dana", "noa"):
            await a_fact(world, user)
            await world.receipts.put_many([a_receipt(f"r-{user}", user_id=user)])
            await world.data.personality.activate(WriteScope(user), "friendly", STORED_AT)
        await settle_all(world, TEA, HAIFA)
        assert await world.data.housekeeping.forget_rows("dana") == 5
        assert (await world.data.rows.counts(DANA)).nodes == 0
        assert (await world.data.rows.counts(NOA)).nodes == 2
        assert await world.data.personality.library(DANA) == TemplateLibrary()
        assert await world.receipts.get(NOA, "r-noa") is not None
        assert sum(row.active for row in await world.items.tier_counts(DANA)) == 1

    @pytest.mark.parametrize("user", ["", " ", "$ne"])
    async def test_no_user_is_not_everybody(self, world: DataWorld, user: str) -> None:
        await world.data.personality.activate(DANA_WRITES, "friendly", STORED_AT)
        with pytest.raises(InvalidInput):
            await world.data.housekeeping.forget_rows(user)
        assert (await world.data.personality.library(DANA)).active == "friendly"

    async def test_rows_of_points_go_whatever_their_state(self, world: DataWorld) -> None:
        first, second = await a_fact(world, "dana"), await a_fact(world, "noa")
        keeping = world.data.housekeeping
        assert await keeping.remove_points([]) == 0
        assert await keeping.remove_points([first.point_id, "no-such-point"]) == 1
        assert await world.items.get(DANA, first.memory_id) is None
        assert await world.items.get(NOA, second.memory_id) is not None

    async def test_a_collection_is_emptied_for_everybody(self, world: DataWorld) -> None:
        await world.receipts.put_many([a_receipt("r-1")])
        await world.receipts.put_many([a_receipt("r-2", user_id="noa")])
        assert await world.data.housekeeping.empty("receipts") == 2
        assert await world.data.housekeeping.empty("receipts") == 0

    @pytest.mark.parametrize("name", ["api_keys", "system.users", "nothing", ""])
    async def test_kept_and_foreign_collections_are_not_emptied(
        self, world: DataWorld, name: str
    ) -> None:
        with pytest.raises(InvalidInput):
            await world.data.housekeeping.empty(name)

    async def test_compacting_keeps_what_is_there(self, world: DataWorld) -> None:
        item = await a_fact(world, "dana")
        done = await world.data.housekeeping.compact("memory_items", 30.0)
        assert (done.collection, done.error) == ("memory_items", None)
        assert await world.items.get(DANA, item.memory_id) is not None
        with pytest.raises(InvalidInput):
            await world.data.housekeeping.compact("nothing", 30.0)


def a_template(template_id: str = "mine", **changes: Any) -> Template:
    made = Template(
        template_id=template_id,
        name="Mine שלי",
        content="identity: {name: נועה}\ncommunication: {tone: warm}\n",
        description="for the kitchen",
        created_at=STORED_AT,
        updated_at=STORED_AT,
    )
    return replace(made, **changes)


class PersonalityContract:
    async def test_who_never_chose_has_an_empty_shelf(self, world: DataWorld) -> None:
        assert await world.data.personality.library(DANA) == TemplateLibrary()

    @pytest.mark.parametrize("template_id", ["mine", "חברותי_שלי", "5", "a-b_c"])
    async def test_a_template_comes_back_to_its_user_only(
        self, world: DataWorld, template_id: str
    ) -> None:
        store = world.data.personality
        assert await store.put(DANA_WRITES, a_template(template_id), activate=False) is False
        library = await store.library(DANA)
        assert library == TemplateLibrary(
            templates={template_id: a_template(template_id)}, active=None
        )
        assert await store.library(NOA) == TemplateLibrary()

    async def test_saving_again_replaces_and_keeps_its_first_day(self, world: DataWorld) -> None:
        store, later = world.data.personality, STORED_AT + timedelta(days=1)
        await store.put(DANA_WRITES, a_template(), activate=False)
        new = a_template(content="x", created_at=later, updated_at=later)
        assert await store.put(DANA_WRITES, new, activate=True) is True
        library = await store.library(DANA)
        assert library.active == "mine"
        assert library.templates["mine"] == replace(new, created_at=STORED_AT)

    async def test_the_one_in_use_is_not_deleted(self, world: DataWorld) -> None:
        store = world.data.personality
        await store.put(DANA_WRITES, a_template(), activate=True)
        assert await store.delete(NOA_WRITES, "mine") is False
        assert await store.delete(DANA_WRITES, "mine") is False
        await store.activate(DANA_WRITES, "technical", STORED_AT)
        assert await store.delete(DANA_WRITES, "mine") is True
        assert await store.delete(DANA_WRITES, "mine") is False
        assert await store.library(DANA) == TemplateLibrary(active="technical")

    async def test_a_full_shelf_takes_changes_but_no_more(self, world: DataWorld) -> None:
        store = world.data.personality
        for n in range(MAX_TEMPLATES):
            await store.put(DANA_WRITES, a_template(f"t-{n}"), activate=False)
        with pytest.raises(Conflict) as refused:
            await store.put(DANA_WRITES, a_template("more"), activate=True)
        assert refused.value.code == "personality_full"
        assert await store.put(DANA_WRITES, a_template("t-0"), activate=False) is True
        assert len((await store.library(DANA)).templates) == MAX_TEMPLATES
        assert await store.put(NOA_WRITES, a_template("more"), activate=False) is False
        assert await store.delete(DANA_WRITES, "t-1") is True
        assert await store.put(DANA_WRITES, a_template("more"), activate=True) is False

    async def test_first_templates_saved_at_once_are_all_kept(self, world: DataWorld) -> None:
        store = world.data.personality
        await asyncio.gather(
            *(store.put(DANA_WRITES, a_template(f"t-{n}"), activate=False) for n in range(5))
        )
        assert len((await store.library(DANA)).templates) == 5
