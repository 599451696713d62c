"""Memories by their vectors alone, over the whole service in memory."""

import pytest

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import CORE_TIERS
from tests.support.harness import Harness

DANA, NOA = ReadScope("dana"), ReadScope("noa")
CORE = ItemFilter(tiers=CORE_TIERS)
HOME, MOVED, MUSIC = "Dana lives in Haifa", "דנה גרה בחיפה", "Omer plays the cello"


async def a_world() -> Harness:
    world = Harness.ready()
    for memory_id, text in (("home", HOME), ("moved", MOVED), ("music", MUSIC)):
        await world.store(text, memory_id=memory_id)
    await world.store(HOME, user="noa", memory_id="of-noa")
    await world.indexed()
    return world


async def test_the_nearest_of_a_memory_says_the_same_in_the_other_language() -> None:
    world = await a_world()
    vectors = world.services.vectors
    near = await vectors.nearest(DANA, "home", CORE, 2)
    assert [one.item.memory_id for one in near] == ["moved", "music"]
    assert near[0].cosine > near[1].cosine
    assert await vectors.compare(DANA, ("home", "moved")) == pytest.approx(near[0].cosine, abs=2e-3)
    assert await vectors.compare(DANA, ("home", "home")) == pytest.approx(1.0, abs=1e-3)


async def test_a_vector_of_any_length_finds_what_it_is_of() -> None:
    world = await a_world()
    (vector,) = await world.embedder.embed([MUSIC], "passage", timeout_s=5.0)
    (found,) = await world.services.vectors.search(DANA, list(7.0 * vector), CORE, 1)
    assert (found.item.memory_id, round(found.cosine, 2)) == ("music", 1.0)


@pytest.mark.parametrize("numbers", [[1.0], [0.0] * 256, [float("nan")] * 256, [1e39] * 256])
async def test_what_is_no_vector_of_the_service_is_refused(numbers: list[float]) -> None:
    with pytest.raises(InvalidInput, match=r"^vector: "):
        await Harness.ready().services.vectors.search(DANA, numbers, CORE, 1)


async def test_no_memory_of_another_and_none_that_is_put_away_is_near() -> None:
    world = await a_world()
    vectors = world.services.vectors
    assert await vectors.nearest(NOA, "of-noa", CORE, 5) == []
    with pytest.raises(NotFound):
        await vectors.nearest(NOA, "home", CORE, 5)
    with pytest.raises(NotFound):
        await vectors.compare(DANA, ("home", "of-noa"))
    await world.services.memories.archive(WriteScope("dana"), "moved", reason="moved")
    assert [one.item.memory_id for one in await vectors.nearest(DANA, "home", CORE, 5)] == ["music"]
    await world.store("Omer sings too", memory_id="waits")
    with pytest.raises(Conflict, match="no vector"):
        await vectors.nearest(DANA, "waits", CORE, 5)
