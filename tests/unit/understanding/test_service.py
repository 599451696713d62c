"""What the worker asks for, and of how many at once."""

from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ReadScope, WriteScope
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
