"""What the worker asks for, and of how many at once."""

from datetime import timedelta

import pytest

from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.understanding.records import Understanding
from tests.unit.understanding.conftest import Understood

DULL, TELLING = "The plumber costs 400.", "My mother died last week."


async def test_only_what_was_derived_from_is_taken_back(world: Understood) -> None:
    memory_id = await world.world.store(DULL)
    await world.work()
    assert world.heard.calls == []
    for text in (TELLING, DULL):
        await world.world.services.memories.edit(
            WriteScope("dana"), memory_id, MemoryEdit(text=text)
        )
        await world.work()
    assert world.heard.calls == [("understand", memory_id), ("take_back", memory_id)]


async def test_a_try_that_broke_off_is_taken_back_when_the_text_matters_no_more(
    world: Understood,
) -> None:
    memory_id = await world.world.store(TELLING)
    world.heard.error = RuntimeError("half of it was written")
    await world.work()
    world.heard.error = None
    await world.world.services.memories.edit(WriteScope("dana"), memory_id, MemoryEdit(text=DULL))
    await world.work()
    assert world.heard.calls == [("take_back", memory_id)]


async def test_memories_of_all_users_are_collected_and_read_together(world: Understood) -> None:
    for user in ("dana", "noa"):
        for number in range(3):
            await world.world.store(f"{TELLING} Note {number}.", user=user)
    asked: list[str] = []
    items = world.world.container.understanding.items

    class Counted:
        async def by_points(self, scope: ReadScope, point_ids: list[str]) -> object:
            asked.append(scope.user_id)
            return await items.by_points(scope, point_ids)

    world.world.container.understanding.items = Counted()
    await world.work()
    assert sorted(asked) == ["dana", "noa"]
    assert len(world.heard.sources) == 6


async def test_a_topic_of_three_days_matters_though_its_texts_are_read_together(
    world: Understood,
) -> None:
    ids = [
        await world.world.store(
            f"{DULL} Part {number}.",
            topics=("roof",),
            created_at=world.world.clock.now() - timedelta(days=number),
        )
        for number in range(4)
    ]
    long_ago = world.world.clock.now() - timedelta(days=300)
    ids.append(await world.world.store(DULL, topics=("roof",), created_at=long_ago))
    await world.work()
    passed = [
        any(side.passed for side in world.state(one).row.sides)  # type: ignore[attr-defined]
        for one in ids
    ]
    assert passed == [True, True, False, False, False]


async def test_too_much_that_was_said_is_asked_for_one_by_one(
    world: Understood, monkeypatch: pytest.MonkeyPatch
) -> None:
    deciding, store = world.world.container.deciding, world.world.understandings
    now = world.world.clock.now()
    rows = [
        Understanding(
            user_id="dana",
            memory_id=f"m{number}",
            source_hash=str(number),
            version=1,
            said_at=now,
            topics=("roof",),
        )
        for number in range(3)
    ]
    await store.offer_all(rows)
    assert await deciding.earlier(rows[:1]) == rows
    monkeypatch.setattr("rayapp.understanding.deciding.MOST_MENTIONS", 3)
    assert await deciding.earlier(rows[:1]) is None
