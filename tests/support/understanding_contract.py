"""What every `UnderstandingStore` must do beside the queue; run on the fake and on MongoDB."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from rayapp.core.claims import WorkState
from rayapp.core.runtime import Clock
from rayapp.memory.item import ChangeType, MemoryItem, Status
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import archived, deleted, new_item
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.understanding.ports import UnderstandingStore
from rayapp.understanding.records import Fate, Importance, Mention, Override, Speaker, Understanding
from rayapp.understanding.rules.sources import row_of

DANA, NOA = ReadScope("dana", include_shared=False), ReadScope("noa", include_shared=False)
CLAIM_S = 60.0


class UnderstandingStores(NamedTuple):
    store: UnderstandingStore
    items: MemoryStore
    clock: Clock
    elapse: Callable[[float], Awaitable[None]]


async def stored(stores: UnderstandingStores, text: str, **fields: Any) -> MemoryItem:
    new = NewMemory(text=text, **fields)
    item = new_item(new, user_id="dana", memory_id=text.replace(" ", "-"), now=stores.clock.now())
    assert (await stores.items.insert(item)).inserted
    found = await stores.items.get(DANA, item.memory_id)
    assert found is not None
    return found


async def changed(stores: UnderstandingStores, new: MemoryItem, old: MemoryItem) -> MemoryItem:
    row = replaced_state(old, ChangeType.UPDATE, "test", stores.clock.now())
    return await stores.items.replace(new, expected_version=old.version, row=row)


def scored(item: MemoryItem, **fields: Any) -> Understanding:
    side = Importance(
        speaker=Speaker.USER,
        score=0.75,
        base=0.5,
        signals={"emotional": 1.0, "personal": 0.5, "temporal": 0.0, "decision": 0.0},
        overrides=(Override.IDENTITY,),
        threshold=0.44,
        factor=1.0,
        params="p-1",
    )
    row = row_of(item, "trace-1")
    made = replace(row, sides=(side,), fate=Fate.DERIVED, stages={"importance": 1.5})
    return replace(made, **fields)


class UnderstandingContract:
    @pytest.fixture
    def stores(self) -> UnderstandingStores:
        raise NotImplementedError

    async def test_what_is_stored_is_marked_until_it_is_unmarked(
        self, stores: UnderstandingStores
    ) -> None:
        first = await stored(stores, "one")
        await stores.elapse(0.01)
        second = await stored(stores, "two")
        marked = await stores.store.marked(9, 0.0)
        assert [item.memory_id for item in marked] == ["one", "two"]
        assert [item.memory_id for item in await stores.store.marked(1, 0.0)] == ["one"]
        assert await stores.store.unmark([first]) == 1
        assert [item.memory_id for item in await stores.store.marked(9, 0.0)] == ["two"]
        assert await stores.store.unmark([first, second]) == 2
        assert await stores.store.marked(9, 0.0) == []

    async def test_marks_ripen_together(self, stores: UnderstandingStores) -> None:
        await stored(stores, "one")
        assert await stores.store.marked(9, 0.3) == []
        await stores.elapse(0.35)
        await stored(stores, "two")
        await stores.elapse(0.01)
        assert len(await stores.store.marked(9, 0.3)) == 2

    async def test_a_write_between_keeps_the_mark(self, stores: UnderstandingStores) -> None:
        item = await stored(stores, "one")
        await stores.store.unmark([item])
        await changed(stores, archived(item, "test", stores.clock.now()), item)
        (seen,) = await stores.store.marked(9, 0.0)
        assert seen.status is Status.ARCHIVED
        other = await stored(stores, "two")
        assert await stores.store.unmark([item, other]) == 1
        assert await stores.store.unmark([]) == 0
        assert len(await stores.store.marked(9, 0.0)) == 1

    async def test_a_deletion_makes_the_row_due_as_gone(self, stores: UnderstandingStores) -> None:
        item = await stored(stores, "one")
        await stores.store.unmark([item])
        await stores.store.offer(scored(item))
        (working,) = await stores.store.claim("w", 9, CLAIM_S)
        await changed(stores, deleted(item, stores.clock.now()), item)
        await stores.elapse(0.01)
        (claim,) = await stores.store.claim("w", 9, CLAIM_S)
        assert claim.row.gone
        assert not await stores.store.finish(working, working.row)
        assert await stores.store.finish(claim, None)
        assert await stores.store.find(DANA, "one") is None
        assert await stores.store.marked(9, 0.0) == []

    async def test_a_row_comes_back_whole_and_to_its_user_alone(
        self, stores: UnderstandingStores
    ) -> None:
        item = await stored(stores, "one", topics=("$topic", "נושא"), subject_id="child")
        row = scored(item, trace_id="$trace")
        await stores.store.offer(row)
        found = await stores.store.find(DANA, "one")
        assert found is not None
        assert found.row == row
        assert await stores.store.find(NOA, "one") is None
        assert await stores.store.same(NOA, row.source_hash) is None
        assert await stores.store.same(DANA, row.source_hash) == row
        assert await stores.store.same(DANA, "other") is None

    async def test_the_rows_of_many_memories(self, stores: UnderstandingStores) -> None:
        items = [await stored(stores, name) for name in ("one", "two", "three")]
        noas = new_item(
            NewMemory(text="x"), user_id="noa", memory_id="one", now=items[0].created_at
        )
        rows = [scored(items[0]), row_of(items[1], "trace"), row_of(noas, "trace")]
        await stores.store.offer_all(rows[:2])
        await stores.store.offer_all([rows[2], replace(rows[0], gone=True)], priority=-1)
        await stores.store.offer_all([])
        found = await stores.store.rows_of([*items, noas])
        assert {(one.user_id, one.memory_id, one.gone) for one in found} == {
            ("dana", "one", True),
            ("dana", "two", False),
            ("noa", "one", False),
        }
        assert await stores.store.rows_of(items[1:]) == [rows[1]]
        assert await stores.store.rows_of([]) == []
        claimed = await stores.store.claim("w", 9, CLAIM_S)
        assert [one.row.memory_id for one in claimed] == ["one", "one", "two"]

    async def test_when_a_topic_was_spoken_of(self, stores: UnderstandingStores) -> None:
        item = await stored(stores, "one", topics=("garden",))
        row = row_of(item, "trace-1")
        await stores.store.offer(row)
        again = Mention(
            topics=row.topics, at=row.said_at + timedelta(days=1), conversation_id="c-2"
        )
        await stores.store.hear(WriteScope("dana"), "one", again)
        since = row.said_at - timedelta(days=30)
        (found,) = await stores.store.speaking_of(DANA, row.topics, since)
        assert [one.conversation_id for one in found.mentions] == [None, "c-2"]
        assert await stores.store.speaking_of(DANA, ["other"], since) == []
        assert await stores.store.speaking_of(DANA, (), since) == []
        assert await stores.store.speaking_of(NOA, row.topics, since) == []
        later = row.said_at + timedelta(days=2)
        assert await stores.store.speaking_of(DANA, row.topics, later) == []

    async def test_a_row_that_was_worked_on_beside_the_queue_is_settled(
        self, stores: UnderstandingStores
    ) -> None:
        item = await stored(stores, "one")
        assert await stores.store.settle(scored(item))
        assert await stores.store.claim("one", 5, 60.0) == []
        found = await stores.store.find(DANA, "one")
        assert found is not None
        assert (found.state, found.row) == (WorkState.DONE, scored(item))
        newer = scored(item, version=item.version + 1)
        await stores.store.offer(newer)
        assert not await stores.store.settle(scored(item))
        (claim,) = await stores.store.claim("one", 5, 60.0)
        assert claim.row == newer

    async def test_everything_is_walked_by_user_and_id(self, stores: UnderstandingStores) -> None:
        for name in ("a", "b", "c"):
            await stored(stores, name)
        assert await stores.store.users_after("", 5) == [DANA.user_id]
        assert await stores.store.users_after(DANA.user_id, 5) == []
        found = await stores.store.memories_after(DANA, "a", 1)
        assert [one.memory_id for one in found] == ["b"]
        assert await stores.store.stored(DANA) == 3
        assert await stores.store.stored(ReadScope("nobody")) == 0
