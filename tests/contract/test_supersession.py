"""Replacing an older memory through the service, on the fake and on a real MongoDB."""

import asyncio
import itertools
from datetime import timedelta

import pytest

from rayapp.core.errors import InvalidInput, RayappError
from rayapp.core.metrics import InMemoryMetrics
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery, NewMemory
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore

ME, READ = WriteScope("dana"), ReadScope("dana")
OMER = WriteScope("omer")
DAY = timedelta(days=1)


class World:
    """A store behind the service, and the clock of both."""

    def __init__(self, store: MemoryStore, clock: FakeClock) -> None:
        numbers = itertools.count()
        self.store, self.clock = store, clock
        self.memories = MemoriesService(
            store,
            clock=clock,
            metrics=InMemoryMetrics(),
            limits=TextLimits(text=1_000, memory_bank=1_000),
            capacity=100,
            new_id=lambda: f"made-{next(numbers)}",
        )

    async def says(self, text: str, **fields: object) -> str:
        new = NewMemory(text=text, tier=Tier.HISTORY, **fields)  # type: ignore[arg-type]
        return str((await self.memories.store(ME, new)).memory_id)

    async def shown(self, **where: object) -> set[str]:
        conditions = ItemFilter(**where)  # type: ignore[arg-type]
        page = await self.store.page(READ, conditions, ItemQuery(limit=50))
        return {item.memory_id for item in page.items}


@pytest.fixture(params=["fake", pytest.param("mongo", marks=pytest.mark.engine)])
def world(request: pytest.FixtureRequest) -> World:
    clock = FakeClock()
    if request.param == "fake":
        return World(InMemoryMemoryStore(clock), clock)
    return World(MongoMemoryStore(request.getfixturevalue("database")), clock)


async def test_a_chain_shows_one_at_any_time(world: World) -> None:
    start = world.clock.now()
    for number in range(4):
        older = f"m{number - 1}" if number else None
        await world.says(f"plan {number}", memory_id=f"m{number}", supersedes=older)
        world.clock.advance(DAY.total_seconds())
    assert await world.shown() == {"m3"}
    for number in range(4):
        at = start + number * DAY + DAY / 2
        assert await world.shown(include_superseded=True, valid_at=at) == {f"m{number}"}
    closed = await world.memories.get(READ, "m1")
    assert (closed.supersedes, closed.superseded_by) == ("m0", "m2")
    assert closed.version == 2
    assert [row.reason for row in await world.store.versions(READ, "m1", 5)] == ["superseded by m2"]


async def test_the_closed_one_waits_for_the_index(world: World) -> None:
    await world.says("plan a", memory_id="a")
    await world.says("plan b", memory_id="b", supersedes="a")
    claimed = await world.store.claim(token="t", limit=10, claim_s=60)
    assert {item.memory_id for item in claimed} == {"a", "b"}


async def test_of_many_at_once_one_closes_it(world: World) -> None:
    await world.says("plan a", memory_id="a")
    newer = [world.says(f"plan {name}", memory_id=name, supersedes="a") for name in ("b", "c", "d")]
    results = await asyncio.gather(*newer, return_exceptions=True)
    assert all(isinstance(one, str | RayappError) for one in results)
    closed = await world.memories.get(READ, "a")
    assert closed.superseded_by in ("b", "c", "d")
    assert closed.version == 2
    assert "a" not in await world.shown()


async def test_another_users_memory_cannot_be_closed(world: World) -> None:
    await world.says("plan a", memory_id="a")
    theirs = NewMemory(text="plan b", tier=Tier.HISTORY, supersedes="a")
    with pytest.raises(InvalidInput, match="no memory of yours"):
        await world.memories.store(OMER, theirs)
    assert (await world.memories.get(READ, "a")).superseded_by is None


async def test_restoring_the_older_one_opens_it(world: World) -> None:
    await world.says("plan a", memory_id="a")
    await world.says("plan b", memory_id="b", supersedes="a")
    await world.memories.delete(ME, "b")
    assert await world.shown() == set()
    await world.memories.restore(ME, "a")
    opened = await world.memories.get(READ, "a")
    assert (opened.superseded_by, opened.valid_to) == (None, None)
    assert await world.shown() == {"a"}
