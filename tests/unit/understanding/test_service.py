"""What the worker asks for, and of how many at once."""

from datetime import timedelta

from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import WriteScope
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
        (state := world.state(one)) is not None and any(side.passed for side in state.row.sides)
        for one in ids
    ]
    assert passed == [True, True, False, False, False]
